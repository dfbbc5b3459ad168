"""One HTML file that holds everything: styles, scripts, data. It loads nothing and opens offline.

    Page("TopoTER on Cora", sections=[Section("Accuracy", "Over ten seeds.").add(table, chart)]).write("report.html")

Markup stands in `templates/`, where all text is escaped. What can be shown has `__html__`: tables, charts, maps, and
the smaller `part`s.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from topoter.errors import visible
from topoter.graphs.atomic import atomic_write

HOME = "topoter.report"
SCRIPTS = ("report.js", "charts.js", "scatter.js")


@cache
def templates(package: str = HOME, autoescape: bool = True) -> Environment:
    """The templates of a package, and behind them those of the report."""
    loader = ChoiceLoader([PackageLoader(package), PackageLoader(HOME)])
    made = Environment(
        loader=loader, autoescape=autoescape, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    made.filters |= {"coordinate": coordinate, "anchor": anchor}
    # Within a script jinja's `tojson` also escapes what could end it, wherever it stands.
    made.policies["json.dumps_function"] = _dumps
    return made


def part(name: str, package: str = HOME, /, **values: Any) -> Markup:
    """A small piece of markup: a macro of `parts.html.j2`, filled in."""
    markup: Markup = getattr(templates(package).get_template("parts.html.j2").module, name)(**values)
    return markup


def asset(name: str, package: str = HOME) -> Markup:
    """The text of a script or a style sheet, from wherever the package is installed."""
    return Markup((resources.files(package) / "assets" / name).read_text(encoding="utf-8"))


@dataclass
class Section:
    """A titled part of a page. A block is anything with `__html__`, or plain text, which becomes a paragraph."""

    title: str
    intro: str = ""
    blocks: list[Any] = field(default_factory=list)

    def add(self, *blocks: Any) -> Section:
        self.blocks += blocks
        return self


@dataclass
class Page:
    """A self-contained page.

    Args:
        title, subtitle: the heading, and one line below it.
        summary: what a reader in a hurry should know; text, or markup for emphasis.
        footer: the last line, e.g. what made the page.
        styles, scripts: further texts from `asset` that this page's blocks need.
    """

    title: str
    subtitle: str = ""
    summary: str = ""
    footer: str = ""
    sections: list[Section] = field(default_factory=list)
    styles: Sequence[Markup] = ()
    scripts: Sequence[Markup] = ()

    def render(self) -> str:
        """The whole page as text."""
        made = (
            templates()
            .get_template("page.html.j2")
            .render(
                page=self,
                style=Markup("").join([asset("report.css"), *self.styles]),
                script=Markup("\n").join([*map(asset, SCRIPTS), *self.scripts]),
            )
        )
        return visible(made)

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame of its own, so that its styles stay there."""
        return str(part("frame", page=self.render()))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page; what stood at `path` before stays until the new one is complete."""
        with atomic_write(path) as temporary:
            temporary.write_text(self.render(), encoding="utf-8")


def coordinate(value: float) -> str:
    """A coordinate as short as a hundredth of a unit allows."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def anchor(title: str) -> str:
    """A readable id for a title."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"


def _dumps(value: Any, **_options: Any) -> str:
    text = msgspec.json.encode(value).decode()  # what is not finite becomes null
    # A script would read \u001b as the character: the backslash is to be seen, but for line breaks and tabs.
    text = re.sub(r"\\.", lambda found: f"\\{found[0]}" if found[0][1] in "ubfr" else found[0], text)
    return visible(text, mark=r"\\")
