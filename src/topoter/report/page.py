"""One HTML file that holds everything: styles, script, data. It loads nothing and opens offline."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from topoter.graphs.atomic import atomic_write
from topoter.report.markup import Html, asset, escape, join, paragraph

SCRIPTS = ("report.js", "charts.js", "scatter.js")

# The browser itself refuses any request, should a later block ever try one.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


class Section:
    """A titled part of a page.

        Section("Accuracy", "Mean and deviation over ten seeds.").add(table)

    A block is markup from this package, or plain text, which becomes a paragraph.
    """

    def __init__(self, title: str, intro: str = "") -> None:
        self.title = title
        self._blocks: list[Html] = [paragraph(intro, "intro")] if intro else []

    def add(self, *blocks: Html | str) -> Section:
        """Append blocks; returns itself, so that calls can be chained."""
        self._blocks += [block if isinstance(block, Html) else paragraph(block) for block in blocks]
        return self

    def render(self, anchor: str) -> Html:
        """The section's markup, reachable as `#anchor`."""
        return Html(
            f'<section id="{escape(anchor)}" aria-labelledby="{escape(anchor)}-title">'
            f'<h2 id="{escape(anchor)}-title">{escape(self.title)}</h2>{join(self._blocks)}</section>'
        )


class Page:
    """A self-contained report: a title, sections, one file.

        page = Page("TopoTER on Cora", "Embeddings without labels")
        page.add(Section("Accuracy").add(table.html()))
        page.write("report.html")

    Args:
        title, subtitle: the heading, and one line below it.
        summary: what a reader in a hurry should know; text, or markup for emphasis.
        footer: the last line, e.g. what made the page.
        assets: further files of `assets/` that this page's blocks need, `.js` or `.css`.
    """

    def __init__(
        self,
        title: str,
        subtitle: str = "",
        *,
        summary: str | Html = "",
        footer: str = "",
        assets: Sequence[str] = (),
    ) -> None:
        self.title = title
        self.subtitle = subtitle
        self.summary = summary
        self.footer = footer
        self.assets = assets
        self._sections: list[Section] = []

    def add(self, section: Section) -> Page:
        """Append a section; returns itself, so that calls can be chained."""
        self._sections.append(section)
        return self

    def render(self) -> str:
        """The whole page as text."""
        anchors = _anchors([section.title for section in self._sections])
        sections = join(section.render(anchor) for section, anchor in zip(self._sections, anchors))
        script = "\n".join(asset(name) for name in (*SCRIPTS, *self._assets(".js")))
        style = "".join(asset(name) for name in ("report.css", *self._assets(".css")))
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n'
            f'<link rel="icon" href="data:,">\n<title>{escape(self.title)}</title>\n'
            f"<style>\n{style}</style>\n</head>\n<body>\n"
            f"{self._header(anchors)}\n<main>\n{sections}\n</main>\n{self._footer()}"
            f'<script>\n(() => {{\n"use strict";\n{script}}})();\n</script>\n</body>\n</html>\n'
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page; what stood at `path` before stays until the new one is complete."""
        with atomic_write(path) as temporary:
            temporary.write_text(self.render(), encoding="utf-8")

    def _assets(self, extension: str) -> list[str]:
        return [name for name in self.assets if name.endswith(extension)]

    def _header(self, anchors: list[str]) -> Html:
        parts = [Html(f"<h1>{escape(self.title)}</h1>")]
        if self.subtitle:
            parts.append(paragraph(self.subtitle, "subtitle"))
        if self.summary:
            parts.append(paragraph(self.summary, "summary"))
        if len(anchors) > 2:
            links = join(
                Html(f'<li><a href="#{escape(anchor)}">{escape(section.title)}</a></li>')
                for anchor, section in zip(anchors, self._sections)
            )
            parts.append(Html(f'<nav aria-label="Sections"><ul>{links}</ul></nav>'))
        return Html(f"<header>{join(parts)}</header>")

    def _footer(self) -> Html:
        return Html(f"<footer>{paragraph(self.footer)}</footer>\n" if self.footer else "")


def _anchors(titles: list[str]) -> list[str]:
    """A readable id per title, unique on the page."""
    anchors: list[str] = []
    for title in titles:
        base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        anchor, number = base, 2
        while anchor in anchors:
            anchor, number = f"{base}-{number}", number + 1
        anchors.append(anchor)
    return anchors
