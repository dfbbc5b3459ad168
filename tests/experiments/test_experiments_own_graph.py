"""One's own graph under the protocol of the tables: rows, splits, the paired test and what it is called in words."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from topoter.errors import DataError, UsageError
from topoter.experiments import experiment
from topoter.experiments.own_graph import OwnData, OwnRow, difference, evaluate, rows_for, verdict
from topoter.experiments.recipes import DEFAULT, load_recipe
from topoter.experiments.runs import Run
from topoter.report.own_graph import own_json, own_table, write_own_page
from topoter.tasks.own_labels import UNLABELLED, as_labels, read_labels, with_split

pytestmark = pytest.mark.usefixtures("one_thread")


def planted(nodes: int = 240, seed: int = 0) -> tuple[Data, np.ndarray]:
    """Three groups that edges tell and features hardly do."""
    rng = np.random.default_rng(seed)
    group = np.arange(nodes) % 3
    same = group[:, None] == group[None]
    upper = np.triu(rng.random((nodes, nodes)) < np.where(same, 0.12, 0.005), 1)
    edges = np.stack(np.nonzero(upper | upper.T))
    x = np.eye(3)[group] + rng.normal(0, 1.2, (nodes, 3))
    x = np.hstack([x, rng.normal(0, 1, (nodes, 5))]).astype(np.float32)
    return Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edges), num_nodes=nodes), group


def own() -> OwnData:
    data, group = planted()
    words = [f"g{label}" if place % 2 else None for place, label in enumerate(group)]
    oracle = np.eye(3)[group].astype(np.float32)
    return OwnData("node", data, as_labels(words, "labels"), {"mine": oracle})


def test_rows_of_the_table_with_own_embeddings_and_a_verdict(tmp_path) -> None:
    rows = evaluate(own(), ["raw", "propagated", "topoter"], 3, parameters={"epochs": 5, "out_channels": 16})
    found = {row.method: row for row in rows}
    assert list(found) == ["largest class", "mine", "raw", "propagated", "topoter"]
    assert found["mine"].mean == 100
    assert found["largest class"].mean < found["raw"].mean < found["propagated"].mean
    said = verdict(rows)
    assert "over 3 splits, p = " in said[0]
    assert "propagated features" in said[0]
    assert verdict(rows[:-1])[-1] == "Best of all is mine, with 100.0 %."
    assert len(verdict([*rows[:-1], OwnRow("topoter", found["mine"].scores)])) == 1, "a tie is not the best of all"
    content = own_json("node", "edges.csv", rows, said, 1.0)
    assert content["rows"][2]["ours_minus_it"]["mean"] == pytest.approx(found["topoter"].mean - found["raw"].mean)
    write_own_page(
        tmp_path / "p.html",
        own_table(rows, "mine"),
        said,
        task="node",
        graph="<edges>",
        seeds=3,
        notes=["a & b"],
        command="topoter evaluate node",
    )
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "&lt;edges&gt;" in page
    assert "a &amp; b" in page


def test_test_labels_choose_nothing() -> None:
    data, group = planted()
    one = with_split(data, group, 0)
    other = group.copy()
    hidden = one.test_mask.numpy()
    other[hidden] = np.random.default_rng(1).permutation(other[hidden])
    chosen = experiment("node-classification")
    run = Run(load_recipe(chosen.name, "propagated", DEFAULT), "validation", 0)
    again = one.clone()
    again.y = torch.from_numpy(other)
    first, second = (chosen.measure(run, split, None) for split in (one, again))
    assert first.scores["validation accuracy"] == second.scores["validation accuracy"]
    assert first.scores["accuracy"] != second.scores["accuracy"]


def test_the_split_is_that_of_the_tables_where_labels_are_many() -> None:
    data, _ = planted()
    y = np.concatenate([np.zeros(100), np.ones(10), np.full(130, UNLABELLED)]).astype(np.int64)
    split = with_split(data, y, seed=3)
    counts = {
        name: [int((split[f"{name}_mask"] & (split.y == label)).sum()) for label in (0, 1, UNLABELLED)]
        for name in ("train", "val", "test")
    }
    assert counts == {"train": [20, 4, 0], "val": [20, 2, 0], "test": [60, 4, 0]}
    assert not torch.equal(split.train_mask, with_split(data, y, seed=4).train_mask)


def test_labels_of_a_file(tmp_path) -> None:
    path = tmp_path / "l.csv"
    path.write_text("who,job,age\n" + "".join(f"n{i},{'ab'[i % 2]},{i}\n" for i in range(20)))
    ids = [f"n{i}" for i in range(30)]
    with pytest.raises(DataError, match=r"several columns beside the ids \(job, age\): name one with --label-column"):
        read_labels(path, ids)
    with pytest.raises(UsageError, match=r"Unknown column of labels 'jobs'\. Did you mean 'job'\?"):
        read_labels(path, ids, "jobs")
    labels = read_labels(path, ids, "job")
    assert (labels.names, labels.column, len(labels.known)) == (["a", "b"], "job", 20)


def test_labels_as_they_come() -> None:
    labels = as_labels(["b", " a", "", None, *"ab" * 5, "c", float("nan")], "l.csv")
    assert labels.names == ["a", "b"]
    assert labels.y[:4].tolist() == [1, 0, UNLABELLED, UNLABELLED]
    assert labels.notes[0] == "l.csv: left out, because fewer than 5 nodes have it: c."
    assert as_labels([10, 9, 2] * 5, "l.csv").names == ["2", "9", "10"]
    with pytest.raises(DataError, match="two classes with 5 labelled nodes each are needed"):
        as_labels(["a"] * 50, "l.csv")
    with pytest.raises(DataError, match=r"0.5 1, 1.5 1.*\. Cut numbers into classes"):
        as_labels([place + 0.5 for place in range(30)], "l.csv")
    with pytest.raises(DataError, match="500 different labels"):
        as_labels(list(range(500)) * 2, "l.csv")


@pytest.mark.parametrize(
    ("ours", "plain", "words"),
    [
        ([80, 81, 82], [70, 71, 72.5], r"TopoTER adds 9\.8 ± 0\.3 points over raw features \(paired t-test over 3"),
        ([80, 81, 82], [80.2, 80.9, 82.1], r"raw features will do as well \(-0\.1 points for TopoTER"),
        ([70, 71, 72], [80, 81, 82.5], r"TopoTER is 10\.2 ± 0\.3 points below raw features"),
        (
            [70, 85, 72],
            [70, 71, 72],
            r"4\.7 ± 8\.1 points above raw features .* That may be luck: ask for more --seeds",
        ),
        ([70], [60], r"10\.0 points above raw features on one split"),
    ],
)
def test_the_verdict_in_words(ours: list[float], plain: list[float], words: str) -> None:
    rows = [OwnRow("raw", {"accuracy": plain}), OwnRow("topoter", {"accuracy": ours})]
    (said, *_) = verdict(rows)
    assert re.search(words, said), said


def test_what_training_adds_is_told_beside_the_same_encoder_untrained() -> None:
    named = {"propagated": [70, 71, 72.5], "random-init": [80.2, 80.9, 82.1], "topoter": [80, 81, 82]}
    first, second = verdict([OwnRow(name, {"accuracy": values}) for name, values in named.items()])
    assert first.startswith("TopoTER adds 9.8 ± 0.3 points over propagated features")
    assert second.startswith(
        "Its training makes no difference that 3 splits can tell (-0.1 ± 0.2 points beside the same"
    )


def test_parameters_reach_the_default_recipe_and_its_untrained_twin() -> None:
    rows = evaluate(own(), ["random-init", "topoter"], 1, parameters={"epochs": 0, "out_channels": 16})
    assert rows[-1].values == rows[-2].values
    wide = evaluate(own(), ["random-init"], 1, parameters={"encoder": "sgc", "out_channels": 1, "epochs": 9})
    assert wide[-1].values != rows[-2].values


def test_equal_differences_are_certain_or_none() -> None:
    one, other = OwnRow("a", {"accuracy": [2.0, 3.0]}), OwnRow("b", {"accuracy": [1.0, 2.0]})
    assert difference(one, other).p == 0
    assert difference(one, one).p == 1
    assert difference(OwnRow("a", {"m": [1.0]}), OwnRow("b", {"m": [1.0]})).p is None


def test_unknown_tasks_and_methods() -> None:
    with pytest.raises(UsageError, match="Own graphs can be evaluated for node, graph, link"):
        rows_for("temporal", [])
    assert rows_for("node", ["dgi"])[-2:] == ["topoter", "dgi"]
