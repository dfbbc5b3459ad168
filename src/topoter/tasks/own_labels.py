"""A user's own labels: read for the nodes of a graph, and split by seed into those to learn, choose and test by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from topoter.errors import DataError, unknown_name
from topoter.graphs.node_tables import read_node_table
from topoter.graphs.table_notes import LABEL_NAMES
from topoter.tasks.support_vectors import FOLDS

if TYPE_CHECKING:
    from torch_geometric.data import Data

UNLABELLED = -1
# Labels of a class; with fewer it cannot be learned, chosen and tested. Of graphs, one for each fold.
FEWEST = {"nodes": 5, "graphs": FOLDS}
MOST_CLASSES = 100
# Of a class, for training and validation: as in our tables, or this share of it where it has fewer labels.
TRAIN, VAL = (20, 0.4), (30, 0.2)


@dataclass(frozen=True)
class Labels:
    """Classes of nodes [N], `UNLABELLED` where there is none, what they are called, and what was noticed."""

    y: np.ndarray
    names: list[str]
    notes: list[str]
    column: str = ""  # of the table they were read from

    @property
    def known(self) -> np.ndarray:
        """The numbers of the labelled nodes."""
        return np.flatnonzero(self.y != UNLABELLED)


def read_labels(
    path: Path, node_ids: Any, column: str | None = None, drop_bad: bool = False, *, of: str = "nodes"
) -> Labels:
    """Labels for some nodes: a table whose first column holds ids; `column` names the labels if there are several.

    `of`: what has labels, "nodes" or "graphs".
    """
    table = read_node_table(path, drop_bad=drop_bad)
    if not table.columns:
        raise DataError(f"{path} has ids but no labels: its only column holds the ids.")
    if column is None:
        named = [name for name in table.columns if name.lower() in LABEL_NAMES]
        if len(table.columns) > 1 and len(named) != 1:
            listed = ", ".join(table.columns)
            raise DataError(f"{path} has several columns beside the ids ({listed}): name one with --label-column.")
        column = named[0] if named else next(iter(table.columns))
    elif column not in table.columns:
        raise unknown_name("column of labels", column, table.columns)
    values = table.for_nodes(node_ids)[column]
    return replace(as_labels(values, str(path), table.notes, of=of), column=column)


def as_labels(values: Sequence[Any], name: str, notes: Sequence[str] = (), *, of: str = "nodes") -> Labels:
    """Classes in the order of their names; None and blanks are no labels, classes of few nodes are left out."""
    fewest = FEWEST[of]
    words = ["" if value is None or value != value else str(value).strip() for value in values]
    counts = Counter(word for word in words if word)
    if len(counts) > MOST_CLASSES:
        raise DataError(
            f"{name}: {len(counts):,} different labels, at most {MOST_CLASSES} are possible. Cut numbers into classes."
        )
    few = sorted(word for word, count in counts.items() if count < fewest)
    names = sorted((word for word in counts if word not in few), key=_in_order)
    if len(names) < 2:
        found = ", ".join(f"{word} {count:,}" for word, count in counts.most_common(10)) or "no label"
        hint = (
            " Cut numbers into classes."
            if len(counts) > 10 and all(_in_order(word)[0] < float("inf") for word in counts)
            else ""
        )
        raise DataError(f"{name}: two classes with {fewest} labelled {of} each are needed. Found: {found}.{hint}")
    said = [f"{name}: left out, because fewer than {fewest} {of} have it: {', '.join(few)}."] if few else []
    number = {word: place for place, word in enumerate(names)}
    y = np.array([number.get(word, UNLABELLED) for word in words], dtype=np.int64)
    counted = ", ".join(f"{word} {counts[word]:,}" for word in names[:10]) + (", ..." if len(names) > 10 else "")
    said.append(f"{name}: {int((y != UNLABELLED).sum()):,} of {len(y):,} {of} have a label: {counted}.")
    return Labels(y, names, [*notes, *said])


def _in_order(word: str) -> tuple[float, str]:
    """Numbers by value, words after them by letter."""
    try:
        return float(word), word
    except ValueError:
        return float("inf"), word


def with_split(data: Data, y: np.ndarray, seed: int) -> Data:
    """The graph with labels and three masks, drawn by seed among the labelled nodes of each class."""
    rng = np.random.default_rng(seed)
    masks = np.zeros((3, len(y)), dtype=bool)
    for label in np.unique(y[y != UNLABELLED]):
        members = rng.permutation(np.flatnonzero(y == label))
        first = min(TRAIN[0], max(1, round(TRAIN[1] * len(members))))
        second = first + min(VAL[0], max(1, round(VAL[1] * len(members))))
        for mask, part in zip(masks, (members[:first], members[first:second], members[second:])):
            mask[part] = True
    split = data.clone()
    split.y = torch.from_numpy(y)
    split.train_mask, split.val_mask, split.test_mask = torch.from_numpy(masks)
    return split
