"""Several hops side by side: what the parts are, their lengths, width, new graphs, saving, and that training pays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.dense_oracle import dense_adjacency, dense_propagation
from torch_geometric.data import Data

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.encoders import Hops
from topoter.errors import TopoterError
from topoter.structure.adjacency import Adjacency
from topoter.structure.likely_graph import likely_graph

DEFAULT = {"epochs": 20}  # all else is what TopoTER() does


def graph(seed: int = 0) -> Data:
    return block_model(120, 3, 8, 24, seed)


def test_the_embedding_is_the_parts_side_by_side_turned_to_their_principal_axes() -> None:
    data = graph()
    model = TopoTER(**DEFAULT, encoder_parameters={"completion": 0.0}).fit(data)
    encoder = model.model_.encoder
    assert isinstance(encoder, Hops)
    x = (data.x.double() - encoder.mean) / encoder.deviation
    x = torch.nn.functional.normalize(x)
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, 120)
    s = dense_propagation(dense_adjacency(adjacency))
    trained = s @ s @ x @ encoder.far.double() @ encoder.weight.detach().double()
    places = encoder.place.double().tensor_split([int(encoder.num_coordinates)], dim=1)
    assert places[1].size(1) == places[0].size(1) + 1  # 24 features: few directions
    parts = [trained, x @ encoder.hop0.double(), s @ x @ encoder.hop1.double(), *places]
    gram = torch.zeros(120, 120, dtype=torch.float64)
    for part, length in zip(parts, encoder.part_lengths()):
        centred = part - part.mean(0)
        if part.size(1):
            gram += length**2 * centred @ centred.t() / centred.square().sum(1).mean()
    z = torch.from_numpy(model.transform(data)).double()
    torch.testing.assert_close(z @ z.t(), gram, atol=1e-3, rtol=0)
    spread = z.std(0)
    assert bool((spread.diff() <= 1e-6).all())  # the first column says most


def test_nodes_are_drawn_towards_their_likely_neighbours_by_half_the_length_of_what_they_say_themselves() -> None:
    data = graph()
    alone = torch.from_numpy(TopoTER(**DEFAULT, encoder_parameters={"completion": 0.0}).fit_transform(data))
    model = TopoTER(**DEFAULT)
    z = torch.from_numpy(model.fit_transform(data))
    drawn = dense_propagation(dense_adjacency(likely_graph(alone))).float() @ alone
    torch.testing.assert_close(z, alone + 0.5 * alone.norm() / drawn.norm() * drawn, atol=1e-4, rtol=1e-4)


def test_width_does_not_pretend() -> None:
    data = block_model(100, 2, 6, 3, 0)
    assert TopoTER(**DEFAULT).fit_transform(data).shape[1] < 40
    assert TopoTER(**DEFAULT, out_channels=5).fit_transform(data).shape[1] == 5


def test_without_features_the_graph_speaks_alone() -> None:
    data = graph()
    data.x = torch.ones(120, 1)
    model = TopoTER(**DEFAULT)
    z = model.fit_transform(data)
    assert model.history_ == []
    assert np.isfinite(z).all()
    centres = np.stack([z[data.y.numpy() == kind].mean(0) for kind in range(3)])
    nearest = ((z[:, None] - centres) ** 2).sum(2).argmin(1)
    assert (nearest == data.y.numpy()).mean() > 0.9


def test_nothing_at_all_is_one_clear_line() -> None:
    data = Data(x=torch.ones(5, 1), edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(TopoterError, match=r"nothing to embed: the features are constant"):
        TopoTER(**DEFAULT).fit(data)


def test_same_seed_same_bits_and_a_saved_model_gives_them_again(tmp_path: Path) -> None:
    data = graph()
    model = TopoTER(**DEFAULT)
    z = model.fit_transform(data)
    assert np.array_equal(TopoTER(**DEFAULT).fit_transform(data), z)
    model.save(tmp_path / "model.topoter")
    loaded = TopoTER.load(tmp_path / "model.topoter")
    assert np.array_equal(loaded.transform(data), z)
    other = graph(1)
    assert np.array_equal(loaded.transform(other), model.transform(other))


def test_nodes_of_another_graph_get_features_and_the_mean_place(caplog: pytest.LogCaptureFixture) -> None:
    model = TopoTER(**DEFAULT).fit(graph())
    caplog.set_level("INFO")
    other = graph(1)
    other.node_ids = list(range(1000, 1120))
    z = model.transform(other)
    assert z.shape[0] == 120
    assert np.isfinite(z).all()
    assert "little in common with the one fitted on" in caplog.text


def test_a_graph_that_has_grown_is_embedded_by_its_shape_without_features() -> None:
    whole = block_model(600, 3, 12, 4, 0)
    names = np.array([f"p{number:03d}" for number in range(600)])
    first = torch.randperm(600, generator=torch.Generator().manual_seed(0))[:480].sort().values
    before = whole.subgraph(first)
    before.node_ids, whole.node_ids = names[first.numpy()].tolist(), names.tolist()
    before.num_nodes, whole.num_nodes = 480, 600
    before.x = whole.x = None
    model = TopoTER(**DEFAULT)
    old = model.fit_transform(before)
    y = whole.y.numpy()
    centres = np.stack([old[y[first.numpy()] == kind].mean(0) for kind in range(3)])
    z = model.transform(whole)
    kind = ((z[:, None] - centres) ** 2).sum(2).argmin(1)
    new = np.setdiff1d(np.arange(600), first.numpy())
    assert (kind == y)[new].mean() > 0.8
    assert (kind == y)[first.numpy()].mean() > 0.9
    backwards = torch.arange(599, -1, -1)  # the same graph, its nodes in another order
    turned = Data(edge_index=599 - whole.edge_index, num_nodes=600, node_ids=names[backwards.numpy()].tolist())
    assert np.linalg.norm(model.transform(turned)[::-1] - z) < 0.2 * np.linalg.norm(z)  # but for what is noise


def test_features_of_few_directions_make_room_for_the_places_of_surroundings() -> None:
    encoder = Hops(4)
    encoder.strength, encoder.agreement = torch.tensor(0.3), torch.tensor(0.5)
    shares = []
    for width in (1, 16, 64, 128, 512):
        encoder.far = encoder.hop0 = encoder.hop1 = torch.zeros(4, width)
        trained, _, _, coordinates, around = encoder.part_lengths()
        shares.append(around / (trained + coordinates + around))
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.9
    assert shares[-1] == shares[-2] == 0


def test_many_features_are_not_drowned_by_the_graph_where_neighbours_do_not_agree() -> None:
    encoder, coordinates = Hops(4), []
    encoder.strength, encoder.agreement = torch.tensor(0.06), torch.tensor(0.0)
    for width in (16, 512):
        encoder.far = encoder.hop0 = encoder.hop1 = torch.zeros(4, width)
        coordinates.append(encoder.part_lengths()[3])
    assert coordinates[0] > 1 > 0.3 > coordinates[1] > 0


def test_hop_0_is_long_where_neighbours_do_not_tell_what_a_node_says_itself() -> None:
    encoder, lengths = Hops(4), []
    encoder.far = encoder.hop0 = encoder.hop1 = torch.zeros(4, 512)
    for of_propagated, of_features in ((0.5, 0.2), (0.5, 0.07), (0.5, 0.0), (0.0, 0.2)):
        encoder.agreement, encoder.agreement_here = torch.tensor(of_propagated), of_features
        lengths.append(encoder.part_lengths()[1:3])
    assert lengths[0] == pytest.approx([0.2, 0.0])
    assert lengths[1] == pytest.approx([0.6, 0.25])
    assert lengths[2] == lengths[3] == [1.0, 0.5]


def test_training_keeps_the_weights_that_foretell_hidden_edges_best() -> None:
    data = block_model(300, 3, 8, 24, 0)
    model = TopoTER(**DEFAULT).fit(data)
    found = {record.epoch: record.metrics.get("hidden_edge_auc") for record in model.history_}
    judged = {epoch: value for epoch, value in found.items() if value is not None}
    assert list(judged) == sorted({*range(5, len(found) + 1, 5), len(found)})
    assert all(0 <= value <= 100 for value in judged.values())
    assert model.kept_epoch_ == max(judged, key=judged.__getitem__)
    untrained = TopoTER(**{**DEFAULT, "epochs": 0}).fit(data)
    assert untrained.history_ == []
    assert not np.array_equal(untrained.transform(data), model.transform(data))
