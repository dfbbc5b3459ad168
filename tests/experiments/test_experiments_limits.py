"""A run that needs more time or memory than it may have is ended, and the limit it met is its result."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from own_methods import told
from test_experiments_runner import Seen, own_runs, plan, told_in  # noqa: F401
from test_experiments_store import record_of

from topoter.datasets import load_graphs
from topoter.errors import UsageError
from topoter.experiments import engines, experiment
from topoter.experiments.engines import on_this_machine
from topoter.experiments.limits import Limits, Stopped
from topoter.experiments.runner import Watcher, execute, limited, make, make_all
from topoter.experiments.store import Store
from topoter.report.experiments import tables_of
from topoter.report.found import read_results
from topoter.report.groups import rows_of
from topoter.report.results import markdown_of

SOON = 4 / 3600  # hours: enough to import PyTorch, not to wait for


def test_a_limit_is_the_result_of_the_run_and_other_seeds_are_not_tried(told_in):  # noqa: F811
    runs = limited(own_runs("Endless", 3), SOON, None)
    store, seen = Store.read(told_in / "out"), Seen()
    assert make_all(runs, store, None, on_this_machine(1), seen) == []
    assert [record.stopped for record in store.records] == [Stopped("time", SOON)] * 3
    assert [record.details for record in store.records] == [{}, {"as_seed": 0}, {"as_seed": 0}]
    assert store.records[0].seconds >= 4
    assert len(told(told_in)) <= 1  # begun once at most, and never ended
    assert make_all(runs, Store.read(told_in / "out"), None, on_this_machine(1), Watcher()) == []


def test_memory_is_a_limit_whether_it_is_filled_or_asked_for_at_once(told_in):  # noqa: F811
    *_, asks, fills, fails = limited(own_runs("Endless", 6), None, 1.0)
    for run in (asks, fills):
        made = make(run, None)
        assert (made.record.stopped, made.record.scores) == (Stopped("memory", 1.0), {})
    assert 1024 < made.record.peak_mb < 3000
    store = Store.read(told_in / "out")
    (failure,) = make_all([fails], store, None, on_this_machine(1), Watcher())
    assert (failure.message, failure.exit_code, failure.trace) == ("Seed 5 is wrong.", 2, "")


def test_within_its_limits_a_run_finds_what_it_finds_without_and_tells_its_progress(tmp_path):
    run = replace(plan(["topoter"])[-3], variation={"epochs": 5})  # recipe tuned
    seen: list[tuple[int, int]] = []
    plain, watched = make(run, None), make(replace(run, limits=Limits(1, 8)), None, lambda *step: seen.append(step[:2]))
    assert watched.record.scores == plain.record.scores
    assert watched.losses == plain.losses
    assert watched.record.stopped is None
    assert seen == [(epoch, 5) for epoch in range(1, 6)]


def test_seeds_of_a_row_share_a_process_and_one_that_dies_is_a_failure_and_no_result(told_in):  # noqa: F811
    runs = limited(own_runs("KillsItself", 2), 1, None)
    store = Store.read(told_in / "out")
    (failure,) = make_all(runs, store, None, on_this_machine(1), Watcher())
    assert failure.message.startswith("Its process was ended by signal 9")
    assert [record.seed for record in store.records] == [0]
    assert [(word, seed) for word, seed, _ in told(told_in)] == [("begin", 0), ("end", 0), ("begin", 1)]
    assert len({pid for *_, pid in told(told_in)} - {os.getpid()}) == 1


def test_a_kernel_without_chance_is_made_once_for_all_seeds():
    graphs = [graph for number, graph in enumerate(load_graphs("mutag")) if number % 4 == 0]
    chosen = experiment("graph-classification")
    first, second = chosen.plan(["mutag"], ["sp"], 2)
    execute(chosen, first, graphs)
    reused = execute(chosen, second, graphs).record
    assert reused.details["fitted_as_seed"] == 0
    anew = execute(chosen, second, list(graphs)).record
    assert "fitted_as_seed" not in anew.details
    assert anew.scores == reused.scores
    assert "fitted_as_seed" not in execute(chosen, *chosen.plan(["mutag"], ["gk"], 1), list(graphs)).record.details


def test_a_run_is_made_again_where_it_may_take_more(tmp_path):
    (run,) = plan(["raw"])
    store = Store.read(tmp_path)
    store.add(record_of(run, scores={}, stopped=Stopped("time", 2.0)))
    store.add(record_of(replace(run, seed=1), scores={}, stopped=Stopped("memory", 4.0)))
    for limits, done in ((None, True), (Limits(2, None), True), (Limits(3, None), False), (Limits(None, 9), False)):
        assert (store.done(replace(run, limits=limits)) is not None) == done
        assert store.find(replace(run, limits=limits)) is not None
    assert store.limit_of(replace(run, seed=7, limits=Limits(1, None))).seed == 0
    assert store.limit_of(replace(run, seed=7, limits=Limits(3, None))) is None
    assert store.limit_of(replace(run, seed=7, limits=Limits(3, 4))).seed == 1
    assert Store.read(tmp_path).records[0].stopped == Stopped("time", 2.0)


@pytest.mark.parametrize(("hours", "memory"), [(0, None), (None, -1.0)])
def test_a_limit_must_be_more_than_nothing(hours, memory):
    with pytest.raises(UsageError, match="must be more than 0"):
        limited(plan(["raw"]), hours, memory)


def test_tables_say_which_limit_it_was(tmp_path):
    chosen = experiment("graph-classification")
    runs = chosen.plan(["mutag"], ["wl", "topoter"], 1)
    ends = {"wl": Stopped("time", 24), "topoter": Stopped("memory", 16)}
    store = Store.read(tmp_path)
    for run in runs:
        kept = run.recipe.name == "best"
        store.add(record_of(run, 88.0) if kept else record_of(run, scores={}, stopped=ends[run.recipe.method]))
    (table,) = tables_of(chosen, store.records, 1)
    shown = {row[0].text: row[1] for row in table.cells}
    assert [shown[name].text for name in ("wl", "topoter (paper)", "topoter (best)")] == [
        "> 1 day",
        "out of memory",
        "88.0",
    ]
    assert all(cell.gap == (cell.mark is None) for cell in shown.values())
    assert table._numeric()[1]
    rows = rows_of(chosen, store.records)
    assert [(row["mean"], row.get("stopped")) for row in rows] == [
        (None, "> 1 day"),
        (None, "out of memory"),
        (88.0, None),
        (None, "out of memory"),
    ]
    text = markdown_of(read_results(tmp_path))
    assert "| wl | > 1 day | 80.7 ± 3.0 |" in text
    assert "| mutag | paper | out of memory | – | 89.2 ± 0.8 | – |" in text


def test_a_worker_whose_parent_is_gone_before_it_starts_ends_at_once(monkeypatch):
    def leave(code):
        raise SystemExit(code)

    monkeypatch.setattr(engines.os, "_exit", leave)
    with pytest.raises(SystemExit):
        engines.end_with(os.getpid())  # not the parent of this process, as one that is gone is not
