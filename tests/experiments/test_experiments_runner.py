"""Many runs: plans, and that one which fails or dies does not lose the others, nor is anything made twice."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import replace
from pathlib import Path

import pytest
from own_methods import told
from test_experiments_store import record_of

from topoter.errors import UsageError
from topoter.experiments import EXPERIMENTS, experiment
from topoter.experiments.engines import on_this_machine, threads_per_job
from topoter.experiments.experiment import Row
from topoter.experiments.runner import Watcher, make_all, plan_all
from topoter.experiments.runs import forget_peak, peak_mb
from topoter.experiments.store import Store

pytestmark = pytest.mark.usefixtures("one_thread")


class Seen(Watcher):
    """Keeps what it is told."""

    def __init__(self):
        self.shares, self.done = [], []

    def progressed(self, run, share, text):
        self.shares.append((run.key, share))

    def finished(self, run, seconds):
        self.done.append((run.key, seconds))


def plan(methods, seeds=1, name="node-classification", datasets=("sbm",)):
    return experiment(name).plan(list(datasets), methods, seeds)


def own_runs(method: str, seeds: int):
    return experiment("node-classification").runs(Row(f"own_methods:{method}"), "sbm", seeds)


@pytest.fixture
def told_in(tmp_path, monkeypatch):
    """Where the methods of own_methods.py write; workers find that module."""
    monkeypatch.setenv("TOPOTER_TEST_FOLDER", str(tmp_path))
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    return tmp_path


# ---- plans -----------------------------------------------------------------------------------------------------------


def test_all_is_every_experiment_with_the_datasets_and_methods_it_has():
    plans = plan_all(None, None, seeds=2)
    assert list(plans) == list(EXPERIMENTS)
    assert all(plans[name] == experiment(name).plan(None, None, 2) for name in plans)
    some = plan_all(["cora", "mutag"], ["gae", "wl"], seeds=1)
    assert set(some) == {"node-classification", "order", "noise", "graph-classification", "link-prediction"}
    assert {run.recipe.dataset for run in some["link-prediction"]} == {"cora"}
    assert {run.recipe.method for run in some["graph-classification"]} == {"wl"}
    keys = [run.key for runs in plans.values() for run in runs]
    assert len(set(keys)) == len(keys)


def test_names_that_no_experiment_has_are_told_with_the_nearest():
    with pytest.raises(UsageError, match=r"Unknown dataset 'coraa'\. Did you mean 'cora'\?"):
        plan_all(["coraa"], None, 1)
    with pytest.raises(UsageError, match=r"Unknown method 'persistense'\. Did you mean 'persistence'\?"):
        plan_all(None, ["persistense"], 1)


def test_the_cores_are_shared_out():
    assert threads_per_job(10**6) == 1
    assert threads_per_job(1) >= threads_per_job(2) >= 1


# ---- in this process -------------------------------------------------------------------------------------------------


def test_a_run_that_fails_does_not_lose_the_others(tmp_path):
    (broken,) = plan(["raw"])
    broken = replace(broken, recipe=replace(broken.recipe, method="own_methods:Told"))  # TOPOTER_TEST_FOLDER is not set
    runs = [broken, *plan(["raw"], datasets=["pubmed"], seeds=2), *plan(["topoter"])[-3:-2]]  # recipe tuned
    runs[-1] = replace(runs[-1], variation={"epochs": 5})
    seen, store = Seen(), Store.read(tmp_path / "out")
    defect, *absent = make_all(runs, store, tmp_path, on_this_machine(1), seen)
    assert (defect.run, defect.exit_code) == (runs[0], 1)
    assert defect.message.startswith("KeyError: ")
    assert "own_methods.py" in defect.trace
    assert [failure.run for failure in absent] == runs[1:3]
    assert all("ind.pubmed" in failure.message and not failure.trace for failure in absent)
    assert [record.key for record in store.records] == [runs[3].key]
    assert [seconds is None for _, seconds in seen.done] == [True, True, True, False]
    assert [share for key, share in seen.shares if key == runs[3].key] == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert len(store.losses("node-classification")[runs[3].key]) == 5
    wrong = make_all(plan(["raw"], datasets=["mutag"]), store, tmp_path, on_this_machine(1), Watcher())
    assert wrong[0].exit_code == 2  # a set of graphs has no nodes to classify


def test_a_run_of_another_process_is_taken_over(tmp_path):
    """Two calls at once on one folder: the second finds what the first has made meanwhile."""
    (run,) = plan(["raw"])
    store = Store.read(tmp_path)
    Store.read(tmp_path).add(record_of(run, 12.5, seconds=7.0))
    seen = Seen()
    assert make_all([run], store, None, on_this_machine(1), seen) == []
    assert seen.done == [(run.key, 0.0)]
    assert [record.scores for record in store.records] == [{"accuracy": [12.5]}]


def test_a_study_takes_over_what_another_experiment_has_measured(tmp_path):
    (best,) = plan(["dgi"], datasets=["cora"])
    store = Store.read(tmp_path)
    store.add(record_of(best, 50.0, seconds=5.0), [2.0, 1.0])
    study = plan(["dgi"], name="order", datasets=["cora"])
    (same,) = [run for run in study if run.parameters == best.parameters]
    other_seed, noise = replace(same, seed=1), plan(["dgi"], name="noise", datasets=["cora"])
    assert make_all([same], store, None, on_this_machine(1), Watcher()) == []
    taken = store.find(same)
    assert (taken.experiment, taken.made_for, taken.point) == ("order", "node-classification", {"order": 2})
    assert (taken.scores, taken.seconds) == ({"accuracy": [50.0]}, 5.0)
    assert store.losses("order") == {same.key: [2.0, 1.0]}
    elsewhere = tmp_path / "nowhere"
    failed = make_all([*study, other_seed, *noise], store, elsewhere, on_this_machine(1), Watcher())
    assert len(failed) == len(study) - 1 + 1 + len(noise)  # these would have to be made, and there are no data


def test_the_peak_of_a_run_is_not_that_of_the_one_before():
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("only Linux can reset the peak")
    forget_peak()
    held = b"x" * (300 << 20)  # written to: pages that were never touched are not held
    before = peak_mb()
    del held
    forget_peak()
    assert peak_mb() < before - 250


# ---- in several processes --------------------------------------------------------------------------------------------


def test_processes_that_die_are_replaced_and_only_the_run_that_kills_its_own_fails(told_in):
    """They die as the kernel does it for lack of memory: without a word, in the middle of a run."""
    runs, seen, store = own_runs("KillsItself", 6), Seen(), Store.read(told_in / "out")
    (failure,) = make_all(runs, store, None, on_this_machine(2), seen)
    assert failure.run == runs[1]
    assert failure.message == (
        "Its process was ended by signal 9, for lack of memory perhaps. Run it again, with fewer --jobs."
    )
    assert [record.seed for record in store.records] == [0, 2, 3, 4, 5]
    assert sorted(seed for word, seed, _ in told(told_in) if word == "end") == [0, 2, 3, 4, 5]  # nothing done twice
    assert sorted(key[-1] for key, seconds in seen.done if seconds) == [0, 2, 3, 4, 5]
    assert multiprocessing.active_children() == []


def test_several_processes_make_what_one_makes_and_what_two_experiments_need_once(tmp_path):
    """Also where both ask for a run at the same time, and the first is still going on."""
    runs = [replace(run, variation={"epochs": 5}) for run in plan(["topoter"], seeds=2)[-2:]]
    twins = [replace(run, recipe=replace(run.recipe, experiment="order")) for run in runs]
    one, two = Store.read(tmp_path / "one"), Store.read(tmp_path / "two")
    for store, jobs in ((one, 1), (two, 2)):
        assert make_all([*runs, *twins], store, None, on_this_machine(jobs), Watcher()) == []
        assert [store.find(run).made_for for run in (*runs, *twins)] == [None] * 2 + ["node-classification"] * 2
    for run in runs:
        assert one.find(run).scores == two.find(run).scores
        assert two.find(run).versions.keys() >= {"git", "topoter", "torch"}
        assert two.find(run).peak_mb > 50
    assert one.losses("node-classification") == two.losses("node-classification")
    assert multiprocessing.active_children() == []
