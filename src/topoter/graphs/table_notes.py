"""What is said of a table before it becomes features."""

from __future__ import annotations

from topoter.graphs.columns import Category
from topoter.graphs.preparation import Preparation
from topoter.graphs.scaling import way_of

# Targets, not descriptions: as features they would give the answer away.
LABEL_NAMES = {"y", "label", "labels", "target", "class"}


def summary(preparation: Preparation) -> str:
    """What a table becomes, in a line."""
    kinds = [type(column).__name__.lower() for column in preparation.columns]
    counted = ", ".join(f"{kinds.count(kind):,} {_IN_WORDS[kind]}" for kind in dict.fromkeys(kinds))
    filled = [column for column in preparation.columns if set(column.names) & set(preparation.indicators)]
    gaps = f"; gaps in {len(filled)} filled" if filled else ""
    kept = all(way_of(column) == "none" and not isinstance(column, Category) for column in preparation.columns)
    as_they_are = ", left as they are" if kept and not preparation.indicators else ""
    left = f"; left out: {', '.join(preparation.left_out)}" if preparation.left_out else ""
    return f"its columns ({counted}{gaps}) become {len(preparation.feature_names):,} features{as_they_are}{left}"


_IN_WORDS = {
    "number": "of numbers",
    "numbers": "of lists",
    "flag": "of 0 and 1",
    "date": "of dates",
    "category": "of categories",
    "text": "of text",
}


def suspicions(preparation: Preparation, name: str) -> list[str]:
    """Columns that should perhaps not be features."""
    targets = [column.name for column in preparation.columns if column.name.lower() in LABEL_NAMES]
    return [
        f"{name}: column {target!r} sounds like what is to be predicted; if so, leave it out (--exclude {target})."
        for target in targets
    ]
