"""Training from second moments: the same loss and gradient as from the representations of the drawn graphs."""

from __future__ import annotations

import networkx
import pytest
import torch
from tests.dense_oracle import random_graph

from topoter.datasets import block_model
from topoter.pretext.hidden_edges import HiddenEdges, area_under_curve, mean_auc
from topoter.pretext.moments import EndSums, draw_moments
from topoter.pretext.objectives import MutualInformation
from topoter.pretext.transformation import EdgeChange, exact
from topoter.structure.adjacency import Adjacency
from topoter.structure.hops import propagate

GRAPH = random_graph(80, 0.08, 0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def plain_loss(b1: torch.Tensor, b2: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The twin: H and H~ themselves, centred apart, scaled together."""
    h1, h2 = b1 @ weight, b2 @ weight
    h1, h2 = h1 - h1.mean(0), h2 - h2.mean(0)
    both = torch.cat([h1, h2])
    spread = both.square().mean(0).sqrt()
    h1, h2, both = h1 / spread, h2 / spread, both / spread
    correlation = both.t() @ both / len(both)
    apart = (correlation - torch.diag(correlation.diagonal())).square().mean()
    return 1 - (h1 * h2).mean() + MutualInformation.decorrelation * apart


@pytest.mark.parametrize("rate", [(0.0, 0.5), (0.3, 0.2)])
def test_moments_give_the_loss_and_gradient_of_the_graphs_they_come_from(rate: tuple[float, float]) -> None:
    signal = torch.randn(80, 7, generator=seeded())
    moments = draw_moments(signal, GRAPH, 2, rate, 1, seeded(5))
    generator = seeded(5)
    views = [propagate(exact(GRAPH, rate, generator).adjacency_t, signal, 2).double() for _ in range(2)]
    weight = torch.randn(7, 4, generator=seeded(1))
    fast, plain = weight.clone().requires_grad_(), weight.double().requires_grad_()
    loss, metrics = MutualInformation(4).of_moments(fast, moments)
    loss.backward()
    expected = plain_loss(*views, plain)
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    assert set(metrics) == {"agreement"}
    torch.testing.assert_close(fast.grad, plain.grad.float(), atol=1e-3, rtol=1e-2)


def test_agreement_tells_whether_neighbours_are_alike() -> None:
    data = block_model(200, 4, 10, 6, 0)
    graph, _ = Adjacency.from_edge_index(data.edge_index, 200)
    alike = torch.nn.functional.one_hot(data.y).float()
    apart = torch.randn(200, 6, generator=seeded())
    of = [draw_moments(signal, graph, 0, (0.0, 0.5), 3, seeded()).agreement for signal in (alike, apart)]
    i, j = graph.edges
    centred = alike - alike.mean(0)
    assert of[0] == pytest.approx(
        float((centred[i] * centred[j]).sum(1).mean() / centred.square().sum(1).mean()), abs=0.05
    )
    assert 0 <= of[1] < 0.1 < of[0]


def test_agreement_is_the_assortativity_of_networkx_in_any_portions() -> None:
    graph = networkx.watts_strogatz_graph(60, 6, 0.3, seed=1)
    signal = torch.arange(60.0) / 20 + torch.randn(60, generator=seeded())
    networkx.set_node_attributes(graph, dict(enumerate(signal.tolist())), "signal")
    edges = torch.tensor(sorted(graph.edges, key=sum)).t()
    ends = [EndSums(2) for _ in range(2)]
    for some in edges.split(70, dim=1):
        for sums in ends:  # a shift of the signal changes nothing
            shifted = torch.stack([signal, torch.full((60,), 2.0)], dim=1) + (2 if sums is ends[1] else 0)
            for column in (0, 1):
                sums.add(shifted[:, column : column + 1].contiguous(), some, column)
    expected = networkx.numeric_assortativity_coefficient(graph, "signal")
    assert expected > 0.1
    assert [sums.agreement for sums in ends] == pytest.approx([expected] * 2, rel=1e-3)
    assert EndSums(3).agreement == 0


def test_hubs_do_not_make_neighbours_look_alike() -> None:
    """Smoothed signals grow with the degree: by the mean over nodes the ends of edges, which are mostly hubs, agree."""
    generator = seeded(3)
    popular = torch.rand(400, generator=generator) ** -0.8
    ends = torch.multinomial(popular, 8000, replacement=True, generator=generator).view(2, -1)
    graph, _ = Adjacency.from_edge_index(ends, 400)
    signal = (torch.rand(400, 40, generator=generator) < 0.2).float()  # nothing to do with the graph
    centred = propagate(graph, signal, 2)
    centred = centred - centred.mean(0)
    i, j = graph.edges
    assert float((centred[i] * centred[j]).sum(1).mean() / centred.square().sum(1).mean()) > 0.5
    assert draw_moments(signal, graph, 2, (0.0, 0.5), 3, seeded()).agreement < 0.05


def test_hidden_edges_are_out_of_the_visible_graph_and_judged_by_inner_products() -> None:
    signal = propagate(GRAPH, torch.randn(80, 6, generator=seeded()), 2)
    hidden = HiddenEdges.draw(signal, GRAPH, 1, 0.25, (0.0, 0.5), seeded(2))
    count = round(0.25 * GRAPH.num_edges)
    assert hidden.label.tolist() == [1.0] * count + [0.0] * count
    weight = torch.randn(6, 3, generator=seeded(4))
    first, second = ((ends - hidden.mean) @ weight for ends in (hidden.first, hidden.second))
    scores = (first * second).sum(1)
    above = [a > b for a in scores[hidden.label == 1] for b in scores[hidden.label == 0]]
    assert mean_auc([hidden], weight) == pytest.approx(100 * sum(map(bool, above)) / len(above), abs=1e-6)
    assert area_under_curve(hidden.label, hidden.label) == 100


def test_pairs_of_parts_are_judged_like_those_of_the_whole() -> None:
    """Unconnected ones get ends of any parts, and the mean is that of all nodes."""
    drawn = [HiddenEdges.draw(sign * torch.ones(80, 3), GRAPH, 1, 0.25, (0.0, 0.5), seeded(2)) for sign in (-1, 1)]
    joined = HiddenEdges.joined(drawn, torch.zeros(3), seeded())
    far = [bool(a.sum() * b.sum() < 0) for a, b in zip(joined.first, joined.second)]
    across = [sum(one for one, label in zip(far, joined.label) if label == kind) for kind in (1, 0)]
    count = int((joined.label == 0).sum())
    assert across[0] == 0, "an edge stays within its part"
    assert 0.3 * count < across[1] < 0.7 * count
    alone = HiddenEdges.joined(drawn[:1], drawn[0].mean, seeded())
    assert torch.equal(alone.second, drawn[0].second)


def test_adding_and_deleting_have_rates_of_their_own() -> None:
    transformation = exact(GRAPH, (0.25, 0.5), seeded())
    counts = torch.bincount(transformation.pair_type.long(), minlength=4)
    edges = GRAPH.num_edges
    assert counts[EdgeChange.ADD] == round(0.25 * edges)
    assert counts[EdgeChange.DELETE] == round(0.5 * edges)
    assert transformation.adjacency_t.num_edges == edges + counts[EdgeChange.ADD] - counts[EdgeChange.DELETE]
