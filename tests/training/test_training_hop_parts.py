"""The encoder `hops` from parts of a graph: parts that lose no edge give what the whole graph gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.encoders import Hops
from topoter.structure.large_graph import LargeGraph
from topoter.training.batches import hop_parts, whole_graph
from topoter.training.batches.hop_parts import RowMoments, adapt_to_parts, finish_on_parts, moments_of_parts
from topoter.training.batches.moments import moment_batches
from topoter.training.batches.subgraphs import SubgraphBatches

pytestmark = pytest.mark.usefixtures("one_thread")

PARTS, NODES = 4, 150


class Components(SubgraphBatches):
    """Parts between which there is no edge."""

    def draw(self) -> list[np.ndarray]:
        return list(np.arange(PARTS * NODES).reshape(-1, self.batch_nodes))

    def joined(self, pieces: np.ndarray) -> np.ndarray:
        return pieces

    def cut_off(self) -> str:
        return ""


@pytest.fixture(scope="module", params=["numbers", "words"])
def data(request: pytest.FixtureRequest) -> Data:
    graphs = [block_model(NODES, 3, 8.0, 90, seed) for seed in range(PARTS)]
    joined = Data(**Batch.from_data_list(graphs).to_dict())
    if request.param == "words":
        joined.x = (joined.x > 1.5).float()
    return Data(x=joined.x, edge_index=joined.edge_index, num_nodes=PARTS * NODES)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_parts_add_up_to_the_whole(data: Data) -> None:
    sizes = {"out_channels": 40, "rank": 20, "rank_beside": 10, "eigenvectors": 8}
    ours, theirs = Hops(90, **sizes), Hops(90, **sizes)
    parts = Components(LargeGraph.from_data(data)[0], NODES, generator())
    (x, adjacency), _ = whole_graph(data)
    adapt_to_parts(ours, generator(), parts)
    theirs.adapt(x, adjacency, generator())
    assert torch.allclose(ours.mean, theirs.mean, atol=1e-5)
    assert torch.allclose(ours.deviation, theirs.deviation, rtol=1e-4)
    for name in ("hop0", "hop1", "far"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert torch.allclose(one @ one.t(), other @ other.t(), atol=1e-3), name
    assert torch.equal(ours.graph_key, theirs.graph_key)
    ours.load_state_dict(theirs.state_dict())
    finish_on_parts(ours, parts)
    theirs.finish(x, adjacency)
    z, expected = (encoder(x, adjacency).detach() for encoder in (ours, theirs))
    assert z.shape == expected.shape
    assert torch.allclose(z @ z.t(), expected @ expected.t(), atol=1e-3 * float(expected.square().sum(1).max()))
    assert ours.pull > 0
    assert ours.pull == pytest.approx(float(theirs.pull), rel=1e-3)
    assert int(ours.num_fitted) == PARTS * NODES


def test_some_nodes_tell_how_far_likely_neighbours_draw(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = Components(LargeGraph.from_data(data)[0], NODES, generator())
    pulls = []
    for most in (PARTS * NODES, PARTS * NODES // 2):
        monkeypatch.setattr(hop_parts, "MOST_TOGETHER", most)
        encoder = Hops(90, out_channels=40, rank=20, rank_beside=10, structure="none")
        adapt_to_parts(encoder, generator(), parts)
        finish_on_parts(encoder, parts)
        pulls.append(float(encoder.pull))
        assert len(encoder.landmarks) == most
        assert int(encoder.num_fitted) == PARTS * NODES
    assert pulls[1] == pytest.approx(pulls[0], rel=0.25)


def test_a_graph_too_large_for_metis_goes_without_places_and_likely_neighbours(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hop_parts, "METIS_ENTRIES", 10)
    encoder = Hops(90, out_channels=40, rank=20, rank_beside=10)
    parts = Components(LargeGraph.from_data(data)[0], NODES, generator())
    adapt_to_parts(encoder, generator(), parts)
    finish_on_parts(encoder, parts)
    assert encoder.place.size(1) == 0
    assert not float(encoder.pull)


@pytest.mark.parametrize(("parts_drawn", "apart"), [(1, 1e-4), (PARTS, 0.25)])
def test_moments_are_those_of_the_whole(data: Data, parts_drawn: int, apart: float) -> None:
    (x, adjacency), _ = whole_graph(data)
    encoder = Hops(90, rank=20, rank_beside=10, structure="none")
    encoder.adapt(x, adjacency, generator())
    parts = Components(LargeGraph.from_data(data)[0], PARTS * NODES // parts_drawn, generator())
    [(_, ours)], judge = moments_of_parts(encoder, parts, (0.0, 0.5), generator())
    [(_, theirs)], expected = moment_batches(encoder, x, adjacency, (0.0, 0.5), generator())
    for one, other in ((ours.within, theirs.within), (ours.between, theirs.between)):
        assert (one - other).norm() < apart * other.norm(), "in several parts up to what is drawn"
    assert ours.agreement == pytest.approx(theirs.agreement, abs=apart)
    # Pairs within a part are harder to tell: they have more in common than those of the whole graph.
    assert judge._measure() == pytest.approx(expected._measure(), abs=0.1 if parts_drawn == 1 else 15)


def test_rows_in_parts() -> None:
    rows = torch.randn(100, 3, generator=generator(), dtype=torch.float64) + 5
    found = RowMoments()
    for part in rows.split(30):
        found.add(part)
    assert found.count == 100
    assert torch.allclose(found.mean, rows.mean(0))
    assert torch.allclose(found.moments / 100, torch.cov(rows.t(), correction=0))


def test_one_part_is_the_whole_graph(data: Data) -> None:
    sizes = {"out_channels": 30, "epochs": 5}
    z = TopoTER(**sizes, batch_nodes=PARTS * NODES).fit_transform(data)
    expected = TopoTER(**sizes).fit_transform(data)
    assert z.shape == expected.shape
    assert np.allclose(z @ z.T, expected @ expected.T, atol=1e-2 * np.square(expected).sum(1).max())
