"""Decoders of pairs: symmetric, equal to the explicit formula, and their noise where it belongs."""

from __future__ import annotations

import pytest
import torch

from topoter.errors import UsageError
from topoter.pretext.pair_decoders import PAIR_DECODERS, build_pair_decoder
from topoter.structure.adjacency import Adjacency
from topoter.structure.pair_features import pair_features

H = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))
PAIRS = torch.tensor([[0, 3, 8, 2], [1, 7, 0, 2]])


def built(name: str):
    return build_pair_decoder(name, 5, torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", PAIR_DECODERS)
def test_a_decoder_is_symmetric_and_gives_one_logit_per_pair(name):
    decoder = built(name)
    seen = {"adjacency": Adjacency(PAIRS[:, :2], 9)} if decoder.sees_the_graph else {}
    logits = decoder(H, PAIRS, **seen)
    assert logits.shape == (4,)
    torch.testing.assert_close(logits, decoder(H, PAIRS.flip(0), **seen))


def test_the_inner_product_is_one_and_learns_nothing():
    expected = [float(H[i].double() @ H[j].double()) for i, j in PAIRS.t().tolist()]
    torch.testing.assert_close(built("inner product")(H, PAIRS).double(), torch.tensor(expected).double())
    assert list(built("inner product").parameters()) == []


def test_hadamard_is_two_layers_on_the_products_with_noise_between():
    decoder = built("hadamard")
    first, second = decoder.layers
    hidden = torch.relu(H[PAIRS[0]] * H[PAIRS[1]] @ first.weight.t() + first.bias)
    torch.testing.assert_close(decoder(H, PAIRS), (hidden @ second.weight.t() + second.bias).squeeze(1))
    silent = decoder(H, PAIRS, lambda values: values * 0)
    torch.testing.assert_close(silent, second.bias.expand(4))


def test_weights_come_from_the_generator_and_an_unknown_name_is_answered():
    assert torch.equal(built("hadamard").layers[0].weight, built("hadamard").layers[0].weight)
    with pytest.raises(UsageError, match=r"Unknown pair decoder 'hadamar'\. Did you mean 'hadamard'\?"):
        build_pair_decoder("hadamar", 5, torch.Generator())


def test_paths_are_told_of_the_graph_beside_the_products():
    adjacency, decoder = Adjacency(PAIRS[:, :2], 9), built("paths")
    seen = decoder.inputs(H, PAIRS, adjacency)
    torch.testing.assert_close(seen, torch.cat([H[PAIRS[0]] * H[PAIRS[1]], pair_features(adjacency, PAIRS)], dim=1))
    assert decoder.layers[0].weight.shape == (64, seen.size(1))
    assert [built(name).sees_the_graph for name in ("inner product", "hadamard", "paths")] == [False, False, True]


def test_weights_are_drawn_evenly_and_biases_are_zero():
    for layer in built("hadamard").layers:
        bound = (6 / (layer.in_features + layer.out_features)) ** 0.5
        assert 0.8 * bound < layer.weight.abs().max() <= bound
        assert (layer.bias == 0).all()
