"""Remarks on numbers, most of all on why one misses the paper: a file `remarks.toml` in the folder of results.

[node-classification]
all = "Said of the whole table."
cora = "Said of one dataset."

[node-classification.pubmed]
best = "Said of one recipe of TopoTER on one dataset."
gae = "Said of another system on it."
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from topoter.errors import DataError
from topoter.experiments import EXPERIMENTS

FILE = "remarks.toml"
_WHOLE = "all"
_Texts = dict[str, str | dict[str, str | dict[str, str]]]  # by experiment, dataset and recipe


@dataclass(frozen=True)
class Remarks:
    """Texts by experiment, then by dataset ("all": the whole table), then by recipe or system ("": all of them)."""

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
        content = msgspec.toml.decode(path.read_bytes(), type=_Texts)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: a remark must be a text or a table of texts: {error}.") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise DataError(f"{path} is not TOML: {error}.") from error
    for name in content:
        if name not in EXPERIMENTS:
            raise DataError(f"{path} has remarks on {name!r}, which is no experiment ({', '.join(EXPERIMENTS)}).")
    return Remarks(
        {name: _by_recipe({_WHOLE: said} if isinstance(said, str) else said) for name, said in content.items()}
    )


def _by_recipe(said: dict[str, str | dict[str, str]]) -> dict[str, dict[str, str]]:
    return {dataset: {"": texts} if isinstance(texts, str) else texts for dataset, texts in said.items()}
