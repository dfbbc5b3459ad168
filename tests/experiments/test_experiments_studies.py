"""The studies: one parameter varied, the recipes of node classification, a figure with every curve."""

from __future__ import annotations

from dataclasses import replace

import pytest

from topoter.datasets import block_model, random_split
from topoter.experiments import EXPERIMENTS, experiment
from topoter.experiments.runs import execute
from topoter.experiments.studies import AXES, REFERENCES, mean_by_value

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def graph():
    data = block_model(num_nodes=300, num_blocks=3, mean_degree=6.0, num_features=20, seed=1)
    data.train_mask, data.val_mask, data.test_mask = random_split(data.y, seed=0, train_per_class=10, val_per_class=15)
    return data


def test_the_points_are_those_of_the_paper():
    values = {name: [variation[AXES[name][0]] for variation in experiment(name).variations] for name in AXES}
    assert values["order"] == values["layers"] == [1, 2, 3, 4, 5]
    assert values["perturbation-rate"] == [r / 10 for r in range(11)]
    assert all(variation["order"] == 1 for variation in experiment("perturbation-rate").variations)
    assert set(AXES) <= set(EXPERIMENTS)


@pytest.mark.parametrize("name", AXES)
def test_every_point_runs_and_is_drawn(name, graph, tmp_path):
    study = experiment(name)
    runs = [
        replace(run, variation={**run.variation, **({"epochs": 2} if "epochs" in run.parameters else {})})
        for run in study.plan(["cora"], None, seeds=1)
        if run.variation in (study.variations[0], study.variations[-1])
    ]
    stored = [execute(study, run, graph) for run in runs]
    assert {run["method"] for run in stored} >= {"topoter", *REFERENCES}
    assert all(run["experiment"] == name for run in stored)
    (path,) = study.figures(stored, tmp_path / name)
    page = path.read_text(encoding="utf-8")
    assert all(run["method"] in page for run in stored)


def test_seeds_are_averaged_at_each_value():
    runs = [
        {"variation": {"order": order}, "result": {"test": test}} for order, test in ((2, 80.0), (1, 70.0), (2, 82.0))
    ]
    assert mean_by_value(runs, "order") == [(1, 70.0, 0.0), (2, 81.0, pytest.approx(2**0.5))]
