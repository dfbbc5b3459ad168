"""Training: it learns, stops, keeps the best weights, goes on bit for bit after a stop, leaves no trace."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from dense_oracle import random_graph
from topoter.adjacency import Adjacency
from topoter.checkpoint import load_checkpoint, save_checkpoint
from topoter.datasets import block_model
from topoter.decoder import TransformationDecoder
from topoter.encoders import GIN, SGC
from topoter.errors import DataError, TopoterError, UsageError
from topoter.model import TopoTERModel
from topoter.training import Interrupted, TrainingSettings, TrainingState, pretrain
from topoter.transformation import SAMPLERS, EdgeChange

pytestmark = pytest.mark.usefixtures("one_thread")


def blocks(num_nodes: int = 60, mean_degree: float = 4.0):
    data = block_model(num_nodes, 4, mean_degree, 16, 0, within=0.9, noise=0.3)
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, num_nodes)
    return [(data.x, adjacency)]


def start(settings: TrainingSettings, encoder=None, seed: int = 0) -> TrainingState:
    generator = torch.Generator().manual_seed(seed)
    encoder = SGC(16, 32) if encoder is None else encoder
    encoder.initialize("orthogonal", generator)
    decoder = TransformationDecoder(encoder.out_channels, scale_edges=True)
    decoder.initialize(generator)
    decoder.start_at_prior(settings.perturbation_rate)
    return TrainingState.start(TopoTERModel(encoder, decoder), settings, generator)


def weights(state: TrainingState) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in state.model.state_dict().items()}


def assert_same_weights(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


def test_the_task_is_learned_on_a_block_model():
    settings = TrainingSettings(perturbation_rate=0.5, epochs=60, patience=None, learning_rate=3e-2)
    state = start(settings)
    pretrain(state, blocks(200, 8.0), settings)
    first, last = state.history[0], state.history[-1]
    assert first.prior_entropy == pytest.approx(np.log(4), rel=1e-6)
    assert first.loss > first.prior_entropy - 0.05
    assert last.loss < last.prior_entropy - 0.2
    # Always naming one type is right in a quarter of the pairs; here the types are told apart.
    assert sum(last.accuracy) / 4 > 0.4
    assert last.accuracy[EdgeChange.ADD] > 0.4
    assert last.accuracy[EdgeChange.KEEP_CONNECTED] > 0.4


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_trains(sampler):
    settings = TrainingSettings(sampler=sampler, epochs=3, perturbation_rate=0.3)
    state = start(settings)
    pretrain(state, blocks(), settings)
    assert [record.epoch for record in state.history] == [1, 2, 3]


def test_the_record_shows_loss_prior_and_accuracy_by_type():
    settings = TrainingSettings(epochs=1, perturbation_rate=1.0)
    state = start(settings)
    records = []
    pretrain(state, blocks(), settings, on_epoch=records.append)
    assert records == state.history
    (record,) = records
    assert record.prior_entropy == pytest.approx(np.log(2), rel=1e-6)
    assert record.accuracy[2:] == (None, None)
    assert all(0 <= accuracy <= 1 for accuracy in record.accuracy[:2])


def test_several_batches_are_one_epoch_weighted_by_their_pairs():
    settings = TrainingSettings(epochs=1, learning_rate=1e-12, perturbation_rate=0.5)
    (small, large), state = [*blocks(16, 1.0), *blocks(60, 4.0)], start(settings)
    pretrain(state, [small, large], settings)
    generator = torch.Generator().manual_seed(0)
    other = start(settings)
    generator.set_state(other.generator.get_state())
    losses, sizes = [], []
    for x, adjacency in (small, large):
        transformation = SAMPLERS["exact"](adjacency, 0.5, generator)
        losses.append(float(other.model.loss(x, transformation)[0].detach()))
        sizes.append(transformation.pairs.size(1))
    assert sizes[0] < sizes[1]
    assert state.history[0].loss == pytest.approx(np.average(losses, weights=sizes), rel=1e-5)


def test_training_stops_when_patience_is_out():
    # Nothing can be learned from a step this small: the loss wanders, and luck decides which is lowest.
    settings = TrainingSettings(epochs=500, patience=4, learning_rate=1e-9)
    state = start(settings)
    pretrain(state, blocks(), settings)
    losses = [record.loss for record in state.history]
    best = int(np.argmin(losses))
    assert len(losses) == best + 1 + 4 < 500
    assert state.waited == 4
    assert state.best_loss == losses[best]


def test_without_patience_training_runs_to_the_end():
    settings = TrainingSettings(epochs=25, patience=None, learning_rate=1e-9)
    state = start(settings)
    pretrain(state, blocks(), settings)
    assert len(state.history) == 25


def test_the_weights_left_are_those_that_had_the_lowest_loss():
    settings = TrainingSettings(epochs=20, patience=None, learning_rate=1.0)  # so large that the loss jumps
    state = start(settings)
    # What each epoch started from: weights, and the state of the generator.
    started = [(weights(state), state.generator.get_state())]
    batches = blocks()
    pretrain(
        state,
        batches,
        settings,
        on_epoch=lambda _: started.append((weights(state), state.generator.get_state())),
    )
    losses = [record.loss for record in state.history]
    best = int(np.argmin(losses))
    assert best < len(losses) - 1, "this test needs a run that gets worse again"
    assert_same_weights(weights(state), started[best][0])
    # Evaluated again on the same transformation, they have that loss.
    generator = torch.Generator()
    generator.set_state(started[best][1])
    x, adjacency = batches[0]
    loss, _ = state.model.loss(x, SAMPLERS["exact"](adjacency, settings.perturbation_rate, generator))
    assert float(loss.detach()) == pytest.approx(min(losses), rel=1e-6)


@pytest.mark.parametrize("make", [lambda: SGC(16, 32), lambda: GIN(16, 8, 2)], ids=["sgc", "gin"])
def test_a_stopped_training_goes_on_bit_for_bit_from_its_file(tmp_path, make):
    settings = TrainingSettings(epochs=12, learning_rate=1e-2)
    whole = start(settings, make())
    pretrain(whole, blocks(), settings)

    path = tmp_path / "state.topoter"

    def save(state: TrainingState) -> None:
        save_checkpoint(path, "training", state.tensors(), state.scalars())

    stopped = start(settings, make())
    with pytest.raises(Interrupted, match=r"^Stopped after epoch 5 of 12\.$"):
        pretrain(stopped, blocks(), settings, should_stop=lambda: len(stopped.history) == 5, save=save)

    resumed = start(settings, make(), seed=99)
    resumed.restore(*load_checkpoint(path, "training"))
    assert len(resumed.history) == 5
    pretrain(resumed, blocks(), settings)
    assert resumed.history == whole.history
    assert_same_weights(weights(resumed), weights(whole))
    assert resumed.best_loss == whole.best_loss
    assert torch.equal(resumed.generator.get_state(), whole.generator.get_state())


def test_patience_counts_on_after_a_stop():
    settings = TrainingSettings(epochs=500, patience=4, learning_rate=1e-9)
    whole = start(settings)
    pretrain(whole, blocks(), settings)
    stopped, kept = start(settings), {}

    def save(state: TrainingState) -> None:
        kept.update(tensors={n: t.clone() for n, t in state.tensors().items()}, scalars=state.scalars())

    with pytest.raises(Interrupted):
        pretrain(stopped, blocks(), settings, should_stop=lambda: stopped.waited == 3, save=save)
    resumed = start(settings, seed=99)
    resumed.restore(**kept)
    assert resumed.waited == 3
    assert resumed.scalars() == stopped.scalars()
    pretrain(resumed, blocks(), settings)
    assert resumed.history == whole.history


def test_the_state_is_saved_now_and_then():
    settings = TrainingSettings(epochs=4)
    state, saved = start(settings), []
    pretrain(state, blocks(), settings, save=lambda s: saved.append(len(s.history)), save_seconds=0.0)
    assert saved == [1, 2, 3, 4]
    state, saved = start(settings), []
    pretrain(state, blocks(), settings, save=lambda s: saved.append(len(s.history)), save_seconds=1e6)
    assert saved == []


def test_a_loss_that_is_no_number_ends_training_in_one_line():
    settings = TrainingSettings(epochs=5, learning_rate=0.125)
    ((x, adjacency),) = blocks()
    with pytest.raises(TopoterError) as caught:
        pretrain(start(settings), [(x * 1e30, adjacency)], settings)
    assert str(caught.value) == (
        "The training loss became nan in epoch 1. Lower the learning rate (it is 0.125) or scale the features."
    )


def test_a_graph_without_edges_is_refused():
    settings = TrainingSettings(epochs=1)
    with pytest.raises(DataError, match="no topology to transform"):
        pretrain(start(settings), [(torch.ones(3, 16), Adjacency(torch.empty(2, 0).long(), 3))], settings)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    settings = TrainingSettings(epochs=4)
    runs = []
    for seed in (1, 1, 2):
        state = start(settings, seed=seed)
        pretrain(state, blocks(), settings)
        runs.append(state)
    assert runs[0].history == runs[1].history
    assert_same_weights(weights(runs[0]), weights(runs[1]))
    assert runs[0].history != runs[2].history


def test_training_does_not_touch_the_global_random_state():
    settings = TrainingSettings(epochs=3)
    state = start(settings)
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    pretrain(state, blocks(), settings)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert random.getstate() == before[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"perturbation_rate": -0.1},
            "The 'perturbation_rate' parameter of TopoTER must be between 0 and 1. Got -0.1 instead.",
        ),
        ({"sampler": "bernouli"}, "Unknown sampler 'bernouli'. Did you mean 'bernoulli'?"),
        ({"epochs": -1}, "The 'epochs' parameter of TopoTER must be a whole number, at least 0. Got -1 instead."),
        ({"patience": 0}, "The 'patience' parameter of TopoTER must be a whole number, at least 1. Got 0 instead."),
        (
            {"learning_rate": 0.0},
            "The 'learning_rate' parameter of TopoTER must be a positive number. Got 0.0 instead.",
        ),
        (
            {"learning_rate": float("inf")},
            "The 'learning_rate' parameter of TopoTER must be a positive number. Got inf instead.",
        ),
        (
            {"weight_decay": -1.0},
            "The 'weight_decay' parameter of TopoTER must be 0 or more. Got -1.0 instead.",
        ),
    ],
)
def test_settings_out_of_range_are_refused_by_name_and_value(change, message):
    with pytest.raises(UsageError) as caught:
        TrainingSettings(**change).check()
    assert str(caught.value) == message


def test_a_batch_of_graphs_and_a_single_graph_train_alike():
    graph = random_graph(12, 0.4, 0)
    batch = Adjacency(graph.edges, 12, ptr=torch.tensor([0, 12]))
    x = torch.randn(12, 16, generator=torch.Generator().manual_seed(0))
    settings = TrainingSettings(epochs=2)
    histories = []
    for adjacency in (graph, batch):
        state = start(settings)
        pretrain(state, [(x, adjacency)], settings)
        histories.append(state.history)
    assert histories[0] == histories[1]
