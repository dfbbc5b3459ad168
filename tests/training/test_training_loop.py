"""Training: it learns, stops, keeps the best weights, goes on bit for bit after a stop, leaves no trace."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn

from dense_oracle import random_graph
from topoter.datasets import block_model
from topoter.encoders import GIN, SGC
from topoter.errors import DataError, TopoterError, UsageError
from topoter.pretext.objectives import TypesFromChange
from topoter.pretext.transformation import SAMPLERS, EdgeChange
from topoter.structure.adjacency import Adjacency
from topoter.training import (
    Callback,
    Checkpoint,
    Interrupted,
    TopoTERModel,
    TrainingSettings,
    TrainingState,
    train,
)
from topoter.training.batches import Transformed, check_sampling
from topoter.training.callbacks import OnEpoch

pytestmark = pytest.mark.usefixtures("one_thread")


def blocks(num_nodes: int = 60, mean_degree: float = 4.0):
    data = block_model(num_nodes, 4, mean_degree, 16, 0, within=0.9, noise=0.3)
    adjacency, _ = Adjacency.from_edge_index(data.edge_index, num_nodes)
    return [(data.x, adjacency)]


def start(settings: TrainingSettings, encoder=None, seed: int = 0, rate: float = 0.7) -> TrainingState:
    generator = torch.Generator().manual_seed(seed)
    encoder = SGC(16, 32) if encoder is None else encoder
    encoder.initialize("orthogonal", generator)
    types = TypesFromChange(encoder.out_channels, scale_edges=True, prior_bias=True, perturbation_rate=rate)
    types.initialize(generator)
    model = TopoTERModel(encoder, {"types-from-change": (types, 1.0)})
    return TrainingState.start(model, settings, {"generator": generator})


def pretrain(state: TrainingState, batches, callbacks=(), rate: float = 0.7, sampler: str = "exact") -> None:
    train(state, Transformed(batches, state.streams["generator"], rate, sampler), callbacks)


class StopAfter(Callback):
    """Asks to stop as soon as something is true of the state."""

    def __init__(self, is_time) -> None:
        self.is_time = is_time

    def on_epoch(self, state, record) -> None:
        if self.is_time(state):
            raise Interrupted(f"Stopped after epoch {record.epoch} of {state.settings.epochs}.")


def weights(state: TrainingState) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in state.module.state_dict().items()}


def assert_same_weights(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


def test_the_task_is_learned_on_a_block_model():
    state = start(TrainingSettings(epochs=60, patience=None, learning_rate=3e-2), rate=0.5)
    pretrain(state, blocks(200, 8.0), rate=0.5)
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
    state = start(TrainingSettings(epochs=3), rate=0.3)
    pretrain(state, blocks(), rate=0.3, sampler=sampler)
    assert [record.epoch for record in state.history] == [1, 2, 3]


def test_the_record_shows_loss_prior_and_accuracy_by_type():
    state = start(TrainingSettings(epochs=1), rate=1.0)
    records = []
    pretrain(state, blocks(), [OnEpoch(records.append)], rate=1.0)
    assert records == state.history
    (record,) = records
    assert record.prior_entropy == pytest.approx(np.log(2), rel=1e-6)
    assert record.accuracy[2:] == (None, None)
    assert all(0 <= accuracy <= 1 for accuracy in record.accuracy[:2])


def test_several_batches_are_one_epoch_weighted_by_their_pairs():
    settings = TrainingSettings(epochs=1, learning_rate=1e-12)
    (small, large), state = [*blocks(16, 1.0), *blocks(60, 4.0)], start(settings, rate=0.5)
    pretrain(state, [small, large], rate=0.5)
    generator = torch.Generator().manual_seed(0)
    other = start(settings, rate=0.5)
    generator.set_state(other.streams["generator"].get_state())
    losses, sizes = [], []
    for x, adjacency in (small, large):
        transformation = SAMPLERS["exact"](adjacency, 0.5, generator)
        losses.append(float(other.module(x, transformation)[0].detach()))
        sizes.append(transformation.pairs.size(1))
    assert sizes[0] < sizes[1]
    assert state.history[0].loss == pytest.approx(np.average(losses, weights=sizes), rel=1e-5)


def test_training_stops_when_patience_is_out():
    # Nothing can be learned from a step this small: the loss wanders, and luck decides which is lowest.
    settings = TrainingSettings(epochs=500, patience=4, learning_rate=1e-9)
    state = start(settings)
    pretrain(state, blocks())
    losses = [record.loss for record in state.history]
    best = int(np.argmin(losses))
    assert len(losses) == best + 1 + 4 < 500
    assert state.waited == 4
    assert state.best_value == losses[best]


def test_without_patience_training_runs_to_the_end():
    settings = TrainingSettings(epochs=25, patience=None, learning_rate=1e-9)
    state = start(settings)
    pretrain(state, blocks())
    assert len(state.history) == 25


def test_the_weights_left_are_those_that_had_the_lowest_loss():
    settings = TrainingSettings(epochs=20, patience=None, learning_rate=1.0)  # so large that the loss jumps
    state = start(settings)
    # What each epoch started from: weights, and the state of the generator.
    generator = state.streams["generator"]
    started = [(weights(state), generator.get_state())]
    batches = blocks()
    pretrain(state, batches, [OnEpoch(lambda _: started.append((weights(state), generator.get_state())))])
    losses = [record.loss for record in state.history]
    best = int(np.argmin(losses))
    assert best < len(losses) - 1, "this test needs a run that gets worse again"
    assert_same_weights(weights(state), started[best][0])
    # Evaluated again on the same transformation, they have that loss.
    generator = torch.Generator()
    generator.set_state(started[best][1])
    x, adjacency = batches[0]
    loss, _ = state.module(x, SAMPLERS["exact"](adjacency, 0.7, generator))
    assert float(loss.detach()) == pytest.approx(min(losses), rel=1e-6)


@pytest.mark.parametrize("make", [lambda: SGC(16, 32), lambda: GIN(16, 8, 2)], ids=["sgc", "gin"])
def test_a_stopped_training_goes_on_bit_for_bit_from_its_file(tmp_path, make):
    settings = TrainingSettings(epochs=12, learning_rate=1e-2)
    whole = start(settings, make())
    pretrain(whole, blocks())

    path = tmp_path / "state.topoter"
    stopped = start(settings, make())
    with pytest.raises(Interrupted, match=r"^Stopped after epoch 5 of 12\.$"):
        pretrain(stopped, blocks(), [Checkpoint(path, 1e6), StopAfter(lambda state: len(state.history) == 5)])

    resumed = start(settings, make(), seed=99)
    seen = []
    pretrain(resumed, blocks(), [Checkpoint(path, resume=True), OnEpoch(lambda record: seen.append(record.epoch))])
    assert seen == [6, 7, 8, 9, 10, 11, 12]
    assert resumed.history == whole.history
    assert_same_weights(weights(resumed), weights(whole))
    assert resumed.best_value == whole.best_value
    assert torch.equal(resumed.streams["generator"].get_state(), whole.streams["generator"].get_state())


def test_patience_counts_on_after_a_stop(tmp_path):
    settings = TrainingSettings(epochs=500, patience=4, learning_rate=1e-9)
    whole = start(settings)
    pretrain(whole, blocks())
    stopped, path = start(settings), tmp_path / "state.topoter"
    with pytest.raises(Interrupted):
        pretrain(stopped, blocks(), [StopAfter(lambda state: state.waited == 3), Checkpoint(path)])
    resumed = start(settings, seed=99)
    Checkpoint(path, resume=True).on_start(resumed)
    assert resumed.waited == 3
    assert resumed.scalars() == stopped.scalars()
    pretrain(resumed, blocks())
    assert resumed.history == whole.history


def test_a_training_that_was_out_of_patience_when_stopped_does_not_go_on(tmp_path):
    settings, path = TrainingSettings(epochs=500, patience=4, learning_rate=1e-9), tmp_path / "state.topoter"
    done = start(settings)
    pretrain(done, blocks(), [Checkpoint(path, seconds=0.0)])
    resumed = start(settings, seed=99)
    pretrain(resumed, blocks(), [Checkpoint(path, resume=True)])
    assert resumed.history == done.history
    assert_same_weights(weights(resumed), weights(done))


def test_a_loss_that_is_no_number_ends_training_in_one_line():
    settings = TrainingSettings(epochs=5, learning_rate=0.125)
    ((x, adjacency),) = blocks()
    with pytest.raises(TopoterError) as caught:
        pretrain(start(settings), [(x * 1e30, adjacency)])
    assert str(caught.value) == (
        "The training loss became nan in epoch 1. Lower the learning rate (it is 0.125) or scale the features."
    )


def test_a_graph_without_edges_is_refused():
    settings = TrainingSettings(epochs=1)
    with pytest.raises(DataError, match="no topology to transform"):
        pretrain(start(settings), [(torch.ones(3, 16), Adjacency(torch.empty(2, 0).long(), 3))])


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    settings = TrainingSettings(epochs=4)
    runs = []
    for seed in (1, 1, 2):
        state = start(settings, seed=seed)
        pretrain(state, blocks())
        runs.append(state)
    assert runs[0].history == runs[1].history
    assert_same_weights(weights(runs[0]), weights(runs[1]))
    assert runs[0].history != runs[2].history


def test_training_does_not_touch_the_global_random_state():
    settings = TrainingSettings(epochs=3)
    state = start(settings)
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    pretrain(state, blocks())
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert random.getstate() == before[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
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


@pytest.mark.parametrize(
    ("rate", "sampler", "message"),
    [
        (-0.1, "exact", "The 'perturbation_rate' parameter of TopoTER must be between 0 and 1. Got -0.1 instead."),
        ("0.5", "exact", "The 'perturbation_rate' parameter of TopoTER must be between 0 and 1. Got '0.5' instead."),
        (0.5, "bernouli", "Unknown sampler 'bernouli'. Did you mean 'bernoulli'?"),
    ],
)
def test_a_rate_or_sampler_that_cannot_be_used_is_refused(rate, sampler, message):
    with pytest.raises(UsageError) as caught:
        check_sampling(rate, sampler)
    assert str(caught.value) == message


def test_a_batch_of_graphs_and_a_single_graph_train_alike():
    graph = random_graph(12, 0.4, 0)
    batch = Adjacency(graph.edges, 12, ptr=torch.tensor([0, 12]))
    x = torch.randn(12, 16, generator=torch.Generator().manual_seed(0))
    settings = TrainingSettings(epochs=2)
    histories = []
    for adjacency in (graph, batch):
        state = start(settings)
        pretrain(state, [(x, adjacency)])
        histories.append(state.history)
    assert histories[0] == histories[1]


def test_a_distributed_module_trains_and_counts_as_the_bare_one(tmp_path):
    (batch,) = blocks()
    settings = TrainingSettings(epochs=2)
    bare, wrapped = start(settings), start(settings)
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    try:
        parallel = nn.parallel.DistributedDataParallel(wrapped.module)
        transformation = SAMPLERS["exact"](batch[1], 0.7, torch.Generator().manual_seed(0))
        loss, metrics = parallel(batch[0], transformation)
        assert loss.shape == ()
        assert set(metrics) == set(bare.module(batch[0], transformation)[1])
        state = TrainingState.start(parallel, settings, wrapped.streams)
        pretrain(state, [batch, *blocks(16, 1.0)])
        pretrain(bare, [batch, *blocks(16, 1.0)])
    finally:
        torch.distributed.destroy_process_group()
    assert state.history == bare.history
    assert_same_weights(dict(wrapped.module.state_dict()), weights(bare))
