"""From records to tables: seeds put together, rows in order, the paper's beside ours, what is won by training."""

from __future__ import annotations

import pytest
from results_samples import Found, graphs, nodes, record, records_of, study

from topoter.experiments import experiment
from topoter.experiments.experiment import Row
from topoter.experiments.runs import Run
from topoter.report.experiments import MOST_COLUMNS, tables_of
from topoter.report.groups import groups_of, means_of, rows_of
from topoter.report.judging import judge
from topoter.report.tables import Mark, Table


def column(table: Table, name: str) -> dict[str, object]:
    """A table's column by the names of its rows."""
    place = list(table.columns).index(name)
    return {row[0].text: row[place] for row in table.cells}


def made(name: str, method: str, dataset: str, recipe: str | None, scores: dict[str, list[float]], protocol: str = ""):
    """Records of one row: a seed for each value."""
    chosen = experiment(name)
    runs = chosen.runs(Row(method, recipe, protocol or chosen.protocols[0]), dataset, len(next(iter(scores.values()))))
    return [record(run, {metric: values[run.seed] for metric, values in scores.items()}, {}) for run in runs]


def test_the_table_has_seeds_restarts_marks_and_the_best() -> None:
    chosen = experiment("node-classification")
    (table,) = tables_of(chosen, records_of("node-classification", nodes, ["cora"]), seeds=2)
    assert list(table.columns) == ["method", "accuracy, ours", "accuracy, ours, selects on test", "accuracy, paper"]
    ours = column(table, "accuracy, ours")
    assert list(ours)[:2] == ["raw", "propagated"]
    assert ours["topoter (best)"].text == "84.6 ± 0.1"
    assert ours["topoter (best)"].strong
    assert ours["topoter (best)"].mark is Mark.BETTER
    assert ours["propagated"].mark is None  # the paper has no such row
    assert column(table, "accuracy, ours, selects on test")["topoter (paper)"].text == (
        "83.7 ± 0.2 (1 encoder, 3 restarts)"
    )
    assert column(table, "accuracy, paper")["topoter (best)"].text == "83.7 ± 0.3"


def test_untrained_encoders_of_two_recipes_have_a_row_each() -> None:
    found = records_of("graph-classification", graphs, ["mutag"], ["random-init"], seeds=1)
    (table,) = tables_of(experiment("graph-classification"), found, seeds=1)
    assert [row[0].text for row in table.cells] == ["random-init", "random-init (default)"]


def test_the_best_error_is_the_lowest() -> None:
    def found(run: Run) -> Found:
        scores = dict.fromkeys(experiment("equivariance").metrics, 50.0 + (run.recipe.name == "full"))
        return scores, {"panels": [], "prior_entropy": 1.0}

    table = tables_of(experiment("equivariance"), records_of("equivariance", found, ["sparrow-social"]), seeds=2)[0]
    assert [[cell.strong for cell in row[1:3]] for row in table.cells] == [[True, False], [False, True]]


def test_the_order_of_records_does_not_matter() -> None:
    chosen, records = experiment("order"), records_of("order", study, ["cora"], ["topoter", "propagated"])
    assert rows_of(chosen, records[::-1]) == rows_of(chosen, records)


def test_fewer_seeds_are_said() -> None:
    records = records_of("node-classification", nodes, ["cora"], seeds=3)
    records = [item for item in records if item.method != "gae" or item.seed == 0]
    (table,) = tables_of(experiment("node-classification"), records, seeds=3)
    assert column(table, "accuracy, ours")["gae"].text == "70.0 (1 seed)"
    assert "over 3 seeds" in table.note


def test_a_study_has_its_values_by_column_and_level_rows_in_all_of_them() -> None:
    chosen = experiment("order")
    (table,) = tables_of(chosen, records_of("order", study, ["cora"], ["topoter", "propagated"]), seeds=2)
    assert list(table.columns) == ["method", "1", "2", "3", "4", "5"]
    assert column(table, "3")["topoter (tuned)"].text == "76.5 ± 0.7"
    layers = made("layers", "topoter", "cora", "tuned", {"accuracy": [80.0]}) + made(
        "layers", "propagated", "cora", "tuned", {"accuracy": [79.0]}
    )
    (table,) = tables_of(experiment("layers"), layers, seeds=1)
    assert [cell.text for cell in table.cells[1]] == ["propagated", *["79.0"] * 5]
    assert table.caption == "cora: accuracy in %, by number of layers"


def test_a_wide_table_becomes_one_per_dataset() -> None:
    chosen = experiment("temporal-links")
    scores = {"AUC": [60.0, 62.0], "AP": [30.0, 31.0]}
    records = [
        item
        for dataset in ("sparrow-social", "ant-colony1")
        for method in ("gae", "vgae")
        for item in made("temporal-links", method, dataset, "paper", scores)
    ]
    records += made("temporal-links", "gae", "ant-colony1", "paper", {"AUC": [70.0], "AP": [35.0]}, "next-snapshot")
    sparrow, ants = tables_of(chosen, records, seeds=2)
    assert list(sparrow.columns) == ["method", "AUC, held-out pairs", "AUC, paper", "AP, held-out pairs", "AP, paper"]
    assert sparrow.caption == "sparrow-social: AUC and AP in %"
    assert "| gae (paper, inner product) | **61.0 ± 1.4** ≈ | 70.0 (1 seed) ▲ | 59.1 ± 5.9 |" in ants.markdown()
    wide = tables_of(experiment("node-classification"), records_of("node-classification", nodes, ["cora", "pubmed"]), 2)
    assert all(len(table.columns) <= MOST_COLUMNS for table in wide)


def test_the_six_colonies_are_averaged_seed_by_seed() -> None:
    chosen = experiment("temporal-links")
    colonies = [
        item
        for n in range(1, 7)
        for item in made("temporal-links", "gae", f"ant-colony{n}", "paper", {"AUC": [n, n + 6], "AP": [n / 2, n / 2]})
    ]
    groups = groups_of(chosen, colonies)
    (mean,) = means_of(chosen, groups)
    assert mean.dataset == "ant colonies, mean of six"
    assert mean.scores == {"AUC": [3.5, 9.5], "AP": [1.75, 1.75]}
    assert mean.published("AUC") == {"mean": 59.1, "std": 5.87}
    assert means_of(chosen, groups[:5]) == []


def test_rows_for_machines_have_the_first_metric_plain() -> None:
    scores = {"AUC": [90.0, 92.0], "AP": [80.0, 80.0], "validation AUC": [95.0, 97.0]}
    (row,) = rows_of(experiment("link-prediction"), made("link-prediction", "gae", "cora", "paper", scores))
    assert row | {"paper": None} == {
        "dataset": "cora", "method": "gae", "recipe": "paper", "protocol": "validation", "metric": "AUC",
        "mean": 91.0, "std": pytest.approx(2**0.5), "runs": [90.0, 92.0], "paper": None, "decoder": "inner product",
        "ap_mean": 80.0, "ap_std": 0.0, "val_mean": 96.0, "val_std": pytest.approx(2**0.5),
    }  # fmt: skip
    assert set(row["paper"]) == {"auc", "ap"}
    varied = rows_of(experiment("order"), records_of("order", study, ["cora"], ["topoter"]))
    assert [item["variation"] for item in varied] == [{"order": order} for order in range(1, 6)]


@pytest.mark.parametrize(
    ("method", "scores", "mark"),
    [
        (None, [], Mark.BETTER),  # the paper has 84.9 ± 0.2, ours 92
        ("random-init", [80.0, 80.0, 80.0], Mark.BETTER),
        ("random-init", [91.0, 91.1, 91.0], Mark.UNTRAINED),  # itself above the paper
        ("wl", [95.0, 95.0, 95.0], Mark.BETTER),  # another method is no control
    ],
)
def test_what_is_as_good_without_training_is_not_won_by_it(method: str | None, scores: list[float], mark: Mark) -> None:
    name, dataset = "graph-classification", "reddit-binary"
    records = made(name, "topoter", dataset, "best", {"accuracy": [92.0, 92.2, 91.8]})
    if method:
        records += made(name, method, dataset, None, {"accuracy": scores})
    groups = groups_of(experiment(name), records)
    (ours,) = [group for group in groups if group.method == "topoter"]
    assert judge(ours, "accuracy", groups) is mark
    cell = column(tables_of(experiment(name), records, 3)[0], "accuracy, ours")["topoter (best)"]
    assert cell.mark is mark


def test_a_control_of_links_has_the_same_decoder_and_is_held_seed_by_seed() -> None:
    chosen = experiment("link-prediction")  # the paper has 93.4 ± 1.1 on Cora
    ours = made("link-prediction", "topoter", "cora", "best", {"AUC": [94.6, 95.6, 96.6]})
    others = {
        ("gae", "paper"): Mark.BETTER,  # another decoder
        ("gae", "best"): Mark.UNTRAINED,
        ("no-pretraining", "best"): Mark.UNTRAINED,
        ("adamic-adar", "best"): Mark.BETTER,
    }
    for (method, recipe), mark in others.items():
        groups = groups_of(chosen, ours + made("link-prediction", method, "cora", recipe, {"AUC": [94.5, 95.8, 96.5]}))
        (group,) = [item for item in groups if item.method == "topoter"]
        assert judge(group, "AUC", groups) is mark, method
    # Below ours by 2 in every seed, and not above the paper's by more than its deviation: training made the difference.
    groups = groups_of(chosen, ours + made("link-prediction", "gae", "cora", "best", {"AUC": [92.6, 93.6, 94.6]}))
    assert judge(next(g for g in groups if g.method == "topoter"), "AUC", groups) is Mark.BETTER
