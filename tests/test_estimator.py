"""TopoTER as an estimator: shapes, saving, new graphs, every kind of input, and what each error says."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, Sequential

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.errors import DataError, TopoterError, UsageError

pytestmark = pytest.mark.usefixtures("one_thread")

GRAPH = block_model(40, 4, 4, 8, 0)
OTHER = block_model(28, 4, 3, 8, 1)


def small(**options) -> TopoTER:
    return TopoTER(**{"encoder": "sgc", "out_channels": 6, "epochs": 3, **options})


def error_of(model: TopoTER, graph=GRAPH, **options) -> str:
    with pytest.raises(TopoterError) as caught:
        model.fit(graph, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


# ---- fit, transform ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "width"),
    [
        ({}, 6),
        ({"encoder": "sgc", "order": 1, "num_layers": 2}, 6),
        ({"encoder": "gcn", "num_layers": 2, "hidden_channels": 5}, 6),
        ({"encoder": "gin", "num_layers": 3, "hidden_channels": 5}, 15),
        ({"sampler": "bernoulli", "perturbation_rate": 0.1}, 6),
        ({"sampler": "paired", "feature_scaling": "unit", "init": "glorot"}, 6),
    ],
)
def test_embeddings_have_a_row_per_node_and_are_those_of_transform(options, width):
    model = small(**options)
    z = model.fit_transform(GRAPH)
    assert z.shape == (40, width)
    assert z.dtype == np.float32
    assert np.isfinite(z).all()
    assert (model.transform(GRAPH) == z).all()
    assert model.fit(GRAPH) is model
    assert (model.transform(GRAPH) == z).all(), "fitted again with the same seed"
    assert len(model.history_) == 3
    assert model.n_features_in_ == 8
    assert str(model.cleaning_) == ""


def test_a_new_graph_with_other_nodes_is_embedded():
    model = small().fit(GRAPH)
    z = model.transform(OTHER)
    assert z.shape == (28, 6)
    # Row by row: the order of the nodes of the new graph does not matter.
    order = torch.randperm(28, generator=torch.Generator().manual_seed(0))
    edge_index = torch.argsort(order)[OTHER.edge_index]
    np.testing.assert_allclose(
        model.transform(Data(x=OTHER.x[order], edge_index=edge_index)), z[order], rtol=1e-4, atol=1e-5
    )
    lonely = Data(x=OTHER.x[:1], edge_index=torch.empty(2, 0, dtype=torch.int64))
    assert model.transform(lonely).shape == (1, 6)


def test_without_epochs_the_random_start_is_kept():
    model = small(epochs=0).fit(GRAPH)
    assert model.history_ == []
    assert model.transform(GRAPH).shape == (40, 6)


def test_progress_is_reported_epoch_by_epoch():
    seen = []
    model = small(on_epoch=seen.append).fit(GRAPH)
    assert seen == model.history_


def test_what_was_cleaned_is_told(caplog):
    caplog.set_level("INFO", "topoter")
    one_way = Data(x=GRAPH.x, edge_index=torch.tensor([[0, 1, 1, 2], [1, 2, 2, 2]]))
    model = small().fit(one_way)
    told = "dropped 1 self-loops, merged 1 duplicate edges, read 2 one-way edges as undirected"
    assert str(model.cleaning_) == told
    model.transform(one_way)  # the same graph: nothing new
    model.transform(Data(x=GRAPH.x, edge_index=torch.tensor([[0, 3], [1, 3]])))
    edges = [record.getMessage() for record in caplog.records if record.getMessage().startswith("Edges: ")]
    assert edges == [f"Edges: {told}.", "Edges: dropped 1 self-loops, read 1 one-way edges as undirected."]


@pytest.mark.parametrize("slope", [-0.1, 1.5])
def test_a_slope_that_is_no_leaky_relu_is_refused(slope):
    with pytest.raises(UsageError, match="'negative_slope' parameter of TopoTER must be between 0 and 1"):
        small(negative_slope=slope).fit(GRAPH)


def test_the_graph_given_is_not_changed():
    graph = GRAPH.clone()
    small(feature_scaling="unit").fit_transform(graph)
    assert graph.keys() == GRAPH.keys()
    assert all(torch.equal(graph[key], GRAPH[key]) for key in graph.keys())  # noqa: SIM118


def test_edge_weights_are_used():
    weighted = GRAPH.clone()
    weighted.edge_weight = torch.full((GRAPH.num_edges,), 3.0)
    model = small().fit(GRAPH)
    assert not np.allclose(model.transform(weighted), model.transform(GRAPH), atol=1e-3)


# ---- randomness --------------------------------------------------------------------------------------------


def test_the_seed_decides_everything_and_the_global_state_nothing():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        z = small().fit_transform(GRAPH)
        torch.manual_seed(2)
        assert (small().fit_transform(GRAPH) == z).all()
    assert not np.allclose(small(random_state=1).fit_transform(GRAPH), z)


def test_fit_leaves_the_random_state_of_numpy_and_python_alone():
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    small().fit(GRAPH)
    assert (np.random.get_state()[1] == before[0]).all()  # noqa: NPY002
    assert random.getstate() == before[1]


@pytest.mark.parametrize("encoder", ["sgc", "gcn", "gin"])
def test_fit_leaves_the_random_state_of_torch_alone(encoder):
    with torch.random.fork_rng(devices=[]):
        before = torch.get_rng_state()
        small(encoder=encoder).fit(GRAPH)
        assert torch.equal(torch.get_rng_state(), before)


def test_load_leaves_the_random_state_of_torch_alone(tmp_path):
    with torch.random.fork_rng(devices=[]):
        small().fit(GRAPH).save(tmp_path / "m.topoter")
        before = torch.get_rng_state()
        TopoTER.load(tmp_path / "m.topoter")
        assert torch.equal(torch.get_rng_state(), before)


# ---- saving ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["sgc", "gcn", "gin"])
def test_a_saved_model_transforms_as_before(tmp_path, encoder):
    options = {"order": 1, "num_layers": 2, "hidden_channels": 5, "negative_slope": 0.1, "feature_scaling": "unit"}
    model = small(encoder=encoder, **options, scale_edges=False, random_state=3).fit(GRAPH)
    path = tmp_path / "m.topoter"
    model.save(path)
    loaded = TopoTER.load(path)
    assert loaded.get_params() == model.effective_params()
    assert loaded.history_ == model.history_
    assert loaded.n_features_in_ == 8
    for graph in (GRAPH, OTHER):
        assert (loaded.transform(graph) == model.transform(graph)).all()
    assert list(tmp_path.iterdir()) == [path]


def test_parts_of_a_model_that_share_their_memory_are_saved(tmp_path):
    model = TopoTER(order=1, epochs=2, random_state=0).fit(GRAPH)  # the directions of hop 1 serve twice
    model.save(tmp_path / "m.topoter")
    loaded = TopoTER.load(tmp_path / "m.topoter")
    assert (loaded.transform(GRAPH) == model.transform(GRAPH)).all()
    assert loaded.kept_epoch_ == model.kept_epoch_


def test_feature_names_are_saved_and_checked(tmp_path):
    graph = GRAPH.clone()
    graph.feature_names = list("abcdefgh")
    small().fit(graph).save(tmp_path / "m.topoter")
    model = TopoTER.load(tmp_path / "m.topoter")
    assert model.feature_names_in_.tolist() == list("abcdefgh")
    model.transform(graph)
    model.transform(GRAPH)  # without names only their number is checked
    graph.feature_names = list("abcdefgz")
    with pytest.raises(DataError) as caught:
        model.transform(graph)
    assert str(caught.value) == (
        "The features are not those the model was fitted on: missing 'h', not known to the model 'z'."
    )


def test_features_in_another_order_are_matched_by_name():
    graph = GRAPH.clone()
    graph.feature_names = list("abcdefgh")
    model = small().fit(graph)
    turned = graph.clone()
    turned.x, turned.feature_names = graph.x.flip(1), list("hgfedcba")
    assert (model.transform(turned) == model.transform(graph)).all()
    assert turned.feature_names == list("hgfedcba"), "the graph given is not changed"


def test_names_are_forgotten_with_the_next_fit():
    graph = GRAPH.clone()
    graph.feature_names = list("abcdefgh")
    model = small().fit(graph)
    assert hasattr(model, "feature_names_in_")
    assert not hasattr(model.fit(GRAPH), "feature_names_in_")


def test_another_number_of_features_is_refused():
    model = small().fit(GRAPH)
    with pytest.raises(DataError) as caught:
        model.transform(Data(x=torch.ones(3, 5), edge_index=torch.tensor([[0], [1]])))
    assert str(caught.value) == "The graph has 5 features per node; the model was fitted on 8."


def test_an_unfitted_model_says_so(tmp_path):
    with pytest.raises(UsageError) as caught:
        small().transform(GRAPH)
    assert str(caught.value) == "This TopoTER is not fitted yet: call fit(graph) first, or load a saved one."
    with pytest.raises(UsageError, match="not fitted yet: there is nothing to save"):
        small().save(tmp_path / "m.topoter")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [{"random_state": np.int64(3)}, {"order": np.int64(1)}], ids=["seed", "order"])
def test_parameters_may_be_numpy_numbers(tmp_path, options):
    small(**options).fit(GRAPH).save(tmp_path / "m.topoter")


# ---- scikit-learn's conventions ----------------------------------------------------------------------------


def test_parameters_are_read_set_and_cloned():
    model = small(encoder="gcn", perturbation_rate=0.25)
    assert model.get_params()["perturbation_rate"] == 0.25
    assert model.set_params(order=1, encoder="sgc") is model
    assert (model.order, model.encoder) == (1, "sgc")
    copy = clone(model.fit(GRAPH))
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "model_")
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        model.set_params(depth=2)


def test_parameters_are_stored_as_given_and_checked_by_fit():
    model = TopoTER(perturbation_rate=1.5)
    assert model.perturbation_rate == 1.5
    assert error_of(model) == ("The 'perturbation_rate' parameter of TopoTER must be between 0 and 1. Got 1.5 instead.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": -1}, "The 'epochs' parameter of TopoTER must be a whole number, at least 0. Got -1 instead."),
        ({"patience": 0}, "The 'patience' parameter of TopoTER must be a whole number, at least 1. Got 0 instead."),
        ({"order": 0}, "The 'order' parameter of TopoTER must be a whole number, at least 1. Got 0 instead."),
        (
            {"out_channels": 0},
            "The 'out_channels' parameter of TopoTER must be a whole number, at least 1. Got 0 instead.",
        ),
        ({"num_layers": 0}, "The 'num_layers' parameter of TopoTER must be a whole number, at least 1. Got 0 instead."),
        (
            {"learning_rate": 0},
            "The 'learning_rate' parameter of TopoTER must be a positive number. Got 0 instead.",
        ),
        (
            {"encoder": 3},
            "The 'encoder' parameter of TopoTER must be a name or a torch module. Got 3 instead.",
        ),
        ({"encoder": "sgd"}, "Unknown encoder 'sgd'. Did you mean 'sgc'?"),
        ({"encoder": "GCN"}, "Unknown encoder 'GCN'. Did you mean 'gcn'?"),
        (
            {"encoder": "transformer"},
            "Unknown encoder 'transformer'. Known: gcn, gin, hops, package.module:Class, profile, sgc.",
        ),
        ({"init": "ortogonal"}, "Unknown init 'ortogonal'. Did you mean 'orthogonal'?"),
        ({"sampler": "exakt"}, "Unknown sampler 'exakt'. Did you mean 'exact'?"),
        ({"feature_scaling": "units"}, "Unknown feature scaling 'units'. Did you mean 'unit'?"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name_and_value(options, message):
    assert error_of(small(**options)) == message


@pytest.mark.parametrize("value", [0, -1])
def test_hidden_channels_below_one_are_refused(value):
    assert error_of(small(num_layers=2, hidden_channels=value)) == (
        f"The 'hidden_channels' parameter of TopoTER must be a whole number, at least 1. Got {value} instead."
    )


def test_a_device_that_is_not_there_is_named():
    assert error_of(small(device="abacus")).startswith("The device 'abacus' cannot be used here: ")


def test_a_graph_without_edges_is_refused():
    message = error_of(small(), Data(x=torch.ones(3, 2), edge_index=torch.tensor([[1], [1]])))
    assert message.startswith("The graph has 3 nodes and no edges between different nodes")


def test_something_that_is_no_graph_is_refused():
    for several in ([[0, 1]], DataLoader([Data(x=torch.ones(3, 2), num_nodes=3)])):
        message = error_of(small(), several)
        assert message.endswith(f"{type(several).__qualname__} instead. Several graphs go with level='graph'.")


# ---- every kind of input -----------------------------------------------------------------------------------


def test_networkx_scipy_and_pyg_give_the_same_embeddings():
    z = small().fit_transform(GRAPH)
    source, target = GRAPH.edge_index.numpy()
    matrix = scipy.sparse.coo_matrix((np.ones(len(source)), (source, target)), shape=(40, 40))
    x = GRAPH.x.numpy()
    bare = nx.Graph()
    bare.add_nodes_from(range(40))
    bare.add_edges_from(zip(source.tolist(), target.tolist()))
    described = bare.copy()
    for node in described:
        described.nodes[node]["x"] = x[node].tolist()
    found = {
        "scipy": small().fit_transform(matrix, x=x),
        "scipy csr, sparse x": small().fit_transform(matrix.tocsr(), x=scipy.sparse.csr_matrix(x)),
        "networkx": small().fit_transform(bare, x=x),
        "networkx attributes": small().fit_transform(described),
        "pyg, x apart": small().fit_transform(Data(edge_index=GRAPH.edge_index, num_nodes=40), x=x),
    }
    for name, other in found.items():
        np.testing.assert_array_equal(other, z, err_msg=name)


def test_sparse_bag_of_words_features_are_accepted():
    generator = torch.Generator().manual_seed(0)
    x = (torch.rand(40, 200, generator=generator) < 0.02).float()
    model = small()
    assert model.fit_transform(Data(x=x, edge_index=GRAPH.edge_index)).shape == (40, 6)
    assert model.n_features_in_ == 200


def test_a_pyg_batch_keeps_its_graphs_apart():
    batch = Batch.from_data_list([GRAPH, OTHER])
    seen = []

    def across(h, h_t, transformation):
        seen.append(transformation)
        return (h_t - h).square().sum(), {}

    small(objective=across, epochs=1).fit(batch)
    assert seen[0].adjacency.ptr.tolist() == [0, 40, 68]
    assert bool(((seen[0].pairs[0] < 40) == (seen[0].pairs[1] < 40)).all()), "no pair crosses two graphs"


# ---- an encoder of one's own -------------------------------------------------------------------------------


@pytest.fixture
def modules() -> dict[str, torch.nn.Module]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        stack = [
            (GCNConv(8, 5), "x, edge_index -> h"),
            torch.nn.ReLU(),
            (GCNConv(5, 7), "h, edge_index -> h"),
        ]
        return {"conv": GCNConv(8, 7), "stack": Sequential("x, edge_index", stack)}


@pytest.mark.parametrize("name", ["conv", "stack"])
def test_a_pyg_module_is_an_encoder(modules, name):
    before = [parameter.detach().clone() for parameter in modules[name].parameters()]
    model = small(encoder=modules[name], learning_rate=0.01, epochs=30)
    z = model.fit_transform(GRAPH)
    assert z.shape == (40, 7)
    assert model.transform(OTHER).shape == (28, 7)
    trained = list(model.model_.encoder.parameters())
    assert any(not torch.equal(a, b) for a, b in zip(before, trained))


def test_an_untrained_pyg_module_gives_what_it_gives_by_itself(modules):
    module = modules["conv"]
    expected = module(GRAPH.x, GRAPH.edge_index).detach().numpy()
    z = small(encoder=module, epochs=0, feature_scaling="none").fit_transform(GRAPH)
    np.testing.assert_allclose(z, expected, rtol=1e-5, atol=1e-6)


def test_fit_does_not_change_the_module_it_was_given(modules):
    module = modules["conv"]
    before = module.lin.weight.detach().clone()
    model = small(encoder=module, learning_rate=0.01, epochs=30)
    first = model.fit_transform(GRAPH)
    assert torch.equal(module.lin.weight, before)
    assert (model.fit_transform(GRAPH) == first).all()


def test_a_module_of_another_shape_is_refused():
    class Readout(torch.nn.Module):
        def forward(self, x, edge_index):
            return x.mean(0, keepdim=True)

    assert error_of(small(encoder=Readout())) == (
        "The encoder must map (x, edge_index) to [40, F]. Got [1, 8] instead."
    )


def test_the_decoder_may_have_several_layers():
    model = small(decoder_layers=3).fit(GRAPH)
    assert len(model.model_.learned["types-from-change"].decoder.layers) == 3
    assert error_of(small(decoder_layers=0)) == (
        "The 'decoder_layers' parameter of TopoTER must be a whole number, at least 1. Got 0 instead."
    )


def test_what_was_changed_is_counted_over_all_snapshots():
    times = [torch.tensor([[0, 1, 1], [1, 2, 1]]), torch.tensor([[0, 1, 0], [1, 0, 2]])]
    model = small(epochs=1).fit_snapshots(times)
    assert (model.num_nodes_, model.num_edges_) == (3, 4)
    assert (model.cleaning_.self_loops, model.cleaning_.one_way) == (1, 3)
