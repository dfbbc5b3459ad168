"""Callbacks: when each hook is called, saving and going on, early stop, validation, stopping on a signal."""

from __future__ import annotations

import os
import signal

import pytest
import torch
from torch import nn

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.encoders import Hops
from topoter.errors import DataError, TopoterError, UsageError
from topoter.training import (
    Callback,
    Checkpoint,
    Interrupted,
    Keep,
    StopOnSignal,
    TrainingSettings,
    TrainingState,
    Validate,
    as_callbacks,
    train,
)
from topoter.training.callbacks import EarlyStop, OnEpoch
from topoter.training.checkpoint import load_checkpoint

pytestmark = pytest.mark.usefixtures("one_thread")

GRAPH = block_model(40, 4, 4, 8, 0)


class Slope(nn.Module):
    """A loss that falls for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.tensor(1.0))

    def forward(self):
        return self.place, {}


def run(*callbacks, **settings) -> TrainingState:
    options = {"epochs": 3, "patience": None, "learning_rate": 0.1, **settings}
    state = TrainingState.start(Slope(), TrainingSettings(**options), {})
    train(state, [()], callbacks)
    return state


class Told(Callback):
    """Writes down every hook that is called."""

    def __init__(self, told: list[str], name: str = "") -> None:
        self.told, self.name = told, name

    def on_start(self, state) -> None:
        self.told.append(f"{self.name}start")

    def measure(self, state, record):
        assert len(state.history) == record.epoch - 1, "the epoch is not closed yet"
        self.told.append(f"{self.name}measure {record.epoch}")
        return {}

    def on_epoch(self, state, record) -> None:
        assert state.history[-1] is record
        self.told.append(f"{self.name}epoch {record.epoch}")

    def on_interrupt(self, state) -> None:
        self.told.append(f"{self.name}interrupt")

    def close(self) -> None:
        self.told.append(f"{self.name}close")

    def on_end(self, state) -> None:
        self.told.append(f"{self.name}end")


def small(**options) -> TopoTER:
    return TopoTER(**{"encoder": "sgc", "out_channels": 6, "epochs": 6, **options})


def stop_after(epoch: int):
    def stop(record) -> None:
        if record.epoch == epoch:
            raise Interrupted(f"Stopped after epoch {epoch}.")

    return stop


# ---- hooks -------------------------------------------------------------------------------------------------


def test_hooks_are_called_in_order_and_callbacks_in_the_order_given():
    told: list[str] = []
    run(Told(told, "a "), Told(told, "b "), epochs=2)
    expected = ["start", "measure 1", "epoch 1", "measure 2", "epoch 2", "close", "end"]
    assert told == [f"{name} {hook}" for hook in expected for name in "ab"]


def test_an_interrupted_training_tells_everyone_and_does_not_end():
    told: list[str] = []
    with pytest.raises(Interrupted, match="Stopped after epoch 2"):
        run(Told(told), OnEpoch(stop_after(2)), epochs=9)
    assert told == ["start", "measure 1", "epoch 1", "measure 2", "epoch 2", "interrupt", "close"]


def test_after_any_other_error_callbacks_are_closed_only():
    told: list[str] = []

    def fail(record) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(Told(told), OnEpoch(fail))
    assert told == ["start", "measure 1", "epoch 1", "close"]


def test_a_callback_ends_the_training():
    class Enough(Callback):
        def on_epoch(self, state, record) -> None:
            state.stopped = record.epoch == 2

    told: list[str] = []
    state = run(Enough(), Told(told), epochs=9)
    assert len(state.history) == 2
    assert told[-1] == "end"


def test_functions_one_callback_or_several_may_be_passed():
    seen: list[int] = []

    def note(record) -> None:
        seen.append(record.epoch)

    assert as_callbacks(None) == []
    for given in (note, [note], (note,), OnEpoch(note), iter([note])):
        (callback,) = as_callbacks(given)
        assert isinstance(callback, OnEpoch)
    small(epochs=2).fit(GRAPH, callbacks=note)
    small(epochs=2, on_epoch=note).fit(GRAPH, callbacks=[note, Callback()])
    assert seen == [1, 2, 1, 1, 2, 2]
    with pytest.raises(UsageError, match=r"A callback must be a topoter Callback or a function .* Got 3\.$"):
        small().fit(GRAPH, callbacks=[3])


def test_what_a_callback_measures_is_in_the_record_and_may_decide():
    class Score(Callback):
        def measure(self, state, record):
            return {"score": float(-abs(record.epoch - 2))}

    state = run(Score(), keep=Keep("score", highest=True, weights="after"), epochs=4)
    assert [record.metrics["score"] for record in state.history] == [-1, 0, -1, -2]
    assert float(state.module.place.detach()) == pytest.approx(1 - 2 * 0.1, abs=1e-5)


# ---- those that are there ----------------------------------------------------------------------------------


def test_early_stop_counts_epochs_without_a_better_value():
    values = iter([3.0, 4.0, 4.0, 2.0, 4.0, 9.0])
    measure = Validate("score", lambda: next(values))
    state = run(measure, keep=Keep("score", highest=True), patience=3, epochs=50)
    assert len(state.history) == 5
    assert state.best_epoch == 2
    assert state.stopped


def test_early_stop_looks_only_where_something_was_measured():
    """Measured at 2, 4, 6, ...: at 4 two epochs have passed since the best, and patience is out."""
    state = run(Validate("score", lambda: 1.0, every=2), keep=Keep("score", highest=True), patience=1, epochs=50)
    assert len(state.history) == 4
    assert len(run(keep=None, patience=1, epochs=5).history) == 5, "nothing decides, nothing to wait for"
    assert len(run(EarlyStop(None), epochs=5).history) == 5


def test_validation_every_few_epochs_and_after_the_last():
    calls: list[int] = []
    state = run(Validate("score", lambda: calls.append(1) or 7.0, every=3), keep=None, epochs=7)
    assert [record.epoch for record in state.history if "score" in record.metrics] == [3, 6, 7]
    assert len(calls) == 3


# ---- saving and going on -----------------------------------------------------------------------------------


def test_the_state_is_saved_now_and_then(tmp_path, monkeypatch):
    saved: list[int] = []
    monkeypatch.setattr(Checkpoint, "save", lambda self, state: saved.append(len(state.history)))
    run(Checkpoint(tmp_path / "s", 0.0), epochs=4)
    assert saved == [0, 1, 2, 3, 4, 4]
    saved.clear()
    run(Checkpoint(tmp_path / "s", 1e6), epochs=4)
    assert saved == [0, 4]
    saved.clear()
    with pytest.raises(Interrupted):
        run(Checkpoint(tmp_path / "s", 1e6), OnEpoch(stop_after(2)), epochs=4)
    assert saved == [0, 2]


def test_a_fit_that_is_stopped_after_its_last_epoch_goes_on_there(tmp_path, monkeypatch):
    """The default encoder joins its parts then, which takes a while."""
    path = tmp_path / "s"
    whole = TopoTER(epochs=40).fit(GRAPH)

    def stop(self, *batch) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Hops, "finish", stop)
        with pytest.raises(KeyboardInterrupt):
            TopoTER(epochs=40).fit(GRAPH, callbacks=Checkpoint(path, 1e6))
    seen: list[int] = []
    resumed = TopoTER(epochs=40).fit(GRAPH, callbacks=[Checkpoint(path, resume=True), lambda r: seen.append(r.epoch)])
    assert seen == []
    assert len(resumed.history_) == len(whole.history_) > 0
    assert (resumed.transform(GRAPH) == whole.transform(GRAPH)).all()


@pytest.mark.parametrize("first", [True, False], ids=["checkpoint first", "checkpoint last"])
def test_an_interrupted_fit_goes_on_bit_for_bit(tmp_path, first):
    path = tmp_path / "s.topoter"
    whole = small().fit(GRAPH)
    callbacks = [Checkpoint(path, 1e6), stop_after(2)]
    with pytest.raises(Interrupted):
        small().fit(GRAPH, callbacks=callbacks if first else callbacks[::-1])
    checkpoint = Checkpoint(path, resume=True)
    seen: list[int] = []
    resumed = small().fit(GRAPH, callbacks=[checkpoint, lambda record: seen.append(record.epoch)])
    assert seen == [3, 4, 5, 6]
    assert resumed.history_ == whole.history_
    assert (resumed.transform(GRAPH) == whole.transform(GRAPH)).all()
    checkpoint.remove()
    checkpoint.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_state_of_something_else_is_refused(tmp_path):
    path = tmp_path / "s.topoter"
    with pytest.raises(Interrupted):
        small().fit(GRAPH, callbacks=[Checkpoint(path), stop_after(2)])
    before = path.read_bytes()
    other = GRAPH.clone()
    other.x = other.x + 1
    for model, graph in (
        (small(), other),
        (small(order=1), GRAPH),
        (small(random_state=1), GRAPH),
        (small(objective="full"), GRAPH),
        (small(objective=[("paper", 0.5)]), GRAPH),
        (small(encoder_parameters={"negative_slope": 0.5}), GRAPH),
    ):
        with pytest.raises(UsageError) as caught:
            model.fit(graph, callbacks=Checkpoint(path, resume=True))
        assert str(caught.value) == (
            f"{path} was made with another graph or other options. "
            "Repeat the options of the interrupted command, or run without --resume to start anew."
        )
    with pytest.raises(UsageError, match="another graph or other options"):
        small().fit_snapshots([GRAPH.edge_index, GRAPH.edge_index], x=GRAPH.x, callbacks=Checkpoint(path, resume=True))
    assert path.read_bytes() == before, "what was refused is not written over"


def test_there_must_be_something_to_resume(tmp_path):
    with pytest.raises(UsageError, match=r"There is nothing to resume: .*s.topoter does not exist"):
        Checkpoint(tmp_path / "s.topoter", resume=True)
    (tmp_path / "s.topoter").write_bytes(b"something else")
    with pytest.raises(DataError, match="is not a topoter file, or it is damaged"):
        small().fit(GRAPH, callbacks=Checkpoint(tmp_path / "s.topoter", resume=True))
    small().fit(GRAPH).save(tmp_path / "m.topoter")
    with pytest.raises(DataError, match="holds a 'model', not a 'training'"):
        small().fit(GRAPH, callbacks=Checkpoint(tmp_path / "m.topoter", resume=True))


def test_a_state_that_does_not_fit_the_module_is_refused(tmp_path):
    class Other(Slope):
        def __init__(self) -> None:
            super().__init__()
            self.more = nn.Parameter(torch.zeros(2))

    run(Checkpoint(tmp_path / "s", 0.0))
    state = TrainingState.start(Other(), TrainingSettings(), {})
    with pytest.raises(DataError, match=r"^The saved training state does not fit this model \(.*Start anew\.$"):
        train(state, [()], [Checkpoint(tmp_path / "s", resume=True)])


def test_of_two_trainings_in_a_row_the_one_that_was_stopped_goes_on(tmp_path):
    path = tmp_path / "s"

    def both(*callbacks) -> list[TrainingState]:
        states = []
        for phase in ("first", "second"):
            state = TrainingState.start(Slope(), TrainingSettings(epochs=4, learning_rate=0.1), {})
            state.phase = phase
            states.append(state)
            train(state, [()], callbacks)
        return states

    whole = both()

    class StopInSecond(Callback):
        def on_epoch(self, state, record) -> None:
            if state.phase == "second" and record.epoch == 2:
                raise Interrupted("Stopped.")

    with pytest.raises(Interrupted):
        both(Checkpoint(path, 0.0), StopInSecond())
    assert load_checkpoint(path, "training")[1]["phase"] == "second"
    told: list[str] = []
    resumed = both(Checkpoint(path, 0.0, resume=True), Told(told))
    assert [hook for hook in told if hook.startswith("epoch")] == [f"epoch {n}" for n in (1, 2, 3, 4, 3, 4)]
    for a, b in zip(whole, resumed):
        assert a.history == b.history
        assert torch.equal(a.module.place, b.module.place)


# ---- signals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_training_after_its_epoch(tmp_path, number):
    before = signal.getsignal(number)

    def send(record) -> None:
        if record.epoch == 2:
            os.kill(os.getpid(), number)

    with pytest.raises(Interrupted, match=r"^Stopped after epoch 2 of 6\.$") as caught:
        small().fit(GRAPH, callbacks=[send, StopOnSignal(), Checkpoint(tmp_path / "s", 1e6)])
    assert caught.value.exit_code == 130
    assert signal.getsignal(number) is before
    assert len(load_checkpoint(tmp_path / "s", "training")[1]["history"]) == 2


def test_a_second_signal_ends_it_at_once():
    def send_twice(record) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(OnEpoch(send_twice), StopOnSignal())
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("fails", [False, True])
def test_signals_are_given_back_however_the_training_ends(fails):
    def fail(record) -> None:
        raise TopoterError("The training loss became nan.")

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    if fails:
        with pytest.raises(TopoterError):
            run(StopOnSignal(), OnEpoch(fail))
    else:
        run(StopOnSignal())
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
