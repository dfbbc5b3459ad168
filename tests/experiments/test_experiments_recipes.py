"""Every recipe loads, fits its method and runs; a run in the store is found, a changed one is not."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from topoter import TopoTER
from topoter.datasets import block_model, load_graphs, random_split
from topoter.errors import UsageError
from topoter.experiments import EXPERIMENTS, ablation, experiment, recipes
from topoter.experiments.graph_classification import EXPERIMENT as GRAPH_EXPERIMENT
from topoter.experiments.node_classification import EXPERIMENT
from topoter.experiments.recipes import all_recipes, load_recipe, methods_of
from topoter.experiments.runner import execute
from topoter.experiments.runs import Run, peak_mb
from topoter.experiments.search import Trial
from topoter.experiments.sizes import model_sizes
from topoter.experiments.store import Store, read_lines
from topoter.methods import build
from topoter.methods import methods_of as methods_for
from topoter.report.experiments import tables_of

# The paper's tables, mean and deviation, for the methods that are built; one row per method, columns as printed.
PUBLISHED = {
    "node-classification": {
        "raw": "47.9 0.4 | 49.3 0.2 | 69.1 0.3",
        "gae": "80.9 0.4 | 66.7 0.4 | 77.1 0.7",
        "vgae": "80.0 0.2 | 64.1 0.2 | 76.9 0.1",
        "dgi": "81.1 0.1 | 71.4 0.2 | 77.0 0.2",
        "gmi": "82.2 0.2 | 71.4 0.5 | 78.5 0.1",
        "deepwalk": "67.2 | 43.2 | 65.3",
        "deepwalk+features": "70.7 0.6 | 51.4 0.5 | 74.3 0.9",
        "gcn": "81.5 | 70.3 | 79.0",
        "monet": "81.7 0.5 | - | 78.8 0.3",
        "gat": "83.0 0.7 | 72.5 0.7 | 79.0 0.3",
        "sgc": "81.0 0.0 | 71.9 0.1 | 78.9 0.0",
        "gwnn": "82.8 | 71.7 | 79.1",
        "mixhop": "81.9 0.4 | 71.4 0.8 | 80.8 0.6",
        "dfnet": "85.2 0.5 | 74.2 0.3 | 84.3 0.4",
        # Not in the paper: published elsewhere, which their recipes say.
        "cca-ssg": "84.0 0.4 | 73.1 0.3 | 81.0 0.4",
        "grace": "81.9 0.4 | 71.2 0.5 | 80.6 0.4",
        "bgrl": "82.7 0.6 | 71.1 0.8 | 79.6 0.5",
        "graphmae": "84.2 0.4 | 73.4 0.4 | 81.1 0.4",
        "maskgae": "84.68 | 73.80 | 83.78",
        "topoter": "83.7 0.3 | 71.7 0.5 | 79.1 0.1",
    },
    "graph-classification": {
        "rw": "83.72 1.50 | 57.85 1.30 | out of memory | out of memory | 50.68 0.26 | 34.65 0.19",
        "sp": "85.22 2.43 | 58.24 2.44 | 64.11 0.14 | 39.55 0.22 | 55.60 0.22 | 37.99 0.30",
        "gk": "81.66 2.11 | 57.26 1.41 | 77.34 0.18 | 41.01 0.17 | 65.87 0.98 | 43.89 0.38",
        "dgk": "87.44 2.72 | 60.08 2.55 | 78.04 0.39 | 41.27 0.18 | 66.96 0.56 | 44.55 0.52",
        "mlg": "87.94 1.61 | 63.26 1.48 | > 1 day | > 1 day | 66.55 0.25 | 41.17 0.03",
        "gcn": "85.6 5.8 | 64.2 4.3 | 50.0 0.0 | 20.0 0.0 | 74.0 3.0 | 51.9 3.8",
        "graphsage": "85.1 7.6 | 63.9 7.7 | - | - | 72.3 5.3 | 50.9 2.2",
        "gin-0": "89.4 5.6 | 64.6 7.0 | 92.4 2.5 | 57.5 1.5 | 75.1 5.1 | 52.3 2.8",
        "gin-eps": "89.0 6.0 | 63.7 8.2 | 92.2 2.3 | 57.0 1.7 | 74.3 5.1 | 52.1 3.6",
        "ngn": "89.4 1.6 | 66.8 1.8 | - | - | 74.8 2.0 | 51.3 1.5",
        "node2vec": "72.63 10.20 | 58.58 8.00 | - | - | - | -",
        "sub2vec": "61.05 15.80 | 59.99 6.38 | 71.48 0.41 | 36.68 0.42 | 55.26 1.54 | 36.67 0.83",
        "graph2vec": "83.15 9.25 | 60.17 6.86 | 75.78 1.03 | 47.86 0.26 | 71.10 0.54 | 50.44 0.87",
        "graphcl": "86.80 1.34 | - | 89.53 0.84 | 55.99 0.28 | 71.14 0.44 | 48.58 0.67",  # not the paper's, their own
        "graphmae": "88.19 1.26 | - | 88.01 0.19 | - | 75.52 0.66 | 51.63 0.52",  # likewise
        "wl": "80.72 3.00 | 57.97 0.49 | 68.82 0.41 | 46.06 0.21 | 72.30 3.44 | 46.95 0.46",
        "infograph": "89.01 1.13 | 61.65 1.43 | 82.50 1.42 | 53.46 1.03 | 73.03 0.87 | 49.69 0.53",
        "topoter": "89.25 0.81 | 64.59 1.26 | 84.93 0.18 | 55.52 0.20 | 73.46 0.38 | 49.68 0.31",
    },
    "link-prediction": {
        "spectral": "84.6 0.01, 88.5 0.00 | 80.5 0.01, 85.0 0.01 | 84.2 0.02, 87.7 0.01",
        "deepwalk": "83.1 0.01, 85.0 0.00 | 80.5 0.02, 83.6 0.01 | 84.2 0.00, 84.1 0.00",
        "gae": "91.0 0.02, 92.0 0.03 | 89.5 0.04, 89.9 0.05 | 96.4 0.00, 96.5 0.00",
        "censnet-vae": "91.7 0.02, 92.6 0.01 | 90.6 0.01, 91.6 0.01 | 95.5 0.03, 95.9 0.02",
        "vgae": "91.4 0.01, 92.6 0.01 | 90.8 0.02, 92.0 0.02 | 94.4 0.02, 94.7 0.02",
        "topoter": "93.4 1.15, 92.7 1.16 | 92.7 0.50, 91.9 0.74 | 96.8 0.70, 96.8 0.70",
    },
    "temporal-links": {
        "gae": "56.5 0.54, 52.1 0.26 | 59.1 5.87, 51.9 3.27 | 52.8 0.30, 47.9 0.33",
        "vgae": "55.0 0.17, 52.1 0.26 | 66.0 0.29, 56.0 0.44 | 52.3 0.25, 47.5 0.38",
        "topoter": "67.7 4.19, 59.6 2.51 | 70.0 0.30, 58.5 0.30 | 60.8 4.19, 54.9 2.68",
    },
}
CITATIONS = ("cora", "citeseer", "pubmed")
PRINTED_COLUMNS = {
    "node-classification": CITATIONS,
    "graph-classification": ("mutag", "ptc_mr", "reddit-binary", "reddit-multi-5k", "imdb-binary", "imdb-multi"),
    "link-prediction": CITATIONS,
    "temporal-links": ("sparrow-social", "ant-colony1", "wildbird-network"),
}
LINK_NAMES = ("link-prediction", "temporal-links", "equivariance")
# One recipe of each method for each set of parameters: most datasets share the default's.
GRAPH_RECIPES = list(
    {
        (method, repr(load_recipe(name, method, dataset, recipe).parameters)): (name, method, dataset, recipe)
        for name, method, dataset, recipe in all_recipes()
        if name == "graph-classification"
    }.values()
)
READ_BY_GENSIM = ("dgk", "node2vec", "sub2vec", "graph2vec")  # epochs without a loss that is told
NODE_RECIPES = [recipe for recipe in all_recipes() if recipe[0] == "node-classification"]


@pytest.fixture(scope="module")
def graph():
    data = block_model(num_nodes=300, num_blocks=3, mean_degree=6.0, num_features=20, seed=1)
    data.train_mask, data.val_mask, data.test_mask = random_split(data.y, seed=0, train_per_class=10, val_per_class=15)
    return data


SHORT = {"walks": 1, "length": 5, "levels": 1, "sampled_nodes": 10, "inner_folds": 2}


def two_epochs(recipe):
    """The same with as little to do as shows that it runs."""
    kept = {name: min(value, SHORT[name]) if name in SHORT else value for name, value in recipe.parameters.items()}
    return dataclasses.replace(recipe, parameters=kept | ({"epochs": 2} if "epochs" in kept else {}))


def test_no_recipe_is_left_out():
    """Those of nodes and graphs run two epochs here, the others in the tests of links; studies borrow theirs."""
    covered = {"node-classification", "ablation", "graph-classification", *LINK_NAMES}
    assert {recipe[0] for recipe in all_recipes()} == covered
    assert {experiment(name).recipes or name for name in EXPERIMENTS} == covered


def test_what_the_paper_does_not_say_is_said():
    """Every file of a recipe explains itself."""
    root = Path(recipes.__file__).parent / "recipes"
    files = sorted(root.rglob("*.toml"))
    assert len(files) == len({recipe[:3] for recipe in all_recipes()})
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert "#" in text, file
        if "[recipes.paper]" in text and file.parent.name == "topoter":
            assert "not stated" in text or "the rest is not" in text or "nothing else" in text, file


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_number_has_a_recipe_that_states_it(name):
    for method, row in PUBLISHED[name].items():
        for dataset, printed in zip(PRINTED_COLUMNS[name], row.split(" | "), strict=True):
            stated = load_recipe(name, method, dataset).paper
            if not printed[0].isdigit():  # a limit that the authors ran into, or nothing
                assert stated == (None if printed == "-" else {"limit": printed}), (method, dataset)
                continue
            values = [dict(zip(("mean", "std"), map(float, value.split()))) for value in printed.split(", ")]
            assert stated == (values[0] if len(values) == 1 else dict(zip(("auc", "ap"), values))), (method, dataset)
    built = {method for method in methods_of(name) if any(load_recipe(name, method, d).paper for d in CITATIONS)}
    assert built <= PUBLISHED[name].keys()


def test_every_method_has_recipes_for_the_papers_datasets():
    assert set(methods_of("node-classification")) == set(methods_for("node"))
    for method in methods_for("node"):
        found = {dataset for _, name, dataset, _ in NODE_RECIPES if name == method}
        nothing_published = method in ("propagated", "random-init", "node2vec", "graphter", "hop-svd", "spectral")
        settings_of_others = {"computers", "physics"} if method in ("gcn", "gat", "cca-ssg", "bgrl") else set()
        papers = set() if nothing_published else {"cora", "citeseer", "pubmed"}
        assert found == {"default"} | papers | settings_of_others


@pytest.mark.parametrize("which", NODE_RECIPES, ids=lambda which: "-".join(which[1:]))
def test_every_recipe_runs_two_epochs(graph, which):
    recipe = two_epochs(load_recipe(*which))
    record = execute(EXPERIMENT, Run(recipe, "validation", 0), graph).record
    assert 0 <= record.scores["accuracy"][0] <= 100
    if "epochs" in recipe.parameters:
        assert record.details["epochs"] == 2


@pytest.mark.parametrize("name", ablation.RECIPES)
def test_every_recipe_of_the_ablation_runs(graph, name):
    recipe = load_recipe("ablation", "topoter", "cora", name)
    short = dataclasses.replace(recipe, parameters={"epochs": 8} | recipe.parameters)
    record = execute(ablation.EXPERIMENT, Run(short, "validation", 0), graph).record
    assert 0 <= record.scores["accuracy"][0] <= 100


def test_the_default_recipe_is_the_estimators_default():
    recipe = load_recipe("node-classification", "topoter", "default")
    assert (recipe.name, recipe.parameters) == ("default", {})  # nothing but what TopoTER() does
    assert load_recipe("node-classification", "topoter", "cora").name == "best"
    assert load_recipe("node-classification", "topoter", "cora", "default").parameters == {}
    layers = TopoTER("sgc").effective_params()
    for name, value in load_recipe("node-classification", "topoter", "default", "tuned").parameters.items():
        assert layers[name] == value, name


def test_every_graph_method_has_a_recipe_for_every_dataset_and_the_papers_value_where_there_is_one():
    assert set(methods_of("graph-classification")) == set(methods_for("graph"))
    assert {row.method for row in GRAPH_EXPERIMENT.rows} == set(methods_for("graph"))
    for dataset in GRAPH_EXPERIMENT.datasets:
        for method in ("random-init", "degree-histogram"):
            assert load_recipe("graph-classification", method, dataset).paper is None
    assert load_recipe("graph-classification", "topoter", "mutag", "paper").paper == {"mean": 89.25, "std": 0.81}
    assert load_recipe("graph-classification", "topoter", "nci1").paper is None


@pytest.fixture(scope="module")
def graphs():
    """As few as ten folds can do with: eleven graphs of each class."""
    mutag = load_graphs("mutag")
    return [graph for label in (0, 1) for graph in [graph for graph in mutag if int(graph.y) == label][:11]]


@pytest.mark.parametrize("which", GRAPH_RECIPES, ids=lambda which: "-".join(which[1:]))
def test_every_graph_recipe_runs_two_epochs(graphs, which):
    recipe = two_epochs(load_recipe(*which))
    if recipe.method == "topoter":  # also the default, which says nothing
        recipe = dataclasses.replace(recipe, parameters=recipe.parameters | {"epochs": 2})
    seen = []
    run = Run(recipe, "validation", 0)
    made = execute(GRAPH_EXPERIMENT, run, graphs, lambda *step: seen.append(step[:2]))
    assert 0 <= made.record.scores["accuracy"][0] <= 100
    epochs = 2 if "epochs" in recipe.parameters else 0
    if build(recipe.method, "graph", recipe.parameters).needs_labels:  # trained in every fold
        assert seen == sorted(seen)
        assert seen[-1] == (20, 20)
        assert 1 <= len(made.losses) <= 2
        return
    assert seen == [(step, epochs + 10) for step in range(1, epochs + 11)]  # epochs, then folds
    assert len(made.losses) == (0 if recipe.method in READ_BY_GENSIM else epochs)


def test_the_default_graph_recipe_is_the_estimators_default():
    defaults = TopoTER(level="graph").effective_params()
    for name, value in load_recipe("graph-classification", "topoter", "default").parameters.items():
        assert defaults[name] == value, name


def test_the_papers_settings_for_graphs_to_the_letter():
    parameters = load_recipe("graph-classification", "topoter", "imdb-multi", "paper").parameters
    assert (parameters["encoder"], parameters["num_layers"], parameters["hidden_channels"]) == ("gin", 3, 32)
    assert (parameters["perturbation_rate"], parameters["learning_rate"], parameters["batch_size"]) == (0.5, 1e-3, 64)
    assert parameters["pooling"] == "sum"
    assert not parameters["scale_edges"]
    assert not parameters["prior_bias"]
    random_init = load_recipe("graph-classification", "random-init", "mutag", "paper").parameters
    assert random_init["hidden_channels"] == 32
    assert "epochs" not in random_init


def test_the_papers_settings_to_the_letter():
    for dataset, rate, width in (("cora", 0.7, 512), ("citeseer", 0.4, 512), ("pubmed", 0.7, 256)):
        parameters = load_recipe("node-classification", "topoter", dataset, "paper").parameters
        assert parameters["perturbation_rate"] == rate
        assert parameters["out_channels"] == width
        assert (parameters["order"], parameters["learning_rate"], parameters["patience"]) == (2, 1e-4, 20)
        assert parameters["negative_slope"] == 0.1
        assert not parameters["scale_edges"]
        assert not parameters["prior_bias"]


def test_reference_rows_share_the_settings_of_topoter():
    tuned = load_recipe("node-classification", "topoter", "citeseer", "tuned").parameters
    assert load_recipe("node-classification", "propagated", "citeseer").parameters["order"] == tuned["order"]
    random_init = load_recipe("node-classification", "random-init", "citeseer").parameters
    assert random_init["out_channels"] == tuned["out_channels"]
    assert "epochs" not in random_init
    assert load_recipe("node-classification", "raw", "cora").name == "tuned"
    assert load_recipe("node-classification", "raw", "default").name == "default"  # a graph of a user's own


def test_unknown_names_are_told_with_the_nearest():
    with pytest.raises(UsageError, match="Did you mean 'topoter'"):
        load_recipe("node-classification", "topotre", "cora")
    with pytest.raises(
        UsageError, match=r"no recipe 'bestt' of topoter .* only 'best' and 'paper' and 'tuned' and 'default'"
    ):
        load_recipe("node-classification", "topoter", "cora", "bestt")


def test_a_method_of_ones_own_has_an_empty_recipe():
    recipe = load_recipe("node-classification", "my_module:MyMethod", "cora")
    assert (recipe.name, recipe.parameters, recipe.paper) == ("own", {}, None)
    with pytest.raises(UsageError, match="a method of your own has none"):
        load_recipe("node-classification", "my_module:MyMethod", "cora", "best")


def test_a_run_in_the_store_is_found_unless_its_parameters_changed(graph, tmp_path):
    run = Run(load_recipe("node-classification", "propagated", "cora"), "validation", 0)
    store = Store.read(tmp_path)
    assert store.find(run) is None
    store.add(execute(EXPERIMENT, run, graph).record)
    record = Store.read(tmp_path).find(run)
    assert record.versions["topoter"]
    assert record.seconds > 0
    other = dataclasses.replace(run, recipe=dataclasses.replace(run.recipe, parameters={"order": 7}))
    assert store.find(other) is None


def test_peak_memory_is_that_of_the_process_itself():
    held = np.ones(40_000_000)  # 320 MB in this process, which the new one must not inherit
    code = "from topoter.experiments.runs import peak_mb; print(peak_mb())"
    other = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert peak_mb() > other + 200 * held[0]


def test_runs_are_kept_as_they_were_made(graph, tmp_path):
    run = Run(two_epochs(load_recipe("node-classification", "topoter", "cora", "tuned")), "validation", 4)
    made = execute(EXPERIMENT, run, graph)
    assert (made.record.seed, len(made.losses)) == (4, 2)
    assert made.record.details["prior_entropy"] > 0
    assert len(made.record.details["accuracy_by_type"]) == 4
    Store.read(tmp_path).add(made.record, made.losses)
    assert Store.read(tmp_path).records == [made.record]


def test_the_table_keeps_the_authors_protocol_in_a_column_of_its_own(graph):
    recipe = two_epochs(load_recipe("node-classification", "topoter", "cora", "paper"))
    runs = [Run(recipe, "validation", 0), Run(recipe, "validation", 1), Run(recipe, "paper", 0)]
    records = [execute(EXPERIMENT, run, graph).record for run in runs]
    assert [len(record.scores["accuracy"]) for record in records] == [1, 1, 50]
    (table,) = tables_of(EXPERIMENT, records, 2)
    assert [column.split(", ", 1)[1] for column in table.columns[1:]] == ["ours", "ours, selects on test", "paper"]
    assert table.cells[0][-1].text == "83.7 ± 0.3"
    assert table.cells[0][0].text == "topoter (paper)"


def test_a_method_with_labels_is_marked_and_has_no_classifier_to_restart(graph):
    recipe = two_epochs(load_recipe("node-classification", "gcn", "cora"))
    record = execute(EXPERIMENT, Run(recipe, "validation", 0), graph).record
    assert record.details["trained_with"] == "labels"
    (table,) = tables_of(EXPERIMENT, [record], 1)
    assert table.cells[0][0].text == "gcn (with labels)"
    with pytest.raises(UsageError, match="gcn predicts classes itself"):
        execute(EXPERIMENT, Run(recipe, "paper", 0), graph)


def test_a_plan_holds_every_row_and_the_authors_protocol_once():
    runs = EXPERIMENT.plan(None, None, seeds=3)
    datasets = len(EXPERIMENT.datasets)
    left_out = sum(len(row.except_on) for row in EXPERIMENT.rows)
    assert len(runs) == datasets * (len(EXPERIMENT.rows) - 1) * 3 + datasets - 3 * left_out
    assert len({run.key for run in runs}) == len(runs)
    only = EXPERIMENT.plan(["cora"], ["raw", "dgi"], seeds=2)
    assert {(run.recipe.dataset, run.recipe.method) for run in only} == {("cora", "raw"), ("cora", "dgi")}
    with pytest.raises(UsageError, match="Did you mean 'dgi'"):
        EXPERIMENT.plan(None, ["dgii"], seeds=1)


def test_a_variation_goes_over_the_recipe_and_into_the_key():
    recipe = load_recipe("node-classification", "topoter", "cora", "paper")
    run = Run(recipe, "validation", 2, {"order": 5})
    assert run.parameters == {**recipe.parameters, "order": 5}
    assert run.key == ("node-classification", "cora", "topoter", "paper", "validation", '{"order": 5}', 2)


def test_model_sizes_are_counted_not_copied():
    sizes = {size["method"]: size for size in model_sizes()}
    assert sizes["topoter"]["ours"] == sizes["topoter"]["paper"] == 736_260
    assert sizes["dgi"]["ours"] == sizes["dgi"]["paper"] - 1
    assert sizes["gmi"]["ours"] == sizes["gmi"]["paper"] == 1_730_052
    assert {size["method"]: size["ours"] for size in model_sizes(num_features=10)}["topoter"] == 10 * 512 + 512 + 2052


@pytest.mark.parametrize("dataset", ["cora", "citeseer", "pubmed"])
def test_what_was_searched_for_is_what_the_search_found(dataset):
    """The stored searches and the recipes that come from them agree."""
    stored = read_lines(Path(__file__).parents[2] / "results" / "search.jsonl", Trial)
    trials = [trial for _, trial in stored]
    for method, recipe, search, searched in (
        ("topoter", "best", f"node-{dataset}-topoter", "topoter"),
        ("topoter", "tuned", dataset, "topoter"),
        ("propagated-tuned", "best", dataset, "propagated"),
    ):
        own = [trial for trial in trials if (trial.search, trial.method) == (search, searched)]
        best = max(own, key=lambda trial: (trial.score, -trial.parameters.get("epochs", 0)))
        parameters = load_recipe("node-classification", method, dataset, recipe).parameters
        assert {name: parameters[name] for name in best.parameters} == best.parameters
