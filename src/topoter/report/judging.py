"""Whether a number is better than the paper's, and whether training made it so."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from topoter.report.groups import OURS, Group
from topoter.report.tables import Mark, compare

# The same system without TopoTER's training, and peers that share its pair decoder where there is one.
WITHOUT_TRAINING = ("random-init", "propagated", "propagated-tuned", "no-pretraining")
PEERS = ("gae", "vgae")


def judge(group: Group, metric: str, beside: Iterable[Group]) -> Mark | None:
    """Ours against the paper's; None where the paper has no number.

    `beside` are the other rows of the table: a number of TopoTER that is better than the paper's does not count as won
    by training if a row without that training is better than the paper's too, or no worse than ours.
    """
    mark = None if group.stopped else _against_paper(group, metric, group.published(metric))
    if mark is not Mark.BETTER or group.method != OURS:
        return mark
    controls = [other for other in beside if _is_control(other, group) and metric in other.scores]
    explained = any(
        _against_paper(other, metric, group.published(metric)) is Mark.BETTER or _no_worse(other, group, metric)
        for other in controls
    )
    return Mark.UNTRAINED if explained else mark


def _against_paper(group: Group, metric: str, paper: Mapping[str, float] | None) -> Mark | None:
    return compare(group.mean(metric), group.std(metric), paper["mean"], paper.get("std")) if paper else None


def _is_control(other: Group, ours: Group) -> bool:
    """Whether a row is ours without TopoTER's training; of links only one with the same decoder is."""
    alike = (other.dataset, other.protocol, other.point) == (ours.dataset, ours.protocol, ours.point)
    without = other.method in WITHOUT_TRAINING or (other.method in PEERS and ours.decoder is not None)
    return alike and without and other.decoder == ours.decoder


def _no_worse(other: Group, ours: Group, metric: str) -> bool:
    """Whether ours is not above the other by more than one standard error of the difference."""
    mine, theirs = ours.scores[metric], other.scores[metric]
    if ours.seeds == other.seeds and len(mine) == len(theirs) == len(ours.seeds):  # seed by seed
        error = _variance([a - b for a, b in zip(mine, theirs)]) / len(mine)
    else:
        error = _variance(mine) / len(mine) + _variance(theirs) / len(theirs)
    return statistics.fmean(mine) - statistics.fmean(theirs) <= math.sqrt(error)


def _variance(values: Sequence[float]) -> float:
    return statistics.variance(values) if len(values) > 1 else 0.0
