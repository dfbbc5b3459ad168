"""Many runs: what is missing, how long it will take, and that one which fails or dies does not lose the others."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest

from topoter.errors import UsageError
from topoter.experiments import EXPERIMENTS, experiment
from topoter.experiments.bench import Watcher, made_elsewhere
from topoter.experiments.durations import Durations, Outlook
from topoter.experiments.runs import load_run, save_run
from topoter.experiments.schedule import make_all, missing_runs, plan_all, stored_runs
from topoter.experiments.workers import threads_per_job
from topoter.tasks import node_classification

pytestmark = pytest.mark.usefixtures("one_thread")


class Seen(Watcher):
    """Keeps what it is told."""

    def __init__(self):
        self.shares, self.done = [], []

    def progressed(self, run, share, text):
        self.shares.append((run.name, share))

    def finished(self, run, seconds):
        self.done.append((run.name, seconds))


def plan(methods, seeds=1, name="node-classification", datasets=("sbm",)):
    return experiment(name).plan(list(datasets), methods, seeds)


def store(run, seconds, folder):
    save_run(run, run.description() | {"result": {"test": 50.0, "val": 50.0}, "seconds": seconds}, folder)


# ---- plans -----------------------------------------------------------------------------------------------------------


def test_all_is_every_experiment_with_the_datasets_and_methods_it_has():
    plans = plan_all(None, None, seeds=2)
    assert list(plans) == list(EXPERIMENTS)
    assert all(plans[name] == experiment(name).plan(None, None, 2) for name in plans)
    some = plan_all(["cora", "mutag"], ["gae", "wl"], seeds=1)
    assert set(some) == {"node-classification", "order", "noise", "graph-classification", "link-prediction"}
    assert {run.recipe.dataset for run in some["link-prediction"]} == {"cora"}
    assert {run.recipe.method for run in some["graph-classification"]} == {"wl"}
    names = [run.name for runs in plans.values() for run in runs]
    assert len(set(names)) == len(names)


def test_names_that_no_experiment_has_are_told_with_the_nearest():
    with pytest.raises(UsageError, match=r"Unknown dataset 'coraa'\. Did you mean 'cora'\?"):
        plan_all(["coraa"], None, 1)
    with pytest.raises(UsageError, match=r"Unknown method 'persistense'\. Did you mean 'persistence'\?"):
        plan_all(None, ["persistense"], 1)


# ---- how long --------------------------------------------------------------------------------------------------------


def test_lengths_come_from_the_nearest_runs_there_are(tmp_path):
    first, second, third = plan(["raw"], seeds=3)
    store(first, 10.0, tmp_path)
    store(replace(second, recipe=replace(second.recipe, parameters={"order": 7})), 30.0, tmp_path)
    (tmp_path / "node-classification" / "sbm" / "raw.half.json").write_text("{")
    (tmp_path / "bench.json").write_text("[]")
    durations = Durations.stored(tmp_path)
    assert missing_runs([first, second, third], tmp_path) == [second, third]
    assert (durations.of(second).seconds, durations.of(second).source) == (30.0, "last time")
    assert (durations.of(third).seconds, durations.of(third).source) == (20.0, "other seeds")
    other = experiment("order").plan(["sbm"], ["propagated"], 1)[0]
    assert (durations.of(other).seconds, durations.of(other).source) == (None, "unknown")
    durations.add(plan(["propagated"])[0].description(), 4.0)
    assert (durations.of(other).seconds, durations.of(other).source) == (4.0, "like runs")


def test_the_outlook_weighs_runs_by_their_seconds():
    long, short = plan(["topoter", "raw"])[-1], plan(["raw"])[0]
    durations = Durations()
    durations.add(long.description(), 90.0)
    durations.add(short.description(), 10.0)
    outlook = Outlook([long, short], durations)
    assert outlook.done_and_left() == pytest.approx((0.0, 100.0))
    outlook.progressed(long, 0.5)
    assert outlook.done_and_left() == pytest.approx((45.0, 55.0))
    outlook.finished(long, 90.0)
    assert outlook.done_and_left() == pytest.approx((90.0, 10.0))
    assert Outlook([long, short], durations, jobs=2).seconds_left() == pytest.approx(50.0)
    outlook.finished(short, None)
    assert outlook.done_and_left() == (90.0, 0.0)
    assert outlook.seconds_left() == 0.0
    assert (outlook.finished_count, outlook.count) == (2, 2)


def test_the_outlook_learns_from_what_is_finished():
    first, *others = plan(["raw"], seeds=3)
    outlook = Outlook([first, *others], Durations())
    unknown = outlook.seconds_left()
    assert unknown > 0
    outlook.finished(first, 400.0)
    assert outlook.seconds_left() == pytest.approx(800.0)
    slow = Durations()
    for run in (first, *others):
        slow.add(run.description(), 600.0)
    outlook = Outlook([first, *others], slow)
    outlook.finished(first, 1200.0)  # as if the machine were half as fast now
    assert 2000 < outlook.seconds_left() < 2400


# ---- making ----------------------------------------------------------------------------------------------------------


def test_a_run_that_fails_does_not_lose_the_others(tmp_path, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("by zero")

    monkeypatch.setitem(node_classification.METHODS, "raw", broken)
    runs = [*plan(["raw"]), *plan(["raw"], datasets=["pubmed"], seeds=2), *plan(["propagated"])]
    seen = Seen()
    defect, *absent = make_all(runs, tmp_path / "out", tmp_path, 1, seen)
    assert (defect.run, defect.message, defect.exit_code) == (runs[0], "ZeroDivisionError: by zero", 1)
    assert "in broken" in defect.trace
    assert [failure.run for failure in absent] == runs[1:3]
    assert all("ind.pubmed" in failure.message and not failure.trace for failure in absent)
    assert [run for run, _ in stored_runs(runs, tmp_path / "out")] == [runs[3]]
    assert [seconds is None for _, seconds in seen.done] == [True, True, True, False]
    wrong = make_all(plan(["raw"], datasets=["mutag"]), tmp_path, tmp_path, 1, Watcher())
    assert wrong[0].exit_code == 2  # a set of graphs has no nodes to classify


def test_processes_that_die_are_replaced_and_the_others_make_what_one_process_makes(tmp_path):
    """They die as the kernel does it for lack of memory: without a word, in the middle of a run."""

    class Killer(Seen):
        def progressed(self, run, share, text):
            super().progressed(run, share, text)
            for process in multiprocessing.active_children():
                process.kill()

    first, second = plan(["topoter"], seeds=2)[-2:]
    endless = [replace(run, variation={"epochs": 10**6, "patience": 10**6}) for run in (first, second)]
    runs = plan(["random-init"])
    killer = Killer()
    failures = make_all([*endless, *runs], tmp_path / "two", None, 2, killer)
    assert sorted(failure.run.name for failure in failures) == sorted(run.name for run in endless)
    assert all("ended by signal 9" in failure.message for failure in failures)
    assert {name for name, _ in killer.shares} <= {run.name for run in endless}
    assert sorted(name for name, seconds in killer.done if seconds) == sorted(run.name for run in runs)
    assert multiprocessing.active_children() == []
    assert make_all(runs, tmp_path / "one", None, 1, Watcher()) == []
    for run in runs:
        one, two = load_run(run, tmp_path / "one"), load_run(run, tmp_path / "two")
        assert one["result"] == two["result"]
        assert {"parameters", "seed", "versions", "seconds", "peak_mb", "result"} <= two.keys()
        assert two["versions"].keys() >= {"git", "topoter", "torch"}
        assert two["peak_mb"] > 50


def test_the_peak_of_a_run_is_not_that_of_the_one_before(tmp_path):
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("only Linux can reset the peak")
    from topoter.experiments.runs import forget_peak, peak_mb

    held = bytearray(300 << 20)
    before = peak_mb()
    del held
    forget_peak()
    assert peak_mb() < before - 250


def test_the_cores_are_shared_out():
    assert threads_per_job(10**6) == 1
    assert threads_per_job(1) >= threads_per_job(2) >= 1


def test_a_run_of_another_process_is_taken_over(tmp_path):
    """Two calls at once on one folder: the second finds what the first has made meanwhile."""
    (run,) = plan(["raw"])
    store(run, 7.0, tmp_path)
    seen = Seen()
    assert make_all([run], tmp_path, None, 1, seen) == []
    assert seen.done == [(run.name, 7.0)]
    assert json.loads(run.path(tmp_path).read_text())["seconds"] == 7.0


def test_a_study_takes_over_what_another_experiment_has_measured(tmp_path):
    (best,) = experiment("node-classification").plan(["cora"], ["dgi"], 1)
    store(best, 5.0, tmp_path)
    study = plan(["dgi"], name="order", datasets=["cora"])
    (same,) = [run for run in study if run.parameters == best.parameters]
    assert make_all([same], tmp_path, None, 1, Watcher()) == []
    taken = load_run(same, tmp_path)
    assert taken is not None
    assert (taken["made_for"], taken["variation"]) == ("node-classification", {"order": 2})
    assert taken["result"] == {"test": 50.0, "val": 50.0}
    another = replace(same, seed=1)
    assert made_elsewhere(experiment("order"), another, tmp_path) is None
    assert all(made_elsewhere(experiment("order"), run, tmp_path) is None for run in study if run is not same)
