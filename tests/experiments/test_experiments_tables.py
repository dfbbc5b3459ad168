"""Tables: side by side while they can be read, else one per dataset; nothing empty, nothing said twice."""

from __future__ import annotations

from dataclasses import replace

from topoter.experiments import experiment
from topoter.experiments.outputs import write_outputs
from topoter.experiments.recipes import load_recipe
from topoter.experiments.runs import save_run
from topoter.experiments.tables import MOST_COLUMNS, Cell, group_means, markdown


def cell(method, dataset, *scores, name="temporal-links", protocol="held-out-pairs", **variation):
    auc = list(map(float, scores))
    return Cell(load_recipe(name, method, dataset), protocol, variation, {"AUC": auc, "AP": [s / 2 for s in auc]})


def test_a_wide_table_becomes_one_per_dataset():
    metrics = ("AUC", "AP")
    narrow = [cell("gae", name, 60) for name in ("sparrow-social",)]
    assert markdown(narrow, metrics, 1).startswith("| method | sparrow-social AUC, held-out pairs |")
    found = [cell(method, name, 60, 62) for name in ("sparrow-social", "ant-colony1") for method in ("gae", "vgae")]
    found += [cell("gae", "ant-colony1", 70, protocol="next-snapshot")]
    text = markdown(found, metrics, 2)
    sparrow, ants = text.split("\n\n**")
    assert sparrow.splitlines()[2] == "| method | AUC, held-out pairs | AUC, paper | AP, held-out pairs | AP, paper |"
    assert "next snapshot" not in sparrow  # an empty column
    assert ants.splitlines()[0] == "ant-colony1**"
    assert "| 61.0 ± 1.4 | 70.0 (1 seed) | 59.1 ± 5.9 | 30.5 ± 0.7 |" in ants
    assert all(line.count("|") <= MOST_COLUMNS + 1 for line in text.splitlines())


def test_a_study_names_what_changes_and_leaves_out_what_does_not():
    recipe = replace(load_recipe("node-classification", "topoter", "cora"), paper=None)
    found = [
        Cell(recipe, "validation", {"num_layers": layers, "hidden_channels": 64}, {"accuracy": [80.0]})
        for layers in (1, 2)
    ]
    level = replace(load_recipe("node-classification", "propagated", "cora"), paper=None)
    found.append(Cell(level, "validation", {}, {"accuracy": [79.0]}))  # nothing of it varies
    assert markdown(found, ["accuracy"], 1).splitlines() == [
        "| method | cora |",
        "| --- | --- |",
        "| topoter (best) num_layers=1 | 80.0 |",
        "| topoter (best) num_layers=2 | 80.0 |",
        "| propagated | 79.0 |",
    ]


def test_the_six_colonies_are_averaged_seed_by_seed():
    chosen = experiment("temporal-links")
    colonies = [cell("gae", f"ant-colony{n}", n, n + 6) for n in range(1, 7)]
    (mean,) = group_means(chosen, [cell("gae", "sparrow-social", 99), *colonies])
    assert mean.recipe.dataset == "ant colonies, mean of six"
    assert mean.scores == {"AUC": [3.5, 9.5], "AP": [1.75, 4.75]}
    assert mean.paper("AUC") == "59.1 ± 5.9"
    assert group_means(chosen, colonies[:5]) == []


def test_files_hold_all_seeds_that_are_there_whatever_was_asked_for(tmp_path):
    runs = experiment("order").plan(["cora"], ["propagated"], seeds=3)
    for run in runs:
        save_run(run, run.description() | {"result": {"test": 80.0 + run.seed, "val": 80.0}}, tmp_path)
    table, figure = write_outputs("order", runs[:1], tmp_path)
    text = table.read_text(encoding="utf-8")
    assert "| propagated order=1 | 81.0 ± 1.0 |" in text
    assert text.endswith("Mean and deviation over 3 seeds, fewer where said.\n")
    assert figure.is_file()
