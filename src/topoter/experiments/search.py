"""How `best` recipes are found: a search that cannot see test labels.

It gets the labels of training and validation nodes only; those of test nodes are erased before anything else
happens, so no test accuracy can be computed, printed or chosen by. A setting's score is the accuracy of the usual
probe, averaged over encoders and over splits of the labelled nodes: the published one, and random ones of the same
size, because a single set of 140 training nodes favours some settings by luck.

The space is searched one parameter at a time, from the default recipe on, each taking the value with the best score;
a second round revisits every choice. The number of epochs is read off each training on its way.

What needs no training is searched too: propagated features with every scaling and order of the space. A recipe that
was searched for should be compared with a reference that was.
"""

from __future__ import annotations

import copy
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from topoter.adjacency import Adjacency
from topoter.datasets.splits import random_split
from topoter.errors import DataError
from topoter.estimator import TopoTER
from topoter.experiments.recipes import load_recipe
from topoter.experiments.runs import save_text, versions
from topoter.tasks.node_classification import propagated, split_of
from topoter.tasks.probe import choose_probe
from topoter.training import EpochRecord, TrainingState, pretrain

if TYPE_CHECKING:
    from torch_geometric.data import Data

SPACE: dict[str, tuple[Any, ...]] = {
    "feature_scaling": ("none", "sum", "unit"),
    "order": (2, 3, 4),
    "perturbation_rate": (0.3, 0.5, 0.7, 0.9),
    "negative_slope": (0.1, 1.0),
    "learning_rate": (1e-3, 3e-3, 1e-2),
    "init_gain": (1.0, 3.0, 6.0, 12.0),
    "out_channels": (512, "features"),  # "features": the multiple of 512 that holds all features
}
EPOCHS = (40, 80, 160, 320, 640)
RANDOM_SPLITS = 4
UNKNOWN = -1  # in place of every test label

Setting = dict[str, Any]


@dataclass
class Trial:
    """A setting and the scores of its encoders in percent, by the number of epochs."""

    setting: Setting
    scores: dict[int, list[float]] = field(default_factory=dict)

    def best(self) -> tuple[float, int]:
        """The highest mean score and its number of epochs; fewer epochs where two are equal."""
        score, negative_epochs = max((statistics.fmean(values), -epochs) for epochs, values in self.scores.items())
        return score, -negative_epochs


class Search:
    """A search on one dataset, kept in a file after every trial, so that it can be stopped and go on.

    Args:
        data: a labelled graph; its test labels are erased here.
        seeds: encoders per setting.
        path: where the trials are kept.
        most_epochs: up to which of `EPOCHS` to train.
    """

    def __init__(self, data: Data, dataset: str, seeds: int, path: Path, most_epochs: int = EPOCHS[-1]) -> None:
        self.data = without_test_labels(data)
        self.dataset, self.seeds, self.path = dataset, seeds, path
        self.epochs = [epochs for epochs in EPOCHS if epochs <= most_epochs] or [most_epochs]
        self.splits = labelled_splits(self.data)
        width = -(-int(data.num_features) // 512) * 512
        self.space = {
            name: tuple(dict.fromkeys(width if value == "features" else value for value in values))
            for name, values in SPACE.items()
        }
        self.trials, self.propagated = self._load()

    def run(self, on_trial: Callable[[Trial], None] | None = None, rounds: int = 2) -> Trial:
        """The best trial, after trying what is not on disk yet."""
        if not self.propagated:
            self.propagated = self._propagated()
            self._save()
        base = load_recipe("node-classification", "topoter", "default").parameters
        setting = {name: value for name, value in base.items() if name not in ("epochs", "patience")}
        for _ in range(rounds):
            before = dict(setting)
            for name, values in self.space.items():
                tried = [self.trial({**setting, name: value}, on_trial) for value in values]
                setting = max(tried, key=lambda trial: trial.best()[0]).setting
            if setting == before:
                break
        return self.trial(setting, on_trial)

    def trial(self, setting: Setting, on_trial: Callable[[Trial], None] | None = None) -> Trial:
        """The scores of a setting, from the file or by training."""
        known = next((trial for trial in self.trials if trial.setting == setting), None)
        if known is not None:
            return known
        trial = Trial(dict(setting))
        for seed in range(self.seeds):
            for epochs, z in embeddings_on_the_way(self.data, setting, seed, self.epochs):
                trial.scores.setdefault(epochs, []).append(score(z, self.data.y.numpy(), self.splits))
        self.trials.append(trial)
        self._save()
        if on_trial is not None:
            on_trial(trial)
        return trial

    def _propagated(self) -> list[Trial]:
        """The scores of features propagated without weights, in the place of 0 epochs."""
        settings = [
            {"feature_scaling": scaling, "order": order}
            for scaling in self.space.get("feature_scaling", ("none",))
            for order in self.space.get("order", (2,))
        ]
        y = self.data.y.numpy()
        return [
            Trial(setting, {0: [score(propagated(self.data, setting, 0, None).z, y, self.splits)]})
            for setting in settings
        ]

    def _load(self) -> tuple[list[Trial], list[Trial]]:
        """The trials on disk, and those without training."""
        if not self.path.is_file():
            return [], []
        stored = json.loads(self.path.read_text(encoding="utf-8"))
        found, asked = (
            f"{dataset}, {seeds} seeds, epochs {epochs}"
            for dataset, seeds, epochs in (
                (stored["dataset"], stored["seeds"], stored["epochs"]),
                (self.dataset, self.seeds, self.epochs),
            )
        )
        if found != asked:
            raise DataError(f"{self.path} holds another search ({found}) than asked for ({asked}): move it away.")
        trained, untrained = (
            [
                Trial(item["setting"], {int(epochs): values for epochs, values in item["scores"].items()})
                for item in stored.get(key, [])
            ]
            for key in ("trials", "propagated")
        )
        return trained, untrained

    def _save(self) -> None:
        content = {
            "dataset": self.dataset,
            "seeds": self.seeds,
            "splits": len(self.splits),
            "space": self.space,
            "epochs": self.epochs,
            "versions": versions(),
        }
        for key, trials in (("propagated", self.propagated), ("trials", self.trials)):
            content[key] = [{"setting": trial.setting, "scores": trial.scores} for trial in trials]
        save_text(self.path, json.dumps(content, indent=1) + "\n")
        save_text(self.path.with_suffix(".md"), self.table())

    def table(self) -> str:
        """Every setting tried, the best first, as Markdown."""
        header = ["validation accuracy", "epochs", *self.space]
        lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
        for trial in sorted(self.trials, key=lambda trial: -trial.best()[0]):
            accuracy, epochs = trial.best()
            values = [f"{accuracy:.2f}", epochs, *(trial.setting[name] for name in self.space)]
            lines.append("| " + " | ".join(str(value) for value in values) + " |")
        lines += ["", "Propagated features, without training:", ""]
        lines += ["| validation accuracy | feature_scaling | order |", "|---|---|---|"]
        for trial in sorted(self.propagated, key=lambda trial: -trial.best()[0]):
            setting = trial.setting
            lines.append(f"| {trial.best()[0]:.2f} | {setting['feature_scaling']} | {setting['order']} |")
        return "\n".join(lines) + "\n"


def without_test_labels(data: Data) -> Data:
    """The graph with every label erased that is not for training or validation."""
    split_of(data)
    erased = data.clone()
    erased.y = torch.where(data.train_mask | data.val_mask, data.y, UNKNOWN)
    del erased.test_mask
    return erased


def labelled_splits(data: Data) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and validation nodes: the published ones, and random ones out of both together."""
    train, val = (mask.nonzero().view(-1).numpy() for mask in (data.train_mask, data.val_mask))
    labelled = np.concatenate([train, val])
    y = data.y[torch.from_numpy(labelled)]
    per_class = max(1, len(train) // len(y.unique()))
    splits = [(train, val)]
    for seed in range(RANDOM_SPLITS):
        chosen, _, _ = random_split(y, seed=seed, train_per_class=per_class, val_per_class=0)
        splits.append((labelled[chosen.numpy()], labelled[~chosen.numpy()]))
    return splits


def score(z: np.ndarray, y: np.ndarray, splits: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Mean validation accuracy of the usual probe over splits, in percent."""
    return statistics.fmean(choose_probe(z, y, train, val).val for train, val in splits)


def embeddings_on_the_way(
    data: Data, setting: Setting, seed: int, numbers: Sequence[int]
) -> Iterator[tuple[int, np.ndarray]]:
    """What training with each number of epochs would give, out of one training with the most of them."""
    unlabelled = data.clone()
    for name in ("y", "train_mask", "val_mask"):
        del unlabelled[name]
    model = TopoTER(**setting, epochs=max(numbers), patience=None, random_state=seed)
    state, whole = model.start(unlabelled)
    batches = list(whole)
    found: list[tuple[int, np.ndarray]] = []

    def keep(record: EpochRecord) -> None:
        if record.epoch in numbers:
            found.append((record.epoch, _embed(state, batches[0])))

    pretrain(state, batches, model.settings(), on_epoch=keep)
    yield from found


def _embed(state: TrainingState, batch: tuple[Any, Adjacency]) -> np.ndarray:
    """The embedding by the best weights so far: those that training would keep if it ended here."""
    model = copy.deepcopy(state.model)
    model.load_state_dict(state.best_weights)
    z: np.ndarray = model.embed(*batch).numpy()
    return z
