"""Sets of graphs: batches equal their graphs one by one, resume is exact, errors name the graph."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_add_pool, global_max_pool, global_mean_pool

from dense_oracle import as_set, batch_of, random_graph
from topoter import TopoTER
from topoter.datasets import load_graphs
from topoter.encoders import GIN
from topoter.errors import DataError, UsageError
from topoter.graphs import read_graphs
from topoter.pretext.transformation import SAMPLERS
from topoter.structure.graph_sets import GraphSet, pool
from topoter.training import Callback, Checkpoint, Interrupted
from topoter.training.batches import ShuffledBatches

pytestmark = pytest.mark.usefixtures("one_thread")


def some_graphs(count: int = 9, channels: int = 3, weighted: bool = False) -> list[Data]:
    """Small graphs of different sizes: one is complete, one has no edges."""
    generator = torch.Generator().manual_seed(5)
    graphs = []
    for number in range(count):
        adjacency = random_graph(4 + number, {0: 1.1, 1: 0.0}.get(number, 0.4), number, weighted)
        x = torch.rand(adjacency.num_nodes, channels, generator=generator)
        weight = {} if adjacency.weight is None else {"edge_weight": adjacency.edge_weight}
        graphs.append(Data(x=x, edge_index=adjacency.edge_index, **weight))
    return graphs


GRAPHS = some_graphs()


def small(**options) -> TopoTER:
    """The paper's kind of encoder; the default one is in test_encoders_profile.py."""
    return TopoTER(
        **{"level": "graph", "encoder": "gin", "hidden_channels": 4, "num_layers": 2, "epochs": 3, "batch_size": 4}
        | options
    )


# ---- batches -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_is_its_graphs_side_by_side_in_the_order_asked_for(weighted):
    graphs = some_graphs(weighted=weighted)
    graph_set, _ = GraphSet.from_graphs(graphs)
    which = torch.tensor([6, 1, 0, 3])
    x, adjacency = graph_set.batch(which)
    alone = [GraphSet.from_graphs([graphs[number]])[0] for number in which]
    expected = batch_of(*(one.adjacency for one in alone))
    assert torch.equal(x, torch.cat([graphs[number].x for number in which]))
    assert torch.equal(adjacency.ptr, expected.ptr)
    assert torch.equal(adjacency.edges, expected.edges)  # sorted, as an adjacency must be
    if weighted:
        assert torch.equal(adjacency.weight, torch.cat([one.adjacency.weight for one in alone]))
    else:
        assert adjacency.weight is None


def test_cleaning_counts_over_all_graphs():
    one_way = [Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 2, 1, 2]])) for _ in range(3)]
    graph_set, cleaning = GraphSet.from_graphs(one_way)
    assert (cleaning.self_loops, cleaning.one_way) == (6, 6)
    assert graph_set.adjacency.edges.t().tolist() == [[0, 1], [1, 2], [3, 4], [4, 5], [6, 7], [7, 8]]


def test_no_pair_crosses_graphs_and_complete_ones_give_what_they_have():
    graph_set, _ = GraphSet.from_graphs(GRAPHS)
    _, adjacency = graph_set.batch(torch.arange(len(graph_set)).flip(0))
    transformation = SAMPLERS["exact"](adjacency, 0.5, torch.Generator().manual_seed(0))
    graph = torch.repeat_interleave(adjacency.ptr.diff())
    assert torch.equal(graph[transformation.pairs[0]], graph[transformation.pairs[1]])
    # `random_graph` leaves node 0 alone: of the 6 pairs of the fullest one 3 are edges, and all 3 others are taken.
    full = transformation.pairs[:, graph[transformation.pairs[0]] == len(graph_set) - 1]
    start = int(adjacency.ptr[-2])
    assert as_set(full - start) == {(i, j) for j in range(4) for i in range(j)}


def test_an_epoch_takes_every_graph_once_in_an_order_of_its_own():
    graph_set, _ = GraphSet.from_graphs(GRAPHS)
    batches = ShuffledBatches(graph_set, 2, torch.Generator().manual_seed(0), "cpu")

    def sizes() -> list[int]:
        return [size for _, adjacency in batches for size in adjacency.ptr.diff().tolist()]

    first, second = sizes(), sizes()
    assert first != second
    assert sorted(first) == sorted(second) == [graph.num_nodes for graph in GRAPHS]


def test_a_batch_without_edges_is_left_out():
    graph_set, _ = GraphSet.from_graphs(GRAPHS)
    batches = list(ShuffledBatches(graph_set, 1, torch.Generator().manual_seed(0), "cpu"))
    assert len(batches) == len(GRAPHS) - 1
    assert np.isfinite(small(batch_size=1).fit_transform(GRAPHS)).all()


@pytest.mark.parametrize(
    ("pooling", "reference"), [("sum", global_add_pool), ("mean", global_mean_pool), ("max", global_max_pool)]
)
def test_pooling_is_that_of_pyg(pooling, reference):
    ptr = torch.tensor([0, 3, 4, 9])
    h = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(pool(h, ptr, pooling), reference(h, torch.repeat_interleave(ptr.diff())))


# ---- estimator ---------------------------------------------------------------------------------------------


def test_one_row_per_graph_whatever_the_batches():
    model = small()
    z = model.fit_transform(GRAPHS)
    assert z.shape == (len(GRAPHS), 8)
    assert z.dtype == np.float32
    one_by_one = np.concatenate([model.transform([graph]) for graph in GRAPHS])
    np.testing.assert_allclose(one_by_one, z, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.set_params(batch_size=100).transform(GRAPHS[::-1]), z[::-1], rtol=1e-4, atol=1e-5)


def test_a_graph_is_the_pooled_encoder_output():
    model = small().fit(GRAPHS)
    h = model.model_.embed(GRAPHS[3].x, GraphSet.from_graphs([GRAPHS[3]])[0].adjacency)
    for pooling, expected in {"sum": h.sum(0), "mean": h.mean(0), "max": h.max(0).values}.items():
        z = model.set_params(pooling=pooling).transform(GRAPHS[3:4])[0]
        np.testing.assert_allclose(z, expected.numpy(), rtol=1e-5, atol=1e-5)


def test_the_order_of_nodes_does_not_matter():
    model = small().fit(GRAPHS)
    order = torch.randperm(GRAPHS[5].num_nodes, generator=torch.Generator().manual_seed(1))
    place = order.argsort()
    shuffled = Data(x=GRAPHS[5].x[order], edge_index=place[GRAPHS[5].edge_index])
    np.testing.assert_allclose(model.transform([shuffled]), model.transform([GRAPHS[5]]), rtol=1e-4, atol=1e-5)


def test_the_papers_encoder_has_defaults_of_its_own():
    model = TopoTER("gin", level="graph", epochs=1).fit(GRAPHS)
    assert isinstance(model.model_.encoder, GIN)
    assert model.model_.encoder.out_channels == 96
    used = model.effective_params()
    assert [used[name] for name in ("perturbation_rate", "learning_rate", "batch_size", "pooling")] == [
        0.5,
        1e-3,
        64,
        "sum",
    ]
    assert clone(model).get_params() == model.get_params()
    assert TopoTER(level="graph", objective="paper").effective_params()["encoder"] == "gin"
    assert TopoTER(level="graph").effective_params()["encoder"] == "profile"
    assert TopoTER().effective_params()["encoder"] == "hops"  # one graph


@pytest.mark.parametrize("init", ["default", "spread"])
def test_a_saved_model_embeds_graphs_as_before(tmp_path, init):
    model = small(pooling="mean", init=init).fit(GRAPHS)
    model.save(tmp_path / "m.topoter")
    loaded = TopoTER.load(tmp_path / "m.topoter")
    assert loaded.get_params() == model.effective_params()
    np.testing.assert_array_equal(loaded.transform(GRAPHS), model.transform(GRAPHS))


def test_the_seed_decides_everything():
    first, again, other = (small(random_state=seed).fit_transform(GRAPHS) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_an_example_of_the_set_is_from_all_over_it():
    graphs, _ = GraphSet.from_graphs(GRAPHS)
    for size, expected in ((3, (0, 3, 6)), (9, range(9)), (100, range(9))):
        x, adjacency = graphs.example(size)
        assert adjacency.ptr.diff().tolist() == [GRAPHS[number].num_nodes for number in expected]
        assert torch.equal(x, torch.cat([GRAPHS[number].x for number in expected]))


def test_networkx_graphs_and_modules_of_ones_own():
    graphs = [nx.cycle_graph(5), nx.star_graph(4), nx.complete_graph(4)]
    assert small().fit_transform(graphs).shape == (3, 8)  # degree and a constant as features
    torch.manual_seed(0)
    assert small(encoder=GCNConv(3, 7)).fit_transform(GRAPHS).shape == (9, 7)


class InMemory(InMemoryDataset):
    """As PyG's TUDataset keeps its graphs: end to end, cut when one is asked for."""

    def __init__(self, graphs: list[Data]) -> None:
        super().__init__()
        self.data, self.slices = self.collate(graphs)


def test_what_pyg_has_for_many_graphs_gives_a_row_for_each_in_their_own_order():
    model = small().fit(GRAPHS)
    expected = model.transform(GRAPHS)
    dataset = InMemory(GRAPHS)
    assert hasattr(dataset, "edge_index")  # of all graphs together: it is no single graph for that
    some = [3, 1, 4]
    for given, rows in (
        (dataset, expected),
        (dataset[some], expected[some]),
        (DataLoader(dataset, batch_size=4, shuffle=True), expected),
        (DataLoader(GRAPHS, batch_size=4), expected),
        (DataLoader(GRAPHS, batch_size=2, sampler=some), expected[some]),
        (DataLoader(GRAPHS, batch_size=4, drop_last=True), expected[:8]),
        (Batch.from_data_list(GRAPHS), expected),
    ):
        np.testing.assert_allclose(model.transform(given), rows, rtol=1e-5, atol=1e-6)


def test_molecules_of_rdkit_are_read_as_their_smiles_are(tmp_path):
    chem = pytest.importorskip("rdkit.Chem")
    smiles = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CCCl", "OCCO"]
    path = tmp_path / "molecules.csv"
    path.write_text("name,smiles\n" + "".join(f"m{number},{text}\n" for number, text in enumerate(smiles)))
    read, _ = read_graphs(path, smiles_column="smiles")
    model = small().fit(read).set_output(transform="pandas")
    z = model.transform(read)
    assert z.index.tolist() == [f"m{number}" for number in range(6)]
    known = model.set_output(transform="default").transform([chem.MolFromSmiles(text) for text in smiles])
    np.testing.assert_array_equal(known, z)
    # A table read apart from the model has a preparation of its own, which gives way to the model's.
    path.write_text("name,smiles\nx,CCO\n")
    np.testing.assert_allclose(model.transform(read_graphs(path, smiles_column="smiles")[0]), z[:1], rtol=1e-5)


class Stop(Callback):
    """Asks to stop after an epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def on_epoch(self, state, record) -> None:
        if record.epoch == self.epoch:
            raise Interrupted("Stopped.")


def test_a_stopped_training_sees_the_batches_it_would_have_seen(tmp_path):
    path = tmp_path / "state.topoter"
    whole = small(epochs=7).fit(GRAPHS)
    with pytest.raises(Interrupted):
        small(epochs=7).fit(GRAPHS, callbacks=[Checkpoint(path, 1e6), Stop(3)])
    resumed = small(epochs=7).fit(GRAPHS, callbacks=Checkpoint(path, resume=True))
    assert resumed.history_ == whole.history_
    for name, tensor in whole.model_.state_dict().items():
        assert torch.equal(tensor, resumed.model_.state_dict()[name]), name


def test_after_several_steps_the_weights_at_the_end_of_the_best_epoch_are_kept():
    ends: list[dict[str, torch.Tensor]] = []

    class Remember(Callback):
        def on_epoch(self, state, record) -> None:
            ends.append({name: tensor.clone() for name, tensor in state.module.state_dict().items()})

    model = small(epochs=4, patience=None).fit(GRAPHS, callbacks=Remember())
    best = int(np.argmin([record.loss for record in model.history_]))
    for name, tensor in model.model_.state_dict().items():
        assert torch.equal(tensor, ends[best][name]), name


def test_the_task_is_learned_on_mutag():
    model = TopoTER("gin", level="graph", epochs=20).fit(load_graphs("mutag"))
    last = model.history_[-1]
    assert last.loss < 0.9 * last.prior_entropy


# ---- bad input ---------------------------------------------------------------------------------------------


def without_nodes() -> Data:
    return Data(x=torch.zeros(0, 3), edge_index=torch.zeros(2, 0, dtype=torch.int64))


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (
            [*GRAPHS[:2], without_nodes()],
            r"^Graph 2 of the set \(counted from 0\): The graph is empty: it has no nodes",
        ),
        ([*GRAPHS[:4], *some_graphs(1, channels=5)], r"^Graph 4 .* has 5 features per node, graph 0 has 3"),
        ([GRAPHS[0], "graph"], r"^Graph 1 of the set \(counted from 0\): A graph must be"),
        ([], "The set of graphs is empty"),
        (GRAPHS[0], "must be a list of graphs. Got Data instead"),
        (iter(GRAPHS), "must be a list of graphs. Got list_iterator instead"),
        (nx.path_graph(3), "must be a list of graphs. Got Graph instead"),
        ([GRAPHS[1]], "no topology to transform"),
    ],
)
def test_what_is_wrong_is_said_of_which_graph(graphs, message):
    with pytest.raises((DataError, UsageError), match=message):
        small().fit(graphs)


def test_a_new_set_must_have_the_features_of_the_old():
    with pytest.raises(DataError, match="5 features per node; the model was fitted on 3"):
        small().fit(GRAPHS).transform(some_graphs(2, channels=5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "summ"}, "Unknown pooling 'summ'. Did you mean 'sum'"),
        ({"level": "graphs"}, "Unknown level 'graphs'. Did you mean 'graph'"),
        ({"batch_size": 0}, "'batch_size' parameter of TopoTER must be a whole number, at least 1. Got 0"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(UsageError, match=message):
        small(**options).fit(GRAPHS)
    with pytest.raises(UsageError, match="x= goes with one graph"):
        small().fit(GRAPHS, x=np.ones((3, 1)))
