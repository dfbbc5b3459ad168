"""What the report says of each experiment, of the protocols and of the demo: the texts are in `wording.toml`."""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec


class Wording(msgspec.Struct, frozen=True):
    """An experiment's title, what its numbers are, how they were scored, and what to know of its figures."""

    title: str
    intro: str = ""
    protocol: str = ""
    about: str = ""


class _File(msgspec.Struct, frozen=True):
    rules: dict[str, str]  # within one deviation, won by training, what counts
    experiments: dict[str, Wording]
    demo: dict[str, dict[str, str]]


@cache
def texts() -> _File:
    return msgspec.toml.decode((resources.files("topoter.report") / "wording.toml").read_bytes(), type=_File)


def wording(name: str) -> Wording:
    """The words for an experiment; plain ones for one that has none."""
    return texts().experiments.get(name) or Wording(name.replace("-", " ").capitalize())


def protocol_name(protocol: str) -> str:
    """A protocol as a sentence calls it: the authors' own is named by what is wrong with it."""
    names = {"paper": "selects on test", "held-out-pairs": "held-out pairs", "next-snapshot": "next snapshot"}
    return names.get(protocol, protocol)


def row_name(recipe: str, protocol: str) -> str:
    """The recipe, and the protocol where it is not the usual one."""
    return recipe if protocol == "validation" else f"{recipe}, {protocol_name(protocol)}"
