"""The studies: one parameter varied, the recipes of node classification."""

from __future__ import annotations

from dataclasses import replace

import pytest

from topoter.datasets import block_model, random_split
from topoter.errors import UsageError
from topoter.experiments import EXPERIMENTS, experiment
from topoter.experiments.runner import execute
from topoter.experiments.store import Store
from topoter.report.found import read_results

pytestmark = pytest.mark.usefixtures("one_thread")

REFERENCES = ("propagated", "random-init")
PARAMETERS = {"order": "order", "layers": "num_layers", "perturbation-rate": "perturbation_rate"}


@pytest.fixture(scope="module")
def graph():
    data = block_model(num_nodes=300, num_blocks=3, mean_degree=6.0, num_features=20, seed=1)
    data.train_mask, data.val_mask, data.test_mask = random_split(data.y, seed=0, train_per_class=10, val_per_class=15)
    return data


def test_the_points_are_those_of_the_paper():
    values = {
        name: [variation[parameter] for variation in experiment(name).variations]
        for name, parameter in PARAMETERS.items()
    }
    assert values["order"] == values["layers"] == [1, 2, 3, 4, 5]
    assert values["perturbation-rate"] == [r / 10 for r in range(11)]
    assert all(variation["order"] == 1 for variation in experiment("perturbation-rate").variations)
    assert set(PARAMETERS) <= set(EXPERIMENTS)
    deep = experiment("layers").plan(None, ["topoter", "random-init"], 1)
    of_paper = ("hidden_channels", "out_channels", "order", "negative_slope")
    assert {tuple(run.parameters[name] for name in of_paper) for run in deep} == {(64, 512, 2, 0.1)}
    assert "out_channels" not in experiment("layers").plan(None, ["propagated"], 1)[0].parameters


@pytest.mark.parametrize("name", ["order", "perturbation-rate", "noise"])
def test_encoders_that_are_compared_have_the_width_of_the_paper(name):
    plan = experiment(name).plan(None, None, 1)
    widths = {(run.recipe.dataset, run.parameters["out_channels"]) for run in plan if "out_channels" in run.parameters}
    assert widths == {("cora", 512), ("citeseer", 512), ("pubmed", 256)}


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_point_runs(name, graph):
    study = experiment(name)
    runs = [
        replace(run, variation={**run.variation, **({"epochs": 2} if "epochs" in run.parameters else {})})
        for run in study.plan(["cora"], None, seeds=1)
        if run.variation
        in [run.recipe.of_interest(variation) for variation in (study.variations[0], study.variations[-1])]
    ]
    records = [execute(study, run, graph).record for run in runs]
    assert {record.method for record in records} >= {"topoter", *REFERENCES}
    assert all(record.experiment == name for record in records)
    assert all(record.point == run.variation for record, run in zip(records, runs))


def test_what_a_parameter_cannot_change_is_run_once():
    plan = experiment("perturbation-rate").plan(["cora"], None, seeds=2)
    of_method = {method: [run for run in plan if run.recipe.method == method] for method in ("topoter", *REFERENCES)}
    assert {method: len(runs) for method, runs in of_method.items()} == {
        "topoter": 11 * 2, "propagated": 2, "random-init": 2,
    }  # fmt: skip
    assert all(run.variation == {"order": 1} for method in REFERENCES for run in of_method[method])
    layers = experiment("layers").plan(["cora"], list(REFERENCES), seeds=1)
    assert [run.variation for run in layers if run.recipe.method == "propagated"] == [{}]
    assert len(layers) == 1 + 5


def test_noise_trains_one_encoder_per_run_and_scores_every_level(graph):
    study = experiment("noise")
    runs = study.plan(["cora", "citeseer"], None, seeds=2)
    assert {run.recipe.method for run in runs} == {"topoter", "dgi", "gae", *REFERENCES}
    assert all(run.parameters["order"] == 1 for run in runs)
    assert len(runs) == 2 * 5 * 2  # and not times the levels
    seen, records = [], []
    for run in runs:
        short = {"epochs": 2, "out_channels": 8}
        varied = run.variation | {name: value for name, value in short.items() if name in run.parameters}
        progress = lambda *step: seen.append(step[:2])  # noqa: E731
        records.append(execute(study, replace(run, variation=varied), graph, progress).record)
    assert (46, 46) in seen  # two epochs, then two kinds of noise at 11 levels, and their twins
    assert all(len(record.details[kind]) == 11 for record in records for kind in ("gaussian", "laplace"))
    assert all(len(record.scores) == 1 + 4 * 10 + 1 for record in records)
    assert study.metrics == (
        "no noise", "Gaussian 0.05", "Gaussian 0.10", "Laplace 0.05", "Laplace 0.10",
        "Gaussian 0.05 (clean scale)", "Gaussian 0.10 (clean scale)",
        "Laplace 0.05 (clean scale)", "Laplace 0.10 (clean scale)",
    )  # fmt: skip


def test_a_study_takes_every_method_that_has_what_it_varies(graph):
    order = experiment("order").plan(["cora"], ["sgc", "gmi"], seeds=1)
    assert [(run.recipe.method, run.variation) for run in order] == [
        (method, {"order": k}) for method in ("sgc", "gmi") for k in range(1, 6)
    ]
    layers = experiment("layers").plan(["cora"], ["cca-ssg", "gat"], seeds=1)
    assert {tuple(run.variation) for run in layers} == {("num_layers", "hidden_channels")}
    assert {run.parameters["num_layers"] for run in layers} == {1, 2, 3, 4, 5}
    with pytest.raises(UsageError, match="order varies order, which cca-ssg does not have"):
        experiment("order").plan(["cora"], ["cca-ssg"], seeds=1)
    with pytest.raises(UsageError, match=r"Unknown method 'gatt'\. Did you mean 'gat'"):
        experiment("layers").plan(["cora"], ["gatt"], seeds=1)


@pytest.mark.parametrize("method", ["gcn", "grace"])
def test_noise_meets_methods_with_labels_and_without(graph, method):
    study = experiment("noise")
    (run,) = study.plan(["cora"], [method], seeds=1)
    assert run.variation == {}  # there is no order to fix
    varied = {"epochs": 3} | ({"out_channels": 8} if method == "grace" else {})
    record = execute(study, replace(run, variation=varied), graph).record
    assert len(record.details["gaussian"]) == 11
    assert (record.details.get("trained_with") == "labels") is (method == "gcn")
    assert ("penalty" in record.details) is (method != "gcn")


def test_runs_of_further_methods_are_in_the_report(graph, tmp_path):
    study = experiment("order")
    runs = [replace(run, seed=0) for run in study.plan(["cora"], ["sgc"], seeds=1)][:2]
    store = Store.read(tmp_path)
    for run in runs:
        store.add(execute(study, run, graph).record)
    (found,) = read_results(tmp_path).found
    assert not found.left_out
    assert [group.method_name for group in found.groups] == ["sgc (with labels)"] * 2
    assert "sgc (with labels)" in found.tables()[0].markdown()
