"""The loop with any module: metrics of an epoch, the weights that stay, random streams in a file."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from topoter.errors import TopoterError
from topoter.pretext.objectives import Tally
from topoter.training import Callback, Checkpoint, Keep, TrainingSettings, TrainingState, train


class Line(nn.Module):
    """A weight that is pulled to where each batch says; counts how often it was called."""

    def __init__(self, start: float = 0.0) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.tensor(start))

    def forward(self, target: float, size: int):
        loss = (self.place - target) ** 2
        right = torch.tensor([1 if target > 0 else 0, 1])
        share = Tally(right, lambda counts: float(counts[0]) / float(counts[1]))
        return loss, {"target": target, "place": self.place, "share": share}

    def batch_weight(self, target: float, size: int) -> int:
        return size


def line(batches, callbacks=(), **settings) -> TrainingState:
    options = {"epochs": 6, "patience": None, "learning_rate": 0.1, **settings}
    state = TrainingState.start(Line(), TrainingSettings(**options), {})
    train(state, batches, callbacks)
    return state


def test_metrics_are_means_by_weight_and_tallies_add_up():
    state = line([(1.0, 3), (-1.0, 1), (-4.0, 1)], epochs=1, learning_rate=1e-9)
    (record,) = state.history
    assert record.loss == pytest.approx((3 * 1 + 1 + 16) / 5)
    assert record.metrics["target"] == pytest.approx((3 - 1 - 4) / 5)
    assert record.metrics["place"] == pytest.approx(0, abs=1e-6)
    assert record.metrics["share"] == pytest.approx(1 / 3), "counts know nothing of the batches' weights"


def test_a_module_that_says_nothing_of_weights_gives_each_batch_the_same():
    class Plain(Line):
        batch_weight = None

    state = TrainingState.start(Plain(), TrainingSettings(epochs=1, learning_rate=1e-9), {})
    train(state, [(1.0, 3), (-1.0, 1)])
    assert state.history[0].metrics["target"] == 0.0


@pytest.mark.parametrize("broken", [lambda: iter([(1.0, 1)]), list])
def test_batches_that_can_be_read_only_once_are_told(broken):
    with pytest.raises(TopoterError, match="There is no batch to train on: pass a list"):
        line(broken())


class Given(Callback):
    """A metric with values that are known beforehand; remembers the weight after every epoch."""

    def __init__(self, values) -> None:
        self.values, self.after = values, [0.0]

    def measure(self, state, record):
        value = self.values[record.epoch - 1]
        return {} if value is None else {"score": value}

    def on_epoch(self, state, record) -> None:
        self.after.append(float(state.module.place.detach()))


SCORES = [1.0, 5.0, None, 5.0, float("nan"), 2.0]


@pytest.mark.parametrize(
    ("keep", "batches", "epoch_of_weights"),
    [
        (Keep("score", highest=True, weights="after"), 1, 2),
        (Keep("score", highest=True, weights="before"), 1, 1),
        (Keep("score", highest=True), 1, 1),
        (Keep("score", highest=True), 2, 2),
        (Keep("score", highest=True, weights="before"), 2, 1),
        (Keep("score", weights="after"), 1, 1),
        (Keep("score", weights="before"), 1, 0),
        (None, 1, 6),
        (Keep("never measured"), 1, 6),
    ],
)
def test_the_weights_that_stay(keep, batches, epoch_of_weights):
    given = Given(SCORES)
    state = line([(1.0, 1)] * batches, [given], keep=keep)
    assert float(state.module.place.detach()) == given.after[epoch_of_weights]
    assert [record.metrics.get("score") for record in state.history][:4] == SCORES[:4]
    if keep is not None and keep.metric == "score":
        assert state.best_epoch == (2 if keep.highest else 1), "of equal ones the first, and no NaN"


def test_a_training_without_epochs_leaves_the_module_as_it_was():
    state = line([(1.0, 1)], epochs=0)
    assert state.history == []
    assert float(state.module.place.detach()) == 0.0


def test_numpy_and_torch_streams_go_on_where_they_were(tmp_path):
    kinds = {
        "torch": torch.Generator,
        "pcg": lambda: np.random.Generator(np.random.PCG64(0)),
        "sfc": lambda: np.random.Generator(np.random.SFC64(0)),
    }
    streams = {name: kind() for name, kind in kinds.items()}

    def draw(streams) -> list[float]:
        drawn = torch.rand((), generator=streams["torch"])
        return [float(drawn), *(streams[name].random() for name in ("pcg", "sfc"))]

    draw(streams)
    state = TrainingState.start(Line(), TrainingSettings(), streams)
    Checkpoint(tmp_path / "s", 0.0).save(state)
    others = {name: kind() for name, kind in kinds.items()}
    Checkpoint(tmp_path / "s", resume=True).on_start(TrainingState.start(Line(), TrainingSettings(), others))
    assert draw(others) == draw(streams)
