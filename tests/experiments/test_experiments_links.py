"""The experiments on links and equivariance: every recipe runs, rows are named, the picture is whole."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from topoter.datasets import Snapshots, block_model
from topoter.errors import UsageError
from topoter.experiments import EXPERIMENTS, TASKS, experiment
from topoter.experiments.equivariance import Observed
from topoter.experiments.recipes import all_recipes, load_recipe, methods_of
from topoter.experiments.runner import execute
from topoter.experiments.runs import Run
from topoter.methods import methods_of as methods_for
from topoter.report.experiments import tables_of
from topoter.report.groups import rows_of
from topoter.structure.adjacency import Adjacency

pytestmark = pytest.mark.usefixtures("one_thread")
NAMES = ("link-prediction", "temporal-links", "equivariance")
RECIPES = [recipe for recipe in all_recipes() if recipe[0] in NAMES]
SMALLER = {"epochs": 2, "pretraining_epochs": 2, "walks": 1, "length": 5, "out_channels": 8, "hidden_channels": 8}


@pytest.fixture(scope="module")
def data():
    graph = block_model(120, 3, 6.0, 10, seed=1)
    parts = [block_model(40, 2, 5.0, 2, seed=seed).edge_index for seed in range(3)]
    edges = [Adjacency.from_edge_index(part, 40)[0].edges for part in parts]
    times = Snapshots("made", [str(n) for n in range(40)], [0, 1, 2], edges, [torch.ones(e.size(1)) for e in edges])
    graphs = [Adjacency.from_edge_index(part, 40)[0] for part in parts[:2]]
    return {"link-prediction": graph, "temporal-links": times, "equivariance": Observed(graphs, None)}


def small(recipe):
    kept = {
        name: min(value, SMALLER.get(name, value)) if name in SMALLER else value
        for name, value in recipe.parameters.items()
    }
    return dataclasses.replace(recipe, parameters=kept)


@pytest.mark.parametrize("which", RECIPES, ids=lambda which: "-".join(which))
def test_every_recipe_runs_two_epochs(data, which):
    chosen = experiment(which[0])
    recipe = small(load_recipe(*which))
    for protocol in chosen.protocols:
        if recipe.name == "completed" and protocol == "next-snapshot":  # of which nothing is known yet
            with pytest.raises(UsageError, match="has not happened yet"):
                execute(chosen, Run(recipe, protocol, 0), data[which[0]])
            continue
        record = execute(chosen, Run(recipe, protocol, 0), data[which[0]]).record
        assert set(chosen.metrics) <= set(record.scores)
        if "epochs" in recipe.parameters and not recipe.method.endswith("frozen"):
            assert record.details["epochs"] == 2


def test_tasks_and_methods_are_complete():
    assert TASKS["link"] in EXPERIMENTS
    assert TASKS["temporal"] in EXPERIMENTS
    for name, task in (("link-prediction", "link"), ("temporal-links", "temporal")):
        assert set(methods_of(name)) == set(methods_for(task))
        assert {row.method for row in experiment(name).rows} == set(methods_for(task))


def test_the_papers_settings_to_the_letter():
    for dataset, auc, ap in (("cora", 93.4, 92.7), ("citeseer", 92.7, 91.9), ("pubmed", 96.8, 96.8)):
        recipe = load_recipe("link-prediction", "topoter", dataset, "paper")
        assert (recipe.parameters["hidden_channels"], recipe.parameters["out_channels"]) == (32, 16)
        assert recipe.parameters["decoder"] == "inner product"
        assert (recipe.paper["auc"]["mean"], recipe.paper["ap"]["mean"]) == (auc, ap)
    for dataset, auc, ap in (
        ("sparrow-social", 67.7, 59.6),
        ("wildbird-network", 60.8, 54.9),
        ("ant-colony3", 70.0, 58.5),
    ):
        recipe = load_recipe("temporal-links", "topoter", dataset, "paper")
        assert (recipe.parameters["hidden_channels"], recipe.parameters["out_channels"]) == (32, 256)
        assert (recipe.paper["auc"]["mean"], recipe.paper["ap"]["mean"]) == (auc, ap)


def test_the_row_without_pretraining_differs_in_that_alone():
    for name in ("paper", "best"):
        ours = load_recipe("link-prediction", "topoter", "cora", name).parameters
        without = load_recipe("link-prediction", "no-pretraining", "cora", name).parameters
        assert {key for key in ours if key not in without} <= {
            "pretraining_epochs",
            "pretraining_learning_rate",
            "perturbation_rate",
            "scale_edges",
            "prior_bias",
            "recentre",
            "joint",
        }
        assert without == {key: ours[key] for key in without}
        for peer in ("gae", "vgae"):
            theirs = load_recipe("link-prediction", peer, "cora", name).parameters
            assert all(theirs[key] == ours[key] for key in ("decoder", "hidden_channels", "out_channels"))


@pytest.mark.parametrize("dataset", ["cora", "citeseer", "pubmed"])
@pytest.mark.parametrize("name", ["paper", "best"])
def test_trained_methods_may_train_for_equally_long(dataset, name):
    recipes = [load_recipe("link-prediction", method, dataset, name) for method in ("gae", "vgae", "topoter")]
    assert len({(recipe.parameters["epochs"], recipe.parameters["patience"]) for recipe in recipes}) == 1
    assert len({recipe.parameters["learning_rate"] for recipe in recipes}) == 1


def test_the_decoder_stands_beside_every_number(data):
    chosen = experiment("link-prediction")
    runs = [
        Run(small(load_recipe("link-prediction", "gae", "cora", name)), "validation", 0) for name in ("paper", "best")
    ]
    records = [execute(chosen, run, data["link-prediction"]).record for run in runs]
    (table,) = tables_of(chosen, records, 1)
    assert list(table.columns)[:5] == ["method", "AUC, ours", "AUC, paper", "AP, ours", "AP, paper"]
    assert list(table.columns)[5:] == [f"{name}, ours" for name in ("Hits@20", "Hits@50", "Hits@100", "MRR")]
    assert [row[0].text for row in table.cells] == ["gae (paper, inner product)", "gae (best, hadamard)"]
    assert table.cells[0][2].text == "91.0 ± 0.0"
    content = rows_of(chosen, records)[1]
    assert (content["metric"], content["decoder"]) == ("AUC", "hadamard")
    assert {"mean", "std", "ap_mean", "ap_std", "val_mean"} <= set(content)


def test_two_snapshots_have_no_next_one():
    runs = experiment("temporal-links").plan(["sparrow-social", "wildbird-network"], ["gae"], seeds=2)
    found = {(run.recipe.dataset, run.protocol) for run in runs}
    assert found == {
        ("sparrow-social", "held-out-pairs"),
        ("wildbird-network", "held-out-pairs"),
        ("wildbird-network", "next-snapshot"),
    }


def test_the_picture_has_four_panels_that_agree_of_the_first_seed(data):
    chosen = experiment("equivariance")
    recipe = small(load_recipe("equivariance", "topoter", "sparrow-social"))
    first, second = (execute(chosen, Run(recipe, "validation", seed), data["equivariance"]).record for seed in range(2))
    panels = torch.tensor(first.details["panels"])
    assert panels.shape[0] == 4
    torch.testing.assert_close(panels[0] + panels[2], panels[3], atol=2e-4, rtol=0)
    assert second.details["panels"] == []
    assert first.scores["error"] == [100 * first.details["error"]]
    assert sum(map(sum, first.details["confusion"])) == 40 * 39 // 2


def test_a_single_graph_is_transformed_at_random():
    graph = block_model(50, 2, 5.0, 6, seed=0)
    observed = Observed([Adjacency.from_edge_index(graph.edge_index, 50)[0]], graph.x)
    for name, rate in (("paper", 0.7), ("full-0.3", 0.3)):
        recipe = small(load_recipe("equivariance", "topoter", "cora", name))
        record = execute(experiment("equivariance"), Run(recipe, "validation", 0), observed).record
        assert record.details["transformation"].startswith(f"random, r = {rate}")


def test_other_rates_are_for_random_transformations_only():
    planned = {
        dataset: {run.recipe.name for run in experiment("equivariance").plan([dataset], None, 1)}
        for dataset in ("sparrow-social", "cora")
    }
    assert planned["sparrow-social"] == {"paper", "full"}
    assert planned["cora"] == {"paper", "full", "paper-0.3", "full-0.3", "paper-0.5", "full-0.5"}
