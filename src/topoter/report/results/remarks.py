"""Remarks on numbers, most of all on why one misses the paper: a file `remarks.toml` in the folder of results.

[node-classification]
all = "Said of the whole table."
cora = "Said of one dataset."

[node-classification.pubmed]
best = "Said of one recipe on one dataset."
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from topoter.errors import DataError
from topoter.experiments import EXPERIMENTS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "remarks.toml"
_WHOLE = "all"


@dataclass(frozen=True)
class Remarks:
    """Texts by experiment, then by dataset ("all": the whole table), then by recipe ("": every one)."""

    texts: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)

    def of_table(self, experiment: str) -> list[tuple[str, str]]:
        """(about what, text) of every remark on an experiment."""
        return [
            (", ".join(part for part in ("" if dataset == _WHOLE else dataset, recipe) if part), text)
            for dataset, by_recipe in self.texts.get(experiment, {}).items()
            for recipe, text in by_recipe.items()
        ]

    def of_number(self, experiment: str, dataset: str, recipe: str) -> str:
        """The remarks on one number: those on its dataset and recipe, none on the whole table."""
        by_recipe = self.texts.get(experiment, {}).get(dataset, {})
        return " ".join(by_recipe[name] for name in ("", recipe) if name in by_recipe)

    def of_experiment(self, experiment: str) -> str:
        return self.texts.get(experiment, {}).get(_WHOLE, {}).get("", "")


def read_remarks(folder: Path) -> Remarks:
    """The remarks in a folder of results; none if there is no such file."""
    path = folder / FILE
    if not path.is_file():
        return Remarks()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is not TOML: {error}.") from error
    return Remarks({name: _of_experiment(path, name, about) for name, about in content.items()})


def _of_experiment(path: Path, name: str, about: object) -> dict[str, dict[str, str]]:
    if name not in EXPERIMENTS:
        raise DataError(f"{path} has remarks on {name!r}, which is no experiment ({', '.join(EXPERIMENTS)}).")
    by_dataset = {_WHOLE: about} if isinstance(about, str) else about
    texts: dict[str, dict[str, str]] = {}
    for dataset, said in _table(path, name, by_dataset).items():
        by_recipe = {"": said} if isinstance(said, str) else said
        texts[dataset] = {}
        for recipe, text in _table(path, f"{name}.{dataset}", by_recipe).items():
            if not isinstance(text, str):
                raise DataError(f"{path}: the remark {name}.{dataset}.{recipe} must be a text. Got {text!r}.")
            texts[dataset][recipe] = text
    return texts


def _table(path: Path, name: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise DataError(f"{path}: {name} must be a text or a table of texts. Got {value!r}.")
    return value
