"""The terms of the loss: equal to their plain formulas, symmetric where they should be, and what may be given."""

from __future__ import annotations

import functools
import math

import pytest
import torch
from torch import nn

from dense_oracle import pair_loss as naive_pair_loss
from dense_oracle import random_graph
from topoter.errors import UsageError
from topoter.kernels import pair_chunks
from topoter.pretext.objectives import (
    SUMS,
    MutualInformation,
    Objective,
    Tally,
    TypesFromChange,
    TypesFromPair,
    accuracy_by_type,
    build_objectives,
    describe_terms,
    is_plain,
    named_terms,
)
from topoter.pretext.transformation import EdgeChange, TopologyTransformation, exact

NUM_NODES, CHANNELS = 24, 5
GENERATOR = torch.Generator().manual_seed(0)
H, H_T = (torch.randn(NUM_NODES, CHANNELS, generator=GENERATOR) for _ in range(2))
CHANGE = exact(random_graph(NUM_NODES, 0.25, 0), 0.6, GENERATOR)
PARAMETERS = {"decoder_layers": 1, "scale_edges": True, "prior_bias": True, "perturbation_rate": 0.6, "order": 2}


def built(name: str, dtype: torch.dtype = torch.float32) -> Objective:
    terms = build_objectives(name, CHANNELS, PARAMETERS, torch.Generator().manual_seed(1))
    return terms[name][0].to(dtype)


def swapped(change: TopologyTransformation) -> TopologyTransformation:
    """The same, every pair named the other way round."""
    return TopologyTransformation(change.adjacency, change.adjacency_t, change.pairs.flip(0), change.pair_type)


def values(metrics) -> dict[str, float | None]:
    return {name: value.value if isinstance(value, Tally) else float(value) for name, value in metrics.items()}


# ---- each term ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUMS["full"])
def test_the_order_within_a_pair_does_not_matter(name):
    objective = built(name)
    (loss, metrics), (other, metrics_of_other) = objective(H, H_T, CHANGE), objective(H, H_T, swapped(CHANGE))
    torch.testing.assert_close(loss, other)
    assert values(metrics) == pytest.approx(values(metrics_of_other))


@pytest.mark.parametrize("name", SUMS["full"])
def test_a_term_is_one_number_with_a_gradient_for_both_graphs(name):
    h, h_t = H.clone().requires_grad_(), H_T.clone().requires_grad_()
    objective = built(name)
    loss, metrics = objective(h, h_t, CHANGE)
    assert loss.shape == ()
    loss.backward()
    assert float(h_t.grad.abs().max()) > 0
    assert (h.grad is None) == (name == "types-from-pair"), "only this one looks at H~ alone"
    assert all(parameter.grad is not None for parameter in objective.parameters())
    assert not any(isinstance(value, torch.Tensor) and value.requires_grad for value in metrics.values())


def test_types_from_change_is_the_explicit_sum_over_pairs():
    objective = built("types-from-change")
    linear = objective.decoder.layers[0]
    expected, confusion = naive_pair_loss(
        (H_T - H).double(), CHANGE.pairs, CHANGE.pair_type, CHANNELS * linear.weight.double(), linear.bias.double()
    )
    loss, metrics = objective(H, H_T, CHANGE)
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-5)
    for change in EdgeChange:
        row = confusion[change]
        assert metrics[f"accuracy_{change.name.lower()}"].value == pytest.approx(row[change] / sum(row))


def test_types_from_pair_is_the_explicit_sum_over_pairs():
    objective = built("types-from-pair", torch.float64)
    first, second = objective.layers
    losses, right = [], 0
    for (i, j), kind in zip(CHANGE.pairs.t().tolist(), CHANGE.pair_type.tolist()):
        product = [a * b for a, b in zip(H_T[i].tolist(), H_T[j].tolist())]
        hidden = [
            max(0.0, math.fsum(w * v for w, v in zip(row, product)) + b)
            for row, b in zip(first.weight.tolist(), first.bias.tolist())
        ]
        z = [
            math.fsum(w * v for w, v in zip(row, hidden)) + b
            for row, b in zip(second.weight.tolist(), second.bias.tolist())
        ]
        losses.append(math.log(math.fsum(math.exp(value) for value in z)) - z[kind])
        right += z.index(max(z)) == kind
    loss, metrics = objective(H.double(), H_T.double(), CHANGE)
    assert float(loss.detach()) == pytest.approx(math.fsum(losses) / len(losses), rel=1e-12)
    shares = [metrics[f"pair_accuracy_{change.name.lower()}"].counts for change in EdgeChange]
    assert sum(int(counts[0]) for counts in shares) == right
    assert sum(int(counts[1]) for counts in shares) == CHANGE.pairs.size(1)


@pytest.mark.parametrize("entries", [1, 7 * CHANNELS, 1 << 21])
def test_chunks_of_pairs_and_all_pairs_at_once_agree(monkeypatch, entries):
    monkeypatch.setattr(pair_chunks, "_ENTRIES", entries)
    objective, found = built("types-from-pair", torch.float64), {}
    for kernels in ("fast", "plain"):
        monkeypatch.setenv("TOPOTER_KERNELS", kernels)
        h_t = H_T.double().requires_grad_()
        loss, metrics = objective(H.double(), h_t, CHANGE)
        found[kernels] = [loss, *torch.autograd.grad(3 * loss, [h_t, *objective.parameters()])], values(metrics)
    for fast, plain in zip(found["fast"][0], found["plain"][0]):
        torch.testing.assert_close(fast, plain)
    assert found["fast"][1] == found["plain"][1]
    with torch.no_grad():
        torch.testing.assert_close(objective(H.double(), H_T.double(), CHANGE)[0], found["plain"][0][0])


@pytest.mark.parametrize(
    ("name", "layers"), [("types-from-change", 1), ("types-from-change", 2), ("types-from-pair", 1)]
)
def test_no_tensor_of_size_pairs_times_channels_is_kept(monkeypatch, name, layers):
    monkeypatch.setattr(pair_chunks, "_ENTRIES", 2 * CHANNELS)  # what a chunk keeps for itself is small, too
    many = exact(random_graph(NUM_NODES, 0.8, 0), 0.6, torch.Generator().manual_seed(0))
    terms = build_objectives(name, CHANNELS, PARAMETERS | {"decoder_layers": layers}, torch.Generator())
    kept = []

    def note(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        terms[name][0](H.clone().requires_grad_(), H_T, many)
    assert many.pairs.size(1) > 2 * NUM_NODES
    assert max(kept) < many.pairs.size(1) * CHANNELS


def test_mutual_information_is_the_explicit_sum_over_columns():
    def correlations(a, b) -> list[list[float]]:
        """Of every column of a with every column of b, by loops."""

        def standardized(h) -> list[list[float]]:
            columns = []
            for column in h.t().tolist():
                mean = math.fsum(column) / len(column)
                deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in column) / len(column))
                columns.append([(v - mean) / deviation for v in column])
            return columns

        first, second = standardized(a), standardized(b)
        return [[math.fsum(u * v for u, v in zip(x, y)) / len(x) for y in second] for x in first]

    h, h_t = H.double(), H_T.double()
    agreement = math.fsum(correlations(h, h_t)[c][c] for c in range(CHANNELS)) / CHANNELS
    off = [correlations(z, z)[a][b] ** 2 for z in (h, h_t) for a in range(CHANNELS) for b in range(CHANNELS) if a != b]
    loss, metrics = MutualInformation(CHANNELS)(h, h_t, CHANGE)
    assert float(loss) == pytest.approx(1 - agreement + 0.75 * math.fsum(off) / 2 / CHANNELS**2, rel=1e-9)
    assert float(metrics["agreement"]) == pytest.approx(agreement, rel=1e-9)


def test_mutual_information_sees_directions_and_not_scales():
    term = MutualInformation(CHANNELS)
    moved = 7 * H + 3
    torch.testing.assert_close(term(H, H_T, CHANGE)[0], term(moved, H_T, CHANGE)[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(term(H, H_T, CHANGE)[0], term(H_T, H, CHANGE)[0])
    assert float(term(H, moved, CHANGE)[1]["agreement"]) == pytest.approx(1.0, abs=1e-4)
    constant = torch.ones_like(H).requires_grad_()
    loss, _ = term(constant, H_T, CHANGE)
    loss.backward()
    assert bool(constant.grad.isfinite().all()), "a column without variance is no division by zero"


def test_weights_come_from_the_generator_alone():
    for name in SUMS["full"]:
        drawn = []
        for seed, global_seed in ((1, 0), (1, 7), (2, 0)):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(global_seed)
                term = build_objectives(name, CHANNELS, PARAMETERS, torch.Generator().manual_seed(seed))[name][0]
            drawn.append([parameter.detach().clone() for parameter in term.parameters()])
        assert all(torch.equal(*pair) for pair in zip(drawn[0], drawn[1])), name
        assert not drawn[0] or any(not torch.equal(*pair) for pair in zip(drawn[0], drawn[2])), name


# ---- metrics -----------------------------------------------------------------------------------------------


def test_tallies_add_up():
    read = lambda counts: float(counts[0] / counts[1])  # noqa: E731
    tally = Tally(torch.tensor([1, 2]), read) + Tally(torch.tensor([3, 10]), read)
    assert tally.counts.tolist() == [4, 12]
    assert tally.value == pytest.approx(1 / 3)


def test_accuracies_are_shares_of_each_type_and_none_where_it_did_not_occur():
    confusion = torch.tensor([[3, 1, 0, 0], [0, 0, 0, 0], [2, 0, 2, 0], [0, 0, 0, 8]])
    metrics = values(accuracy_by_type(confusion))
    assert metrics["accuracy_add"] == 0.75
    assert metrics["accuracy_delete"] is None
    assert metrics["accuracy_keep_disconnected"] == 0.5
    assert metrics["accuracy_keep_connected"] == 1.0
    assert metrics["prior_entropy"] == pytest.approx(1.5 * math.log(2))
    assert list(metrics)[1:] == [f"accuracy_{change.name.lower()}" for change in EdgeChange]


# ---- what may be given -------------------------------------------------------------------------------------


def mine(h, h_t, transformation):
    return (h_t - h).square().mean(), {"moved": (h_t - h).norm()}


def names(objective) -> dict[str, float]:
    return {name: weight for name, (_, weight) in named_terms(objective).items()}


def test_names_sums_objects_and_lists_of_them():
    assert names("paper") == {"types-from-change": 1.0}
    assert names("full") == SUMS["full"]
    assert names("full-graphs") == SUMS["full"] | {"graph-mutual-information": 1.0}
    assert names("mutual-information") == {"mutual-information": 1.0}
    assert names(mine) == {"mine": 1.0}
    assert names([("paper", 1), (mine, 0.1)]) == {"types-from-change": 1.0, "mine": 0.1}
    assert names([["full", 0.5]]) == dict.fromkeys(SUMS["full"], 0.5), "lists, as a file gives them back"
    assert names([(functools.partial(mine), 1.0)]) == {"partial": 1.0}


def test_no_term_is_lost_when_two_have_one_name():
    assert names([("full", 1.0), ("paper", 0.5)])["types-from-change"] == 1.5
    first, second = (lambda h, h_t, t: (h.sum(), {})), (lambda h, h_t, t: (h_t.sum(), {}))
    terms = named_terms([(first, 1.0), (second, 2.0), (mine, 3.0)])
    assert [(term, weight) for term, weight in terms.values()] == [(first, 1.0), (second, 2.0), (mine, 3.0)]
    assert list(terms) == ["<lambda>", "<lambda> 2", "mine"]


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("papper", "Unknown objective 'papper'. Did you mean 'paper'?"),
        ([("fulll", 1.0)], "Unknown objective 'fulll'. Did you mean 'full'?"),
        ([("paper", -1)], "must be given with weights of 0 or more. Got -1 instead."),
        ([("paper", float("nan"))], "must be given with weights of 0 or more. Got nan instead."),
        ([("paper", float("inf"))], "must be given with weights of 0 or more. Got inf instead."),
        ([("paper", "1")], "must be given with weights of 0 or more. Got '1' instead."),
        ([("paper", True)], "must be given with weights of 0 or more. Got True instead."),
        (["paper"], "must be a name, an object or a list of (objective, weight). Got 'paper' instead."),
        ([("paper", 1.0, 2.0)], "must be a name, an object or a list of (objective, weight). Got"),
        (3, "must be a name or an object(h, h_t, transformation). Got 3 instead."),
        (MutualInformation, "must be a name or an object(h, h_t, transformation). Got <class"),
        ([], "The objective has no term: give at least one (objective, weight)."),
    ],
)
def test_what_cannot_be_an_objective_is_refused_in_one_line(objective, message):
    with pytest.raises(UsageError) as caught:
        named_terms(objective)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_term_gets_the_parameters_it_names_and_a_module_is_copied():
    class Mine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(CHANNELS, 1)

        def forward(self, h, h_t, transformation):
            return self.layer(h_t - h).square().mean(), {}

    own = Mine()
    terms = build_objectives([("paper", 1.0), (own, 2.0)], CHANNELS, PARAMETERS, torch.Generator())
    types = terms["types-from-change"][0]
    assert isinstance(types, TypesFromChange)
    assert types.decoder.scale == CHANNELS
    copied, weight = terms["Mine"]
    assert weight == 2.0
    assert copied is not own
    assert torch.equal(copied.layer.weight, own.layer.weight)
    with pytest.raises(UsageError, match="'decoder_layers' parameter of TopoTER must be a whole number, at least 1"):
        build_objectives("paper", CHANNELS, {**PARAMETERS, "decoder_layers": 1.5}, torch.Generator())


def test_names_alone_can_be_kept_in_a_file():
    assert is_plain("full")
    assert is_plain([("paper", 1.0), ("mutual-information", 0.1)])
    assert not is_plain(mine)
    assert not is_plain([("paper", 1.0), (TypesFromPair(3), 1.0)])


def test_a_sum_in_words():
    assert describe_terms([("types-from-change", 1.0), ("mutual-information", 0.5)]) == (
        "types-from-change + 0.5 mutual-information"
    )
