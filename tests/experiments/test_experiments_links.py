"""The experiments on links and equivariance: every recipe runs, rows are named, the figure is whole."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from topoter.adjacency import Adjacency
from topoter.datasets import Snapshots, block_model
from topoter.experiments import EXPERIMENTS, TASKS, experiment
from topoter.experiments.equivariance import Observed
from topoter.experiments.outputs import draw_figures
from topoter.experiments.recipes import all_recipes, load_recipe, methods_of
from topoter.experiments.runs import Run, execute
from topoter.experiments.tables import cells, markdown
from topoter.tasks import link_prediction, temporal_links

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
        stored = json.loads(json.dumps(execute(chosen, Run(recipe, protocol, 0), data[which[0]])))
        assert set(chosen.metrics) <= set(chosen.scores(stored["result"]))
        if "epochs" in recipe.parameters and not recipe.method.endswith("frozen"):
            assert stored["result"]["epochs"] == 2


def test_tasks_and_methods_are_complete():
    assert TASKS["link"] in EXPERIMENTS
    assert TASKS["temporal"] in EXPERIMENTS
    assert set(methods_of("link-prediction")) == set(link_prediction.METHODS)
    assert set(methods_of("temporal-links")) == set(temporal_links.METHODS)
    for name, methods in (("link-prediction", link_prediction.METHODS), ("temporal-links", temporal_links.METHODS)):
        assert {row.method for row in experiment(name).rows} == set(methods)


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
    found = cells(chosen, [(run, execute(chosen, run, data["link-prediction"])) for run in runs])
    header, _, first, second = markdown(found, chosen.metrics, 1).strip().splitlines()
    assert header == "| method | cora AUC, ours | cora AUC, paper | cora AP, ours | cora AP, paper |"
    assert first.startswith("| gae (paper, inner product) |")
    assert second.startswith("| gae (best, hadamard) |")
    assert "| 91.0 ± 0.0 |" in first
    content = found[1].as_dict()
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


def test_the_figure_has_four_panels_on_one_scale_and_its_numbers(data, tmp_path):
    chosen = experiment("equivariance")
    recipe = small(load_recipe("equivariance", "topoter", "sparrow-social"))
    stored = [execute(chosen, Run(recipe, "validation", seed), data["equivariance"]) for seed in range(2)]
    (path,) = draw_figures(chosen, stored, tmp_path)
    page = path.read_text(encoding="utf-8")
    for name in ("H(t-1)", "H(t)", "dH^ of the estimated dA^", "H(t-1) + dH^", "keep connected"):
        assert name in page
    assert f"{stored[0]['result']['error']:.3f}" in page
    panels = torch.tensor(stored[0]["result"]["panels"])
    assert panels.shape[0] == 4
    torch.testing.assert_close(panels[0] + panels[2], panels[3], atol=2e-4, rtol=0)
    assert sum(map(sum, stored[0]["result"]["confusion"])) == 40 * 39 // 2


def test_a_single_graph_is_transformed_at_random():
    graph = block_model(50, 2, 5.0, 6, seed=0)
    observed = Observed([Adjacency.from_edge_index(graph.edge_index, 50)[0]], graph.x)
    recipe = small(load_recipe("equivariance", "topoter", "cora"))
    stored = execute(experiment("equivariance"), Run(recipe, "validation", 0), observed)
    assert stored["result"]["transformation"].startswith("random, r = 0.7")
