"""How the recipes of link prediction are found: a search that cannot see test pairs.

Every seed has its own split; its test pairs are thrown away before anything is trained. A setting's score is the mean
of validation AUC and AP over the seeds. One parameter is changed at a time, the best value of each kept.

The peers are searched as ours is: what is no part of TopoTER (width, noise, hidden edges, weight decay) is chosen with
TopoTER left out, on `gae`, and all methods start from there. Then `gae` and `vgae` revisit these choices, up to eight
settings each, while `topoter` spends eight on its own loss. So it has to win against a model tuned without it.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoter.errors import DataError, unknown_name
from topoter.experiments.runs import save_text, versions
from topoter.tasks.link_prediction import predict
from topoter.tasks.link_split import LinkSplit, auc_and_ap, split_links

if TYPE_CHECKING:
    from torch_geometric.data import Data

Setting = dict[str, Any]
# A parameter, or several that belong together, and the values it may take.
Space = dict[str, tuple[Setting, ...]]


def _values(name: str, *values: Any) -> tuple[Setting, ...]:
    return tuple({name: value} for value in values)


START: Setting = {
    "decoder": "hadamard",
    "hidden_channels": 128,
    "out_channels": 64,
    "activation": "relu",
    "batch_norm": True,
    "init": "glorot",
    "feature_scaling": "sum",
    "feature_dropout": 0.5,
    "dropout": 0.5,
    "decoder_dropout": 0.2,
    "hidden_edges": 0.5,
    "weight_decay": 5e-5,
    "learning_rate": 1e-2,
    "epochs": 300,
    "patience": 60,
}
NOISE: Space = {
    "hidden_edges": _values("hidden_edges", 0.0, 0.3, 0.5, 0.7),
    "feature_dropout": _values("feature_dropout", 0.3, 0.5, 0.7),
    "dropout": _values("dropout", 0.3, 0.5, 0.7),
    "weight_decay": _values("weight_decay", 0.0, 5e-5),
}
SHARED: Space = {
    "feature_scaling": _values("feature_scaling", "none", "sum", "unit"),
    "width": ({"hidden_channels": 128, "out_channels": 64}, {"hidden_channels": 256, "out_channels": 128}),
    "batch_norm": _values("batch_norm", True, False),
    **NOISE,
}
# How TopoTER's loss takes part: beside that of the pairs, before it, or both.
TOPOLOGY: Space = {
    "topology": (
        {"joint": 0.1},
        {"joint": 0.3},
        {"joint": 1.0},
        {"pretraining_epochs": 50, "pretraining_learning_rate": 1e-3},
        {"pretraining_epochs": 200, "pretraining_learning_rate": 1e-2},
        {"pretraining_epochs": 200, "pretraining_learning_rate": 1e-2, "joint": 0.3},
    ),
    "perturbation_rate": _values("perturbation_rate", 0.7, 0.3, 0.5),
}
# For an encoder that stays as pre-training left it.
PRETRAINING: Space = {
    "pretraining": (
        {"pretraining_epochs": 50, "pretraining_learning_rate": 1e-3},
        {"pretraining_epochs": 200, "pretraining_learning_rate": 1e-2},
    )
}
# The paper's recipe: what it states is fixed, what it leaves open is searched.
PAPER_START: Setting = {
    "decoder": "inner product",
    "hidden_channels": 32,
    "out_channels": 16,
    "init": "glorot",
    "feature_scaling": "none",
    "pretraining_epochs": 1000,
    "pretraining_learning_rate": 1e-4,
    "perturbation_rate": 0.7,
    "scale_edges": False,
    "prior_bias": False,
    "recentre": False,
    "learning_rate": 1e-2,
    "epochs": 200,
    "patience": 50,
}
PAPER: Space = {
    "recentre": _values("recentre", False, True),
    "feature_scaling": _values("feature_scaling", "none", "sum", "unit"),
    "pretraining": (
        {"pretraining_epochs": 1000, "pretraining_learning_rate": 1e-4},
        {"pretraining_epochs": 100, "pretraining_learning_rate": 1e-3},
        {"pretraining_epochs": 100, "pretraining_learning_rate": 1e-2},
    ),
    "learning_rate": _values("learning_rate", 3e-3, 1e-2),
    "epochs": ({"epochs": 200, "patience": 50}, {"epochs": 600, "patience": 150}),
    "perturbation_rate": _values("perturbation_rate", 0.3, 0.7),
}
# A second round, from where the first one ended, because its start was far from there; added when that was seen.
PAPER_AGAIN: Space = {
    "recentre": PAPER["recentre"],
    "feature_scaling": PAPER["feature_scaling"],
    "pretraining": (
        {"pretraining_epochs": 100, "pretraining_learning_rate": 1e-3},
        {"pretraining_epochs": 30, "pretraining_learning_rate": 1e-3},
        {"pretraining_epochs": 300, "pretraining_learning_rate": 1e-3},
    ),
    "perturbation_rate": _values("perturbation_rate", 0.1, 0.3, 0.5),
}
# The same without pre-training: what the pre-training of that recipe is worth.
WITHOUT: Space = {
    "pretraining": ({"pretraining_epochs": 0, "recentre": True}, {"pretraining_epochs": 0, "recentre": False})
}


@dataclass(frozen=True)
class Stage:
    """One walk through a space, from where an earlier stage ended or from a start of its own."""

    method: str
    space: Space
    start: Setting | str


STAGES: dict[str, Stage] = {
    "shared": Stage("gae", SHARED, START),
    "topoter": Stage("topoter", TOPOLOGY, "shared"),
    "paper": Stage("topoter", PAPER, PAPER_START),
    "paper-again": Stage("topoter", PAPER_AGAIN, "paper"),
    "paper-without": Stage("no-pretraining", WITHOUT, "paper-again"),
    "vgae": Stage("vgae", NOISE, "shared"),
    "gae": Stage("gae", NOISE, "shared"),
    "frozen": Stage("topoter-frozen", PRETRAINING, "shared"),
}


@dataclass(frozen=True)
class LinkTrial:
    """A setting of a method, and what the validation pairs of each seed said, in percent."""

    method: str
    setting: Setting
    val_auc: list[float]
    val_ap: list[float]
    best_epoch: list[int | None]

    @property
    def score(self) -> float:
        return statistics.fmean(self.val_auc + self.val_ap)


OnTrial = Callable[[LinkTrial], None]


class LinkSearch:
    """A search on one dataset, kept in a file after every trial, so that it can be stopped and go on.

    Args:
        data: a graph; the test pairs of its splits are thrown away here.
        seeds: splits, and trainings, per setting.
        path: where the trials are kept.
        only: what to walk through, each as "stage.parameter", where all would take too long; all if empty.
    """

    def __init__(self, data: Data, dataset: str, seeds: int, path: Path, only: Sequence[str] = ()) -> None:
        self.dataset, self.seeds, self.path, self.only = dataset, seeds, path, tuple(only)
        known = {f"{name}.{parameter}" for name, stage in STAGES.items() for parameter in stage.space}
        for name in self.only:
            if name not in known:
                raise unknown_name("parameter of the search", name, sorted(known))
        self.splits = [without_test_pairs(split_links(data, seed)) for seed in range(seeds)]
        self.trials = self._load()

    def run(self, on_trial: OnTrial | None = None) -> dict[str, LinkTrial]:
        """The best trial of every stage that was walked, after trying what is not on disk yet."""
        best: dict[str, LinkTrial] = {}
        ended: dict[str, Setting] = {}
        for name, stage in STAGES.items():
            setting = ended[stage.start] if isinstance(stage.start, str) else stage.start
            for parameter, values in stage.space.items():
                if self.only and f"{name}.{parameter}" not in self.only:
                    continue
                tried = [self.trial(stage.method, {**setting, **value}, on_trial) for value in values]
                best[name] = max(tried, key=lambda trial: trial.score)
                setting = best[name].setting
            ended[name] = setting
        return best

    def trial(self, method: str, setting: Setting, on_trial: OnTrial | None = None) -> LinkTrial:
        """The scores of a setting, from the file or by training."""
        for known in self.trials:
            if (known.method, known.setting) == (method, setting):
                return known
        val_auc, val_ap, best_epoch = [], [], []
        for seed, split in enumerate(self.splits):
            predictor = predict(split, method, setting, seed)
            auc, ap = auc_and_ap(split.val, predictor.scores(split.val.pairs))
            val_auc.append(auc)
            val_ap.append(ap)
            best_epoch.append(predictor.best_epoch)
        trial = LinkTrial(method, dict(setting), val_auc, val_ap, best_epoch)
        self.trials.append(trial)
        self._save()
        if on_trial is not None:
            on_trial(trial)
        return trial

    def _load(self) -> list[LinkTrial]:
        if not self.path.is_file():
            return []
        stored = json.loads(self.path.read_text(encoding="utf-8"))
        found, asked = (stored["dataset"], stored["seeds"]), (self.dataset, self.seeds)
        if found != asked:
            raise DataError(f"{self.path} holds another search ({found}) than asked for ({asked}): move it away.")
        return [LinkTrial(**item) for item in stored["trials"]]

    def _save(self) -> None:
        content = {
            "dataset": self.dataset,
            "seeds": self.seeds,
            "stages": {name: asdict(stage) for name, stage in STAGES.items()},
            "versions": versions(),
            "trials": [asdict(trial) for trial in self.trials],
        }
        save_text(self.path, json.dumps(content, indent=1) + "\n")
        save_text(self.path.with_suffix(".md"), self.table())

    def table(self) -> str:
        """Every setting tried, the best first, by what it changes in the start of its kind, as Markdown."""
        lines = ["| method | decoder | validation AUC | validation AP | setting |", "|---|---|---|---|---|"]
        for trial in sorted(self.trials, key=lambda trial: -trial.score):
            start = PAPER_START if trial.setting["decoder"] == PAPER_START["decoder"] else START
            changed = {name: value for name, value in trial.setting.items() if start.get(name) != value}
            auc, ap = statistics.fmean(trial.val_auc), statistics.fmean(trial.val_ap)
            text = ", ".join(f"{name} {value}" for name, value in changed.items()) or "the start"
            lines.append(f"| {trial.method} | {trial.setting['decoder']} | {auc:.2f} | {ap:.2f} | {text} |")
        return "\n".join(lines) + "\n"


def without_test_pairs(split: LinkSplit) -> LinkSplit:
    """The split with its validation pairs in place of its test pairs."""
    return replace(split, test=split.val)
