"""Training: the model, the one loop, its state and files, callbacks, and the batches it runs over."""

from topoter.training.callbacks import Callback, Checkpoint, StopOnSignal, Validate, as_callbacks
from topoter.training.loop import train
from topoter.training.model import TopoTERModel
from topoter.training.state import EpochRecord, Interrupted, Keep, TrainingSettings, TrainingState

__all__ = [
    "Callback",
    "Checkpoint",
    "EpochRecord",
    "Interrupted",
    "Keep",
    "StopOnSignal",
    "TopoTERModel",
    "TrainingSettings",
    "TrainingState",
    "Validate",
    "as_callbacks",
    "train",
]
