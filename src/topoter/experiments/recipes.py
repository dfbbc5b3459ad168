"""Recipes: one TOML file per published number, with its parameters and where the paper is silent a comment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from topoter.errors import DataError, UsageError, unknown_name
from topoter.experiments.limits import Limits

if TYPE_CHECKING:
    from importlib.abc import Traversable

DEFAULT = "default"  # the recipe of datasets that the paper does not use
OWN = "own"  # the empty recipe of a user's own method


@dataclass(frozen=True)
class Recipe:
    """How a number is made, and the paper's value for it if there is one.

    `known` are the parameters that can make a difference to the method, if they are few: a study that varies another
    one has nothing to vary here. `limits` are the time and memory that one run may take.
    """

    experiment: str
    method: str
    dataset: str
    name: str
    parameters: dict[str, Any]
    paper: dict[str, Any] | None
    known: frozenset[str] | None = None
    limits: Limits | None = None

    def of_interest(self, variation: dict[str, Any]) -> dict[str, Any]:
        """What of a variation can make a difference to the method."""
        return {name: value for name, value in variation.items() if self.known is None or name in self.known}


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """What a file may say: recipes by name, or from which method to borrow them."""

    recipes: dict[str, dict[str, Any]] = {}
    published: dict[str, Any] | None = None
    parameters_of: str | None = None
    keep: list[str] = []
    limits: Limits | None = None


def load_recipe(experiment: str, method: str, dataset: str, name: str | None = None) -> Recipe:
    """The recipe of a method on a dataset; `name` is `best`, `tuned` or `paper` where a method has several.

    Without a name it is `best` if the dataset has one of its own, else `default`, which every dataset has, or the only
    one there is. A method that learns nothing borrows the parameters of the method it is the reference for (its file
    says `parameters_of`).
    """
    if _is_own(experiment, method):
        if name not in (None, OWN):
            raise UsageError(f"There is no recipe {name!r} of {method}: a method of your own has none.")
        return Recipe(experiment, method, dataset, OWN, {}, None)
    file = _read(experiment, method, dataset)
    if file.parameters_of:
        borrowed = load_recipe(experiment, file.parameters_of, dataset, name or _lent(experiment, file, dataset))
        kept = {key: borrowed.parameters[key] for key in file.keep if key in borrowed.parameters}
        return Recipe(experiment, method, dataset, borrowed.name, kept, file.published, frozenset(file.keep))
    chosen = name or next(iter(file.recipes))
    if chosen not in file.recipes:
        there = " and ".join(repr(variant) for variant in file.recipes)
        raise UsageError(f"There is no recipe {name!r} of {method} for {experiment} on {dataset}, only {there}.")
    return Recipe(experiment, method, dataset, chosen, file.recipes[chosen], file.published, limits=file.limits)


def _lent(experiment: str, file: _File, dataset: str) -> str:
    """The recipe that is borrowed where none is asked for: `best` around the default is of use to its encoder alone."""
    recipes = _read(experiment, file.parameters_of or "", dataset).recipes
    first = next(iter(recipes))
    return "tuned" if first == "best" and "tuned" in recipes else first


def read_recipe(path: Path) -> dict[str, Any]:
    """The parameters in a file that `topoter search` printed: its table `recipes.best`."""
    try:
        found = msgspec.toml.decode(path.read_bytes())["recipes"]["best"]
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        said = " ".join(str(error).split())
        raise DataError(f"{path} holds no recipe: the table [recipes.best] is missing ({said}).") from None
    if not isinstance(found, dict):
        raise DataError(f"{path} holds no recipe: [recipes.best] must be a table. Got {found!r} instead.")
    return found


@cache
def _is_own(experiment: str, method: str) -> bool:
    """Whether a method is code outside topoter, by an import path or an entry point; looking for those takes time."""
    known = _root().joinpath(experiment).joinpath(method).is_dir()
    return ":" in method or (not known and method in entry_points(group="topoter.methods").names)


def all_recipes() -> list[tuple[str, str, str, str]]:
    """(experiment, method, dataset, recipe name) of every recipe that comes with topoter."""
    found = []
    for experiment in _folders(_root()):
        for method in _folders(experiment):
            for file in sorted(method.iterdir(), key=lambda item: item.name):
                if file.name.endswith(".toml"):
                    dataset = file.name.removesuffix(".toml")
                    which = (experiment.name, method.name, dataset)
                    own = _read(*which).recipes or [load_recipe(*which).name]  # else those it borrows from
                    found += [(*which, name) for name in own]
    return found


def methods_of(experiment: str) -> list[str]:
    """The methods that an experiment has recipes for."""
    return [folder.name for folder in _folders(_root().joinpath(experiment))]


def _read(experiment: str, method: str, dataset: str) -> _File:
    folder = _root().joinpath(experiment).joinpath(method)
    if not folder.is_dir():
        raise unknown_name("method", method, methods_of(experiment))
    files = {name: folder.joinpath(f"{name}.toml") for name in (DEFAULT, dataset)}
    found = {name: msgspec.toml.decode(file.read_bytes()) for name, file in files.items() if file.is_file()}
    if not found:
        raise UsageError(f"There is no recipe for {method!r} on {dataset!r} in {experiment!r}.")
    # What a dataset's own file does not say is as in the default; a published value is its own only. The recipe named
    # "default" is there for every dataset, beside those of its own.
    default, own = found.get(DEFAULT, {}), {} if dataset == DEFAULT else found.get(dataset, {})
    shared = {name: recipe for name, recipe in default.get("recipes", {}).items() if name == DEFAULT}
    recipes = {**own["recipes"], **shared} if "recipes" in own else default.get("recipes", {})
    first = ["best"] if "best" in own.get("recipes", {}) else [DEFAULT, "best"]
    recipes = {**{name: recipes[name] for name in first if name in recipes}, **recipes}
    return msgspec.convert({**default, "published": None, **own, "recipes": recipes}, _File)


def _root() -> Traversable:
    return resources.files("topoter.experiments").joinpath("recipes")


def _folders(parent: Traversable) -> list[Traversable]:
    return sorted((item for item in parent.iterdir() if item.is_dir()), key=lambda item: item.name)
