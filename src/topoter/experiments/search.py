"""How `best` recipes are found: Optuna searches, and cannot see test labels or test pairs.

They are erased before anything else happens, so that nothing can be computed, printed or chosen by them. The score of a
setting on nodes is the validation accuracy of the usual probe, averaged over encoders and over splits of the labelled
nodes: the published one, and random ones of the same size, because a single set of 140 training nodes favours some
settings by luck. On links it is the mean of validation AUC and AP over splits, one per seed.

Peers are searched as ours is, on links in the space of what they share: a recipe that was searched for should be
compared with others that were, with as many trials.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import torch
from filelock import FileLock

from topoter.datasets.splits import random_split
from topoter.errors import DataError, TopoterError, UsageError
from topoter.experiments.recipes import DEFAULT, load_recipe
from topoter.experiments.runs import versions
from topoter.experiments.store import locked, read_lines, write_lines
from topoter.graphs.atomic import is_gone, this_process
from topoter.methods import build
from topoter.tasks.link_split import LinkSplit, auc_and_ap, split_links
from topoter.tasks.node_classification import known_labels, without_labels
from topoter.tasks.probe import choose_probe

if TYPE_CHECKING:
    from torch_geometric.data import Data

Setting = dict[str, Any]
Space = dict[str, Sequence[Any]]  # the values of a parameter; a dictionary stands for several that belong together

_PROPAGATED: Space = {"feature_scaling": ("none", "sum", "unit"), "order": (2, 3, 4)}
_ENCODER: Space = {
    **_PROPAGATED,
    "learning_rate": (1e-3, 3e-3, 1e-2),
    "out_channels": (512, "features"),  # "features": the multiple of 512 that holds all features
    "epochs": (40, 80, 160, 320, 640),
}
_LINKS: Space = {
    "feature_scaling": ("none", "sum", "unit"),
    "width": ({"hidden_channels": 128, "out_channels": 64}, {"hidden_channels": 256, "out_channels": 128}),
    "batch_norm": (True, False),
    "hidden_edges": (0.0, 0.3, 0.5, 0.7),
    "feature_dropout": (0.3, 0.5, 0.7),
    "dropout": (0.3, 0.5, 0.7),
    "weight_decay": (0.0, 5e-5),
}
_PRETRAINING = (
    {"pretraining_epochs": 50, "pretraining_learning_rate": 1e-3},
    {"pretraining_epochs": 200, "pretraining_learning_rate": 1e-2},
)
# By task and method. What is not in a space is as in the method's recipe for datasets that the paper does not use.
SPACES: dict[tuple[str, str], Space] = {
    # Around the one default, whose values stand first: it is tried first, and no search ends below it.
    ("node", "topoter"): {
        "order": (2, 1, 3),
        "perturbation_rate": ([0.0, 0.5], [0.0, 0.2], [0.0, 0.8]),
        "beside": tuple(
            {"encoder_parameters": {"completion": drawn, "rank_beside": hops, "rank": rank}}
            for drawn in (0.5, 0.0, 1.0)
            for hops in (256, 0)
            for rank in (512, 256)
        ),
        "learning_rate": (2e-2, 5e-3),
    },
    ("node", "dgi"): _ENCODER,
    ("node", "gae"): _ENCODER,
    ("node", "vgae"): _ENCODER,
    ("node", "propagated-tuned"): _PROPAGATED,
    ("link", "topoter"): {
        **_LINKS,
        # How TopoTER's loss takes part: beside that of the pairs, before it, or both.
        "topology": (
            *({"joint": weight} for weight in (0.1, 0.3, 1.0)),
            *({**pretraining, "joint": 0.0} for pretraining in _PRETRAINING),
            {**_PRETRAINING[1], "joint": 0.3},
        ),
        "perturbation_rate": (0.3, 0.5, 0.7),
    },
    ("link", "topoter-frozen"): {**_LINKS, "pretraining": _PRETRAINING},
    ("link", "no-pretraining"): _LINKS,
    ("link", "gae"): _LINKS,
    ("link", "vgae"): _LINKS,
}
EXPERIMENTS = {"node": "node-classification", "link": "link-prediction"}
RANDOM_SPLITS = 4


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A setting that was tried; a line of results/search.jsonl.

    Args:
        search: the name of the search, and `number` the place in it.
        scores: on validation in percent, by metric, a value per seed.
        best_epochs: the epoch of each seed whose weights were kept, where validation chose it.
    """

    search: str
    number: int
    task: str
    dataset: str
    method: str
    parameters: dict[str, Any]
    scores: dict[str, list[float]]
    best_epochs: list[int | None] = []
    versions: dict[str, str]

    @property
    def score(self) -> float:
        """What is maximised: the mean over seeds and metrics."""
        return statistics.fmean(value for values in self.scores.values() for value in values)


class NodeScores:
    """Scores settings on a labelled graph, whose test labels are erased here."""

    def __init__(self, data: Data, seeds: int) -> None:
        self.data = known_labels(data)
        self.graph = without_labels(self.data)
        self.splits = labelled_splits(self.data)
        self.seeds = seeds

    def __call__(self, method: str, setting: Setting) -> dict[str, Any]:
        y, found = self.data.y.numpy(), []
        for seed in range(self.seeds):
            z = build(method, "node", setting).fit(self.graph, seed).embed(self.graph)
            found.append(statistics.fmean(choose_probe(z, y, train, val).val for train, val in self.splits))
        return {"scores": {"validation accuracy": found}}


class LinkScores:
    """Scores settings on a graph, a split per seed; its test pairs are thrown away here."""

    def __init__(self, data: Data, seeds: int) -> None:
        self.splits = [without_test_pairs(split_links(data, seed)) for seed in range(seeds)]

    def __call__(self, method: str, setting: Setting) -> dict[str, Any]:
        found, best_epochs = [], []
        for seed, split in enumerate(self.splits):
            fitted = build(method, "link", setting).fit(split.data, seed)
            found.append(auc_and_ap(split.val, fitted.score_pairs(split.data, split.val.pairs)))
            best_epochs.append(fitted.best_epoch)
        auc, ap = (list(values) for values in zip(*found))
        return {"scores": {"validation AUC": auc, "validation AP": ap}, "best_epochs": best_epochs}


SCORES: dict[str, Callable[[Data, int], NodeScores | LinkScores]] = {"node": NodeScores, "link": LinkScores}


def start_of(task: str, method: str) -> dict[str, Any]:
    """The parameters that a search starts from, and keeps where its space is silent."""
    recipe = load_recipe(EXPERIMENTS[task], method, DEFAULT)
    if task == "link" and recipe.name == DEFAULT:  # the space of links is that of an encoder of layers
        recipe = load_recipe(EXPERIMENTS[task], method, DEFAULT, "best")
    return recipe.parameters


class Search:
    """A search for one method on one dataset: Optuna's journal can be stopped, resumed and shared by processes.

    Args:
        data: a graph; what may not be seen of it is erased here.
        seeds: encoders, or splits, per setting.
        seed: of the sampler.
        folder: where the journal is; the trials themselves go into the file `<folder>.jsonl` beside it.
    """

    def __init__(self, data: Data, dataset: str, task: str, method: str, seeds: int, seed: int, folder: Path) -> None:
        if (task, method) not in SPACES:
            known = ", ".join(name for of, name in SPACES if of == task)
            raise UsageError(f"There is no space to search for the method {method!r} on {task}s. Known: {known}.")
        self.scores = SCORES[task](data, seeds)
        self.name, self.seed = f"{task}-{dataset}-{method}", seed
        self.about = {"task": task, "dataset": dataset, "method": method}
        self.path = folder.with_name(f"{folder.name}.jsonl")
        self.start = start_of(task, method)
        width = -(-int(data.num_features) // 512) * 512
        self.space = {
            name: tuple(dict.fromkeys(_label(width if value == "features" else value) for value in values))
            for name, values in SPACES[task, method].items()
        }
        self.study = _study(folder / f"{self.name}.journal", self.name, {"seeds": seeds, "space": self.space})

    def run(self, trials: int, on_trial: Callable[[Trial], None] | None = None) -> Trial:
        """The best of all trials, after trying as many settings as are missing to that number."""
        import optuna
        from optuna.trial import TrialState

        done, going = (TrialState.COMPLETE,), (TrialState.RUNNING,)
        for left in self.study.get_trials(deepcopy=False, states=going):
            owner = left.user_attrs.get("process")
            if owner is None or is_gone(owner):  # its process was killed
                self.study.tell(left.number, state=TrialState.FAIL, skip_if_finished=True)
        self._keep()
        given = {name: _label(self.start[name]) for name in self.space if name in self.start}
        if not self.start:
            given = {name: choices[0] for name, choices in self.space.items()}
        known = self.study.get_trials(deepcopy=False, states=(*done, *going, TrialState.WAITING))
        missing = given not in [trial.system_attrs.get("fixed_params", trial.params) for trial in known]
        if missing and all(value in self.space[name] for name, value in given.items()):
            self.study.enqueue_trial(given)  # the recipe itself comes first
        while len(self.study.get_trials(deepcopy=False, states=done)) < trials:
            # A new one for every trial: a search that was resumed must not draw again what it has drawn. Those that
            # came to nothing do not count, so that it goes on as if it had never been stopped.
            count = len(self.study.get_trials(deepcopy=False, states=(*done, *going)))
            self.study.sampler = optuna.samplers.TPESampler(seed=[self.seed, count])
            asked = self.study.ask()
            try:
                asked.set_user_attr("process", this_process())
                trial = self._tried(asked)
            except BaseException:
                self.study.tell(asked, state=TrialState.FAIL, skip_if_finished=True)
                raise
            asked.set_user_attr("trial", msgspec.to_builtins(trial))
            self.study.tell(asked, trial.score, skip_if_finished=True)
            self._keep()
            if on_trial is not None:
                on_trial(trial)
        return msgspec.convert(self.study.best_trial.user_attrs["trial"], Trial)

    @property
    def trials(self) -> list[Trial]:
        """Those that are done."""
        from optuna.trial import TrialState

        done = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return [msgspec.convert(trial.user_attrs["trial"], Trial) for trial in done]

    def _keep(self) -> None:
        """Add to the file of all searches what of this one's journal it does not have, each setting once."""
        with locked(self.path.parent):
            rows = [row for _, row in read_lines(self.path, Trial)]
            there = [(row.parameters, row.scores) for row in rows if row.search == self.name]
            for trial in self.trials:
                if (trial.parameters, trial.scores) not in there:
                    rows.append(trial)
                    there.append((trial.parameters, trial.scores))
            write_lines(self.path, sorted(rows, key=lambda row: (row.search, row.number)))

    def _tried(self, asked: Any) -> Trial:
        """The scores of a setting that Optuna proposes, from an earlier trial of it or by training."""
        setting = dict(self.start)
        for name, choices in self.space.items():
            value = json.loads(asked.suggest_categorical(name, choices))
            setting |= value if isinstance(value, dict) else {name: value}
        if "epochs" in self.space and "patience" in setting:
            setting["patience"] = setting["epochs"]  # what is searched is the number of epochs
        for known in self.trials:
            if known.parameters == setting:
                return msgspec.structs.replace(known, number=asked.number)
        found = self.scores(self.about["method"], setting)
        about = {"search": self.name, "number": asked.number, **self.about}
        return msgspec.convert({**about, "parameters": setting, "versions": versions(), **found}, Trial)


def _label(value: Any) -> str:
    """A value as Optuna keeps it: numbers, texts and dictionaries alike."""
    return json.dumps(value)


class _JournalLock:
    """Optuna's own lock outlives a process that is killed, and the next one waits for it; this one goes with it."""

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(path.with_name(f".{path.name}.lock"))

    def acquire(self) -> bool:
        self._lock.acquire()
        return True

    def release(self) -> None:
        self._lock.release()


def _study(path: Path, name: str, content: dict[str, Any]) -> Any:
    """The study of a journal, new or as it was left."""
    try:
        import optuna
        from optuna.storages.journal import JournalFileBackend
    except ImportError as error:
        raise TopoterError("A search needs Optuna: pip install 'topoter[search]'.") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path.parent.mkdir(parents=True, exist_ok=True)
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(path), lock_obj=_JournalLock(path)))
    study = optuna.create_study(storage=storage, study_name=name, direction="maximize", load_if_exists=True)
    content = json.loads(json.dumps(content))
    if study.user_attrs.get("content", content) != content:
        raise DataError(f"{path} holds another search, with other seeds or another space: move it away.")
    study.set_user_attr("content", content)
    return study


def without_test_pairs(split: LinkSplit) -> LinkSplit:
    """The split with its validation pairs in place of its test pairs."""
    return replace(split, test=split.val)


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
