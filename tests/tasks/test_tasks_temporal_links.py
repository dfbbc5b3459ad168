"""Links over time: observed transformations, two evaluations that never show what they ask, persistence by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from topoter import TopoTER
from topoter.datasets import load_snapshots
from topoter.errors import DataError, UsageError
from topoter.methods import build, methods_of
from topoter.methods.over_time import _examples
from topoter.pretext.transformation import EdgeChange, Transition
from topoter.structure.adjacency import Adjacency
from topoter.tasks.temporal_links import PROTOCOLS, hold_out_last, hold_out_pairs, mean_scores

pytestmark = pytest.mark.usefixtures("one_thread")
NODES = 30
PEER = {
    "num_layers": 2,
    "hidden_channels": 4,
    "out_channels": 8,
    "init": "glorot",
    "learning_rate": 1e-2,
    "patience": 9,
}
SETTINGS = {
    "persistence": {},
    "common-neighbours": {},
    "preferential-attachment": {},
    "gae": {**PEER, "epochs": 4},
    "vgae": {**PEER, "epochs": 4},
    "random-init": {**PEER, "encoder": "gcn", "init_gain": 1.0, "feature_scaling": "none"},
    "topoter": {**PEER, "epochs": 4, "encoder": "gcn", "init_gain": 1.0, "feature_scaling": "none"},
}


@pytest.fixture(scope="module")
def edges() -> list[torch.Tensor]:
    """Four snapshots of 60 edges; each keeps about two thirds of the one before."""
    generator = np.random.default_rng(0)
    pairs = np.stack(np.triu_indices(NODES, 1))
    chosen = generator.permutation(pairs.shape[1])[:60]
    snapshots = []
    for _ in range(4):
        snapshots.append(torch.from_numpy(pairs[:, np.sort(chosen)]))
        fresh = np.setdiff1d(np.arange(pairs.shape[1]), chosen)
        chosen = np.concatenate([generator.permutation(chosen)[:40], generator.permutation(fresh)[:20]])
    return snapshots


def predict(split, method, parameters, seed):
    """What the experiments do: a method sees the transitions alone."""
    return build(method, "temporal", parameters).fit(split.transitions, seed)


def keys(pairs: torch.Tensor) -> set[int]:
    return set((pairs[0] * NODES + pairs[1]).tolist())


def graph(edges: torch.Tensor) -> Adjacency:
    return Adjacency.from_edge_index(edges, NODES)[0]


def test_the_types_of_a_transition_are_those_of_the_difference(edges):
    before, after = edges[0], edges[1]
    sampled = Transition(graph(before), graph(after)).sample(torch.Generator().manual_seed(0))
    kind = {name: keys(sampled.pairs[:, sampled.pair_type == value]) for name, value in EdgeChange.__members__.items()}
    assert kind["ADD"] == keys(after) - keys(before)
    assert kind["DELETE"] == keys(before) - keys(after)
    assert kind["KEEP_CONNECTED"] == keys(before) & keys(after)
    assert not kind["KEEP_DISCONNECTED"] & (keys(before) | keys(after))
    assert len(kind["KEEP_DISCONNECTED"]) == len(kind["KEEP_CONNECTED"]) == 40
    everything = Transition(graph(before), graph(after)).all_pairs()
    assert len(keys(everything.pairs)) == everything.pairs.size(1) == NODES * (NODES - 1) // 2


def test_graphs_that_become_complete_or_empty_are_transitions_too():
    complete = torch.combinations(torch.arange(6)).t()
    sampled = Transition(
        Adjacency.from_edge_index(complete[:, :3], 6)[0], Adjacency.from_edge_index(complete, 6)[0]
    ).sample(torch.Generator())
    assert sampled.pairs.size(1) == 15
    assert set(sampled.pair_type.tolist()) == {EdgeChange.ADD, EdgeChange.KEEP_CONNECTED}


def test_held_out_pairs_are_never_seen_in_training(edges):
    split = hold_out_pairs(edges, NODES, seed=0)
    assert len(split.transitions) == len(split.predictions) == 3
    for number, (transition, prediction) in enumerate(zip(split.transitions, split.predictions)):
        held_out = keys(prediction.val.pairs) | keys(prediction.test.pairs)
        assert len(held_out) == 2 * (3 + 6)
        assert int(prediction.test.label.sum()) == 6
        assert keys(prediction.test.pairs[:, prediction.test.label == 1]) <= keys(edges[number + 1])
        assert not keys(prediction.test.pairs[:, prediction.test.label == 0]) & keys(edges[number + 1])
        assert keys(prediction.known.latest.edges) == keys(edges[number])
        assert prediction.known.history.snapshots == number + 1
        assert keys(prediction.known.rest.edges) == keys(edges[number + 1]) - held_out
        assert not held_out & keys(transition.after.edges)
        for seed in range(5):
            assert not held_out & keys(transition.sample(torch.Generator().manual_seed(seed)).pairs)
        if number + 1 < 3:  # the next step starts from the graph without them, and does not look at them either
            following = split.transitions[number + 1]
            assert not held_out & keys(following.before.edges)
            assert not held_out & keys(following.sample(torch.Generator().manual_seed(0)).pairs)


def test_the_next_snapshot_is_in_no_transition(edges):
    split = hold_out_last(edges, NODES, seed=0)
    assert len(split.transitions) == 2
    assert keys(split.transitions[-1].after.edges) == keys(edges[2])
    (prediction,) = split.predictions
    assert keys(prediction.known.latest.edges) == keys(edges[2])
    assert prediction.known.rest is None
    assert keys(prediction.test.pairs[:, prediction.test.label == 1]) == keys(edges[3])
    other = [*edges[:3], edges[0]]  # another last snapshot changes no score
    asked = torch.stack([torch.zeros(9, dtype=torch.int64), torch.arange(1, 10)])
    for method, parameters in SETTINGS.items():
        first, second = (
            predict(hold_out_last(times, NODES, 0), method, parameters, 0).score_pairs(prediction.known, asked)
            for times in (edges, other)
        )
        assert torch.equal(first, second), method


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("method", methods_of("temporal"))
def test_every_method_predicts_and_repeats(edges, protocol, method):
    split = PROTOCOLS[protocol](edges, NODES, 0)
    found = [mean_scores(predict(split, method, SETTINGS[method], 1).score_pairs, split, "test") for _ in range(2)]
    assert found[0] == found[1]
    assert all(0 <= value <= 100 for value in found[0])


def test_persistence_scores_what_was_connected_before(edges):
    split = hold_out_last(edges, NODES, 0)
    auc, _ = mean_scores(predict(split, "persistence", {}, 0).score_pairs, split, "test")
    test = split.predictions[0].test
    stays = np.array([key in keys(edges[2]) for key in (test.pairs[0] * NODES + test.pairs[1]).tolist()])
    connected = test.label.numpy() == 1
    # One threshold: the area is the mean of the two rates.
    assert auc == pytest.approx(50 * (stays[connected].mean() + 1 - stays[~connected].mean()))


def test_simple_scores_are_those_counted_by_hand(edges):
    split = hold_out_last(edges, NODES, 0)
    known, pairs = split.predictions[0].known, split.predictions[0].test.pairs
    around = [{b for a, b in graph(edges[2]).edge_index.t().tolist() if a == node} for node in range(NODES)]
    expected = {
        "common-neighbours": [len(around[i] & around[j]) for i, j in pairs.t().tolist()],
        "preferential-attachment": [len(around[i]) * len(around[j]) for i, j in pairs.t().tolist()],
    }
    for method, values in expected.items():
        assert predict(split, method, {}, 0).score_pairs(known, pairs).tolist() == values


HISTORY = {"decoder": "history", "epochs": 30, "hidden_channels": 4, "out_channels": 4}


@pytest.mark.parametrize("completed", [False, True])
def test_the_decoder_of_histories_learns_and_repeats(completed):
    """Three groups whose members meet within; absent members come back: the past tells, persistence does not."""
    generator = np.random.default_rng(0)
    i, j = np.triu_indices(NODES, 1)
    within = i % 3 == j % 3
    times = [torch.from_numpy(np.stack([i, j])[:, within & (generator.random(len(i)) < 0.4)]) for _ in range(6)]
    split = hold_out_pairs(times, NODES, 0)
    found = [
        mean_scores(predict(split, "topoter", {**HISTORY, "completed": completed}, 0).score_pairs, split, "test")
        for _ in range(2)
    ]
    assert found[0] == found[1]
    still = mean_scores(predict(split, "persistence", {}, 0).score_pairs, split, "test")
    assert found[0][0] > still[0] + 5


def test_biases_of_nodes_learn_who_is_there_where_the_past_does_not_tell():
    generator = np.random.default_rng(0)
    i, j = np.triu_indices(NODES, 1)
    here = generator.random(NODES) < 0.5
    times = [torch.from_numpy(np.stack([i, j])[:, met]) for met in (i < j, here[i] & here[j])]  # first all meet all
    split = hold_out_pairs(times, NODES, 0)
    with_bias, without = (
        mean_scores(
            predict(split, "topoter", {**HISTORY, "epochs": 200, "node_bias": weight}, 0).score_pairs, split, "test"
        )[0]
        for weight in (0.1, 0.0)
    )
    assert with_bias > without + 10


def test_what_is_known_before_a_snapshot_does_not_change_with_it(edges):
    asked = torch.stack([torch.zeros(9, dtype=torch.int64), torch.arange(1, 10)])
    other = [*edges[:3], edges[0]]
    first, second = (
        predict(split, "topoter", HISTORY, 0).score_pairs(split.predictions[0].known, asked)
        for split in (hold_out_last(times, NODES, 0) for times in (edges, other))
    )
    assert torch.equal(first, second)
    split = hold_out_last(edges, NODES, 0)
    completed = predict(split, "topoter", {**HISTORY, "completed": True}, 0)
    with pytest.raises(UsageError, match="has not happened yet"):
        completed.score_pairs(split.predictions[0].known, asked)


def test_a_pair_that_was_held_out_is_no_example_from_then_on(edges):
    split = hold_out_pairs(edges, NODES, 0)
    batches = _examples(split.transitions, completed=False, generator=torch.Generator().manual_seed(0))
    tested: set[int] = set()
    for prediction, batch in zip(split.predictions, batches):
        tested |= keys(prediction.val.pairs) | keys(prediction.test.pairs)
        assert not tested & keys(batch.pairs)


def test_real_snapshots_are_aligned_and_learned_from(real_data):
    data = load_snapshots("sparrow-social", data_root=real_data)
    split = hold_out_pairs(data.edges, data.num_nodes, 0)
    predictor = predict(split, "topoter", SETTINGS["topoter"], 0)
    assert len(predictor.history) == 4
    assert predictor.score_pairs(split.predictions[0].known, split.predictions[0].test.pairs).shape == (60,)
    with pytest.raises(DataError, match="three at least"):
        hold_out_last(data.edges, data.num_nodes, 0)


def test_the_estimator_fits_snapshots(edges):
    model = TopoTER("gcn", num_layers=2, hidden_channels=8, out_channels=4, epochs=3).fit_snapshots(edges)
    assert model.n_features_in_ == 1
    assert len(model.history_) == 3


def test_bad_snapshots_are_refused(edges):
    model = TopoTER(epochs=1)
    with pytest.raises(DataError, match="two snapshots at least: there is only 1"):
        model.fit_snapshots(edges[:1])
    with pytest.raises(DataError, match="two snapshots at least"):
        hold_out_pairs(edges[:1], NODES, 0)
    with pytest.raises(DataError, match="No node has edges in two successive snapshots"):
        model.fit_snapshots([torch.tensor([[0, 1], [1, 2]]), torch.tensor([[3, 4], [4, 5]])])
    with pytest.raises(DataError, match="Snapshot 2 of 3 has no edges"):
        model.fit_snapshots([edges[0], edges[0][:, :0], edges[1]])
    with pytest.raises(DataError, match="4 edges: too few"):
        hold_out_pairs([edges[0], edges[1][:, :4]], NODES, 0)
    with pytest.raises(UsageError, match="Did you mean 'vgae'"):
        predict(hold_out_pairs(edges, NODES, 0), "vgaee", {}, 0)
