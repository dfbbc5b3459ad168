"""The store: what is added is there, whoever else writes and whenever one is killed; what is damaged is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from topoter.errors import DataError
from topoter.experiments import experiment
from topoter.experiments.limits import Limits, Stopped
from topoter.experiments.runs import Run
from topoter.experiments.store import Record, Store, plain, write_lines


def record_of(run: Run, test: float = 80.0, **fields) -> Record:
    recipe = run.recipe
    return Record(
        experiment=recipe.experiment, dataset=recipe.dataset, method=recipe.method, recipe=recipe.name,
        protocol=run.protocol, point=run.variation, seed=run.seed, parameters=run.parameters,
        **{
            "scores": {"accuracy": [test]}, "details": {}, "seconds": 1.0, "cpu_seconds": 1.0, "peak_mb": 9.0,
            "versions": {"topoter": "0"},
        } | fields,
    )  # fmt: skip


@pytest.fixture
def runs() -> list[Run]:
    return experiment("order").plan(["cora"], ["topoter", "propagated"], seeds=2)


def test_a_store_makes_the_folders_it_needs(tmp_path, runs):
    Store.read(tmp_path / "a" / "b").add(record_of(runs[0]), [])
    assert len(Store.read(tmp_path / "a" / "b").records) == 1


def test_what_is_added_is_read_again_sorted(tmp_path, runs):
    store = Store.read(tmp_path)
    for run in reversed(runs):
        losses = [1.2345678, 0.5] if run.recipe.method == "topoter" else []
        store.add(record_of(run, 70.0 + run.seed, details={"folds": [1, 2.5, None], "scaling": "unit"}), losses)
    again = Store.read(tmp_path)
    assert again.records == store.records == again.of("order")
    assert [record.key for record in again.records] == sorted(run.key for run in runs)
    assert all(again.find(run) == record_of(run, 70.0 + run.seed, details=again.records[0].details) for run in runs)
    curves = again.losses("order")
    assert list(curves) == sorted(run.key for run in runs if run.recipe.method == "topoter")
    assert all(losses == [1.23457, 0.5] for losses in curves.values())
    assert again.losses("noise") == {}
    first = json.loads((tmp_path / "order.jsonl").read_text().splitlines()[0])
    assert list(first)[:7] == ["experiment", "dataset", "method", "recipe", "protocol", "point", "seed"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] != ".") == [
        "order.jsonl",
        "order.losses.parquet",
    ]


def test_a_run_with_other_parameters_is_not_found_and_replaced(tmp_path, runs):
    store = Store.read(tmp_path)
    run = runs[0]
    assert store.find(run) is None
    store.add(record_of(run), [3.0, 2.0])
    other = replace(run, recipe=replace(run.recipe, parameters={**run.recipe.parameters, "epochs": 7}))
    assert other.key == run.key
    assert store.find(other) is None
    store.add(record_of(other, 50.0))
    assert [record.scores for record in Store.read(tmp_path).records] == [{"accuracy": [50.0]}]
    assert Store.read(tmp_path).losses("order") == {}  # those of the run before are gone with it


def test_a_run_that_a_limit_ended_stands_for_narrower_limits_and_for_its_row(tmp_path, runs):
    store, run = Store.read(tmp_path), runs[0]
    same_row = next(other for other in runs if other.key[:-1] == run.key[:-1] and other.seed != run.seed)
    other_row = next(other for other in runs if other.key[:-1] != run.key[:-1])
    ended = record_of(run, stopped=Stopped(by="time", limit=2.0))
    store.add(ended)
    three = (run, same_row, other_row)
    narrow, wide = ([replace(each, limits=Limits(hours=hours)) for each in three] for hours in (1, 3))
    assert [store.find(narrow[0]), store.done(narrow[0]), store.find(wide[0])] == [ended] * 3
    assert store.done(wide[0]) is None, "with more time it is still to be made"
    assert [store.limit_of(each) for each in narrow] == [ended, ended, None]
    assert [store.limit_of(each) for each in wide] == [None] * 3
    changed = replace(narrow[1].recipe, parameters={**run.recipe.parameters, "epochs": 7})
    assert store.limit_of(replace(narrow[1], recipe=changed)) is None
    store.add(record_of(run))
    assert store.done(wide[0]) == record_of(run)
    assert store.limit_of(narrow[1]) is None


def test_what_another_wrote_is_taken_in_and_what_nobody_changed_is_not_read_again(tmp_path, runs, monkeypatch):
    one, two = (Store.read(tmp_path / "new" / "folder") for _ in range(2))
    one.add(record_of(runs[0]))
    two.add(record_of(runs[1]))
    assert len(two.records) == 2
    assert one.of("order") == [record_of(runs[0])]
    one.refresh("order")
    assert one.records == two.records
    monkeypatch.setattr("topoter.experiments.store.read_lines", lambda *_: pytest.fail("read again"))
    one.refresh("order")
    two.refresh("order")


def test_without_a_folder_all_stays_in_memory(tmp_path, runs, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store.read(None)
    store.add(record_of(runs[0]), [1.0], {"maps/cora.json": []})
    assert store.find(runs[0]) == record_of(runs[0])
    assert store.left("maps/cora.json") is None
    assert list(tmp_path.iterdir()) == []


def test_what_a_run_leaves_beside_its_record(tmp_path, runs):
    store = Store.read(tmp_path)
    store.add(record_of(runs[0]), (), {"maps/cora.json": {"labels": [1, 2]}})
    assert store.left("maps/cora.json") == {"labels": [1, 2]}
    assert store.left("maps/pubmed.json") is None
    (tmp_path / "maps" / "cora.json").write_text("{")
    with pytest.raises(DataError, match=r"maps/cora\.json is damaged"):
        store.left("maps/cora.json")


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda line: line[:40], "truncated"),
        (lambda line: "<<<<<<< HEAD", "malformed"),
        (lambda line: line.replace('"seed":1', '"seed":"one"'), r"Expected `int`, got `str` - at `\$\.seed`"),
        (lambda line: line.replace('"seed":1', '"seed":1,"colour":"red"'), "unknown field `colour`"),
        (lambda line: line.replace('"experiment":"order"', '"experiment":"noise"'), "a run of 'noise'"),
        (lambda line: line.replace('"seed":1', '"seed":0'), "stands there twice"),
    ],
    ids=["cut off", "a merge", "wrong type", "unknown field", "wrong file", "twice"],
)
def test_a_damaged_line_is_named(tmp_path, runs, damage, text):
    store = Store.read(tmp_path)
    for run in runs[:2]:
        store.add(record_of(run))
    path = tmp_path / "order.jsonl"
    first, second = path.read_text().splitlines()
    path.write_text(f"{first}\n{damage(second)}\n")
    with pytest.raises(DataError, match=rf"order\.jsonl, line 2: .*{text}.*Mend the line, or delete it"):
        Store.read(tmp_path)
    with pytest.raises(DataError, match="line 2"):  # and it is not written over
        store.add(record_of(runs[2]))
    assert damage(second) in path.read_text()


def test_damaged_losses_are_named(tmp_path, runs):
    store = Store.read(tmp_path)
    store.add(record_of(runs[0]), [1.0])
    (tmp_path / "order.losses.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"order\.losses\.parquet is damaged"):
        store.losses("order")


def test_only_plain_values_are_kept(tmp_path, runs):
    encoded = msgspec.json.encode(
        record_of(runs[0], details={"loss": np.float32(0.5), "n": np.int64(3)}), enc_hook=plain
    )
    assert msgspec.json.decode(encoded, type=Record).details == {"loss": 0.5, "n": 3}
    with pytest.raises(TypeError, match="plain values"):
        msgspec.json.encode(record_of(runs[0], details={"z": object()}), enc_hook=plain)


WRITER = """
import sys
from pathlib import Path
from topoter.experiments.store import Record, Store

store = Store.read(Path(sys.argv[1]))
for seed in range(int(sys.argv[2]), int(sys.argv[3])):
    record = Record(
        experiment="order", dataset="cora", method="topoter", recipe="best", protocol="validation", seed=seed,
        scores={"accuracy": [1.0]}, parameters={}, details={}, seconds=1.0, cpu_seconds=1.0, peak_mb=1.0, versions={},
    )
    store.add(record, [float(seed)] * 300, {"maps/last.json": seed})
"""


def writer(folder, first, stop):
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), str(first), str(stop)])


def test_several_processes_write_at_once(tmp_path):
    processes = [writer(tmp_path, 30 * place, 30 * (place + 1)) for place in range(3)]
    for process in processes:
        assert process.wait(timeout=120) == 0
    store = Store.read(tmp_path)
    assert sorted(record.seed for record in store.records) == list(range(90))
    curves = store.losses("order")
    assert all(curves[record.key] == [float(record.seed)] * 300 for record in store.records)
    assert store.left("maps/last.json") in range(90)


def test_a_kill_in_the_middle_leaves_whole_files(tmp_path):
    """Killed again and again at odd moments; each time all that was there is there, and the next one goes on."""
    count = 0
    for place in range(4):
        process = writer(tmp_path, 1000 * place, 1000 * (place + 1))
        deadline = time.monotonic() + 120
        while len(Store.read(tmp_path).records) < count + 3 + place and process.poll() is None:
            assert time.monotonic() < deadline
        time.sleep(0.003 * place)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        store = Store.read(tmp_path)
        assert len(store.records) >= count + 3 + place
        count = len(store.records)
        curves = store.losses("order")
        assert all(curves[record.key] == [float(record.seed)] * 300 for record in store.records)


def test_the_committed_results_are_as_the_store_would_write_them(tmp_path):
    results = Path(__file__).parents[2] / "results"
    store = Store.read(results)
    assert len(store.records) > 3000
    for name in {record.experiment for record in store.records}:
        write_lines(tmp_path / "again.jsonl", sorted(store.of(name), key=lambda record: record.key))
        assert (tmp_path / "again.jsonl").read_bytes() == (results / f"{name}.jsonl").read_bytes()
        trained = {record.key for record in store.of(name) if record.details.get("epochs")}
        assert set(store.losses(name)) == trained
