"""Markup that is safe by construction: text is escaped unless it is already `Html`."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable
from importlib import resources
from typing import Any


class Html(str):
    """Markup that may stand on a page as it is. Any other string is text and gets escaped."""

    __slots__ = ()

    def __add__(self, other: str) -> Html:
        return Html(str.__add__(self, escape(other)))


def escape(value: object) -> Html:
    """Text made safe for an element or a quoted attribute; `Html` passes unchanged."""
    return value if isinstance(value, Html) else Html(html.escape(str(value), quote=True))


def join(parts: Iterable[Html]) -> Html:
    """Pieces of markup in a row."""
    return Html("".join(parts))


def paragraph(content: object, css_class: str = "") -> Html:
    """A paragraph of text (escaped) or markup."""
    attribute = f' class="{css_class}"' if css_class else ""
    return Html(f"<p{attribute}>{escape(content)}</p>")


def heading(text: str) -> Html:
    """A heading within a section."""
    return Html(f"<h3>{escape(text)}</h3>")


def code_block(lines: Iterable[str]) -> Html:
    """Lines to read or copy as they are, such as commands."""
    text = "\n".join(lines)
    return Html(f'<pre class="code" tabindex="0"><code>{escape(text)}</code></pre>')


def side_by_side(*blocks: Html) -> Html:
    """Blocks next to each other where there is room, below each other where there is not."""
    return Html(f'<div class="row">{join(blocks)}</div>')


def figure(content: Html, *, title: str, caption: str = "", css_class: str = "") -> Html:
    """A chart with its title above, unless that is empty, and its caption below."""
    above = f'<figcaption class="figure-title">{escape(title)}</figcaption>' if title else ""
    note = f'<p class="note">{escape(caption)}</p>' if caption else ""
    return Html(f'<figure class="figure {css_class}">{above}{content}{note}</figure>')


def many(number: int, noun: str) -> str:
    """A count with its noun: "1 seed", "3 seeds"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time as a reader says it: "8.3 s", "41 s", "12 min", "2.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{seconds / 3600:.1f} h"


def data_script(value: Any) -> Html:
    """Data for the page's script, which no text inside can end or turn into markup."""
    # A browser ends a script element at "</script" wherever it stands, even inside a JSON string.
    text = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json">{text}</script>')


def _finite(value: Any) -> Any:
    """JSON knows no NaN: what is missing becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def asset(name: str) -> str:
    """The text of a file in `assets/`, from wherever the package is installed."""
    return (resources.files("topoter.report") / "assets" / name).read_text(encoding="utf-8")
