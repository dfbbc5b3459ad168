"""How a run's training is followed: its progress, and what is kept of how it ended."""

from __future__ import annotations

from typing import Any

from topoter.experiments.experiment import Progress
from topoter.methods import Fitted
from topoter.training import Callback, EpochRecord, TrainingState

_OF_TYPES = ("prior_entropy", "accuracy_")


class Follow(Callback):
    """Tells a run's progress by epochs.

    Args:
        steps: of the whole run, if there are more than the epochs of its training.
        done: steps of it that came before this training.
    """

    def __init__(self, progress: Progress | None, steps: int | None = None, done: int = 0) -> None:
        self.progress, self.steps, self.done = progress, steps, done

    def on_epoch(self, state: TrainingState, record: EpochRecord) -> None:
        if self.progress is not None:
            phase = "" if state.phase in ("training", "links") else f"{state.phase}, "
            checked = "".join(f", {n} {v:.1f}" for n, v in record.metrics.items() if n.startswith("validation") and v)
            steps = self.steps or state.settings.epochs
            self.progress(self.done + record.epoch, steps, f"{phase}loss {record.loss:.3f}{checked}")

    def on_progress(self, done: int, total: int, text: str) -> None:
        if self.progress is not None:
            self.progress(done, self.steps or total, text)


def how_it_ended(fitted: Fitted) -> dict[str, Any]:
    """The last epoch of a training, if there was one."""
    if not fitted.history:
        return {}
    return {"epochs": len(fitted.history), "loss": fitted.history[-1].loss} | said_of(fitted.history[-1])


def said_of(record: EpochRecord) -> dict[str, Any]:
    """Every metric of an epoch; the accuracies of the four types as one list."""
    content: dict[str, Any] = {}
    if "prior_entropy" in record.metrics:
        content = {"prior_entropy": record.prior_entropy, "accuracy_by_type": list(record.accuracy)}
    others = {name: value for name, value in record.metrics.items() if not name.startswith(_OF_TYPES)}
    return content | ({"metrics": others} if others else {})
