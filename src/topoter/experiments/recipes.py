"""Recipes: one TOML file per published number, with its parameters and where the paper is silent a comment."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from topoter.errors import UsageError, unknown_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from importlib.abc import Traversable

DEFAULT = "default"  # the recipe of datasets that the paper does not use


@dataclass(frozen=True)
class Recipe:
    """How a number is made, and the paper's value for it if there is one.

    `known` are the parameters that can make a difference to the method, if they are few: a study that varies another
    one has nothing to vary here.
    """

    experiment: str
    method: str
    dataset: str
    name: str
    parameters: dict[str, Any]
    paper: dict[str, float] | None
    known: frozenset[str] | None = None

    def of_interest(self, variation: dict[str, Any]) -> dict[str, Any]:
        """What of a variation can make a difference to the method."""
        return {name: value for name, value in variation.items() if self.known is None or name in self.known}


def load_recipe(experiment: str, method: str, dataset: str, name: str | None = None) -> Recipe:
    """The recipe of a method on a dataset; `name` is `best` or `paper` where a method has both.

    Without a name `best` is taken if there is one, else the only one. A method that learns nothing borrows the
    parameters of the method it is the reference for (its file says `parameters_of`).
    """
    content = _read(experiment, method, dataset)
    published = content.get("published")
    if "parameters_of" in content:
        borrowed = load_recipe(experiment, content["parameters_of"], dataset, name)
        parameters = {key: borrowed.parameters[key] for key in content["keep"] if key in borrowed.parameters}
        return Recipe(experiment, method, dataset, borrowed.name, parameters, published, frozenset(content["keep"]))
    variants = content["recipes"]
    if name is None:
        chosen = "best" if "best" in variants else next(iter(variants))
    elif name in variants:
        chosen = name
    else:
        there = " and ".join(repr(variant) for variant in variants)
        raise UsageError(f"There is no recipe {name!r} of {method} for {experiment} on {dataset}, only {there}.")
    return Recipe(experiment, method, dataset, chosen, dict(variants[chosen]), published)


def all_recipes() -> list[tuple[str, str, str, str]]:
    """(experiment, method, dataset, recipe name) of every recipe that comes with topoter."""
    found = []
    for experiment in _folders(_root()):
        for method in _folders(experiment):
            for file in sorted(method.iterdir(), key=lambda item: item.name):
                if file.name.endswith(".toml"):
                    dataset = file.name.removesuffix(".toml")
                    which = (experiment.name, method.name, dataset)
                    own = _read(*which).get("recipes") or [load_recipe(*which).name]  # else those it borrows from
                    found += [(*which, name) for name in own]
    return found


def methods_of(experiment: str) -> list[str]:
    """The methods that an experiment has recipes for."""
    return [folder.name for folder in _folders(_root().joinpath(experiment))]


def _read(experiment: str, method: str, dataset: str) -> dict[str, Any]:
    folder = _root().joinpath(experiment).joinpath(method)
    if not folder.is_dir():
        raise unknown_name("method", method, methods_of(experiment))
    files = {name: folder.joinpath(f"{name}.toml") for name in (DEFAULT, dataset)}
    found = {name: tomllib.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.is_file()}
    if found:
        # What a dataset's own file does not say is as in the default; a published value is its own only.
        return {**found.get(DEFAULT, {}), "published": None, **found.get(dataset, {})}
    raise UsageError(f"There is no recipe for {method!r} on {dataset!r} in {experiment!r}.")


def _root() -> Traversable:
    return resources.files("topoter.experiments").joinpath("recipes")


def _folders(parent: Traversable) -> list[Traversable]:
    return sorted((item for item in parent.iterdir() if item.is_dir()), key=lambda item: item.name)
