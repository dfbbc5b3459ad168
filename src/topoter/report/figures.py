"""What a table cannot show of an experiment, drawn from its records: pure functions from records to charts."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from topoter.experiments.experiment import Experiment
from topoter.experiments.store import Record
from topoter.report.charts import Chart, Line
from topoter.report.groups import OURS, Group
from topoter.report.tables import Table
from topoter.report.wording import row_name

REFERENCES = ("propagated", "random-init")
COLORS = {"topoter": 0, "dgi": 1, "gae": 2, "propagated": 3, "random-init": 4}  # the same in every figure
MOST_POINTS = 300  # of a training curve

Figure = tuple[str, list[Any]]  # its title, and what to show under it: charts and tables
Measured = tuple[float, float]  # a value of the parameter, and the accuracy there


def figures_of(experiment: Experiment, records: Sequence[Record]) -> list[Figure]:
    """The figures of an experiment; none if its tables show all there is."""
    drawn = _FIGURES.get(experiment.name)
    return drawn(experiment, records) if drawn and records else []


def _studies(experiment: Experiment, records: Sequence[Record]) -> list[Figure]:
    """Accuracy by the parameter that is varied, a chart per dataset."""
    parameter, label = _AXES[experiment.name]
    axis = [variation[parameter] for variation in experiment.variations]

    def points(record: Record) -> list[Measured]:
        # What does not depend on the parameter is the same all along the axis.
        at = [record.point[parameter]] if parameter in record.point else axis
        return [(value, score) for value in at for score in record.scores["accuracy"]]

    return [(dataset, [_curves(same, points, label, dataset)]) for dataset, same in _by(records, "dataset").items()]


_AXES = {
    "order": ("order", "order k of the adjacency"),
    "layers": ("num_layers", "SGC layers (hidden 64)"),
    "perturbation-rate": ("perturbation_rate", "edge perturbation rate r"),
}


def _noise(experiment: Experiment, records: Sequence[Record]) -> list[Figure]:
    """Accuracy by the level of noise: for each kind, and its twin of clean scale, a chart of every dataset."""
    axes = {"gaussian": "standard deviation of Gaussian noise", "laplace": "scale of Laplace noise"}
    figures: list[Figure] = []
    for clean in ("", "_clean_scale"):
        for kind, label in axes.items():
            for dataset, same in _by(records, "dataset").items():
                title = f"{dataset}, {kind.capitalize()}{', clean scale' if clean else ''}"
                figures.append((title, [_curves(same, _levels(f"{kind}{clean}"), label, title)]))
    return figures


def _levels(curve: str) -> Callable[[Record], list[Measured]]:
    return lambda record: list(zip(record.details["levels"], record.details[curve]))


def _curves(records: Sequence[Record], points: Callable[[Record], list[Measured]], x_label: str, label: str) -> Chart:
    """A curve per method through the means over seeds, with its deviation; references dashed."""
    lines = []
    for method, same in _by(records, "method").items():
        at, means, deviations = zip(*_averaged(point for record in same for point in points(record)))
        dashed = method in REFERENCES
        lines.append(Line(method, at, means, deviations, dashed=dashed, markers=True, color=COLORS.get(method)))
    return Chart(lines=lines, label=label, x_label=x_label, y_label="test accuracy, %")


def _averaged(measured: Iterable[Measured]) -> list[tuple[float, float, float | None]]:
    """Mean and deviation (none for a single seed) at each value, by increasing value."""
    by_value: dict[float, list[float]] = {}
    for value, score in measured:
        by_value.setdefault(value, []).append(score)
    return [
        (value, statistics.fmean(found), statistics.stdev(found) if len(found) > 1 else None)
        for value, found in sorted(by_value.items())
    ]


def _equivariance(experiment: Experiment, records: Sequence[Record]) -> list[Figure]:
    """Per dataset and recipe the four heat maps, and numbers under them."""
    shown = [record for record in records if record.details["panels"]]
    return [(f"{record.dataset} ({record.recipe})", _equivariant(record)) for record in shown]


MOST_SHOWN = 32  # rows and columns of a heat map: a page has many
_PANELS = ("H(t-1)", "H(t)", "dH^ of the estimated dA^", "H(t-1) + dH^")
_TYPES = ("add", "delete", "keep apart", "keep connected")  # in the order of `EdgeChange`


def _equivariant(record: Record) -> list[Any]:
    found = record.details
    scores = {metric: values[0] for metric, values in record.scores.items()}
    panels = [np.array(panel) for panel in found["panels"]]
    rows, columns = (np.linspace(0, size - 1, min(size, MOST_SHOWN)).astype(int) for size in panels[0].shape)
    nodes, channels = len(rows), len(columns)
    shown = f"{nodes} of {found['nodes']} nodes, {channels} of {found['channels']} channels"
    matrices = Chart(
        title="Representations before and after, and with the estimated change",
        panels={name: panel[np.ix_(rows, columns)].tolist() for name, panel in zip(_PANELS, panels)},
        x_label="channel",
        y_label="node",
        caption=f"All four on one colour scale; {shown}. If the representation is equivariant, the last is the second. "
        f"Transformation: {found['transformation']}.",
    )
    losses = []
    if record.parameters.get("objective") is None:  # a sum of terms has no loss of guessing
        losses = [
            ["training loss", f"{found['loss']:.3f}"],
            ["loss of guessing the shares of the types", f"{found['prior_entropy']:.3f}"],
        ]
    numbers = Table(
        ["number", "value"],
        [
            ["‖H(t-1) + dH^ - H(t)‖ / ‖H(t) - H(t-1)‖", f"{scores['error'] / 100:.3f}"],
            ["the same with the paper's formula for dH^", f"{scores['formula error'] / 100:.3f}"],
            ["the same with that formula and the true dA", f"{scores['formula error of the true dA'] / 100:.3f}"],
            ["accuracy of the four types", f"{scores['accuracy']:.1f} %"],
            *losses,
        ],
        caption="How equivariant",
        note="1 is as good as no estimate. Here dH^ = E(X, A + dA^) - E(X, A); the paper's formula, "
        "D~^-1/2 dA^ D~^-1/2 X W, leaves out that degrees change, so that even the true dA does not bring it to 0.",
    )
    confusion = Table(
        ["true type", *(f"estimated: {name}" for name in _TYPES)],
        [[name, *row] for name, row in zip(_TYPES, found["confusion"])],
        caption="Estimated types of all pairs looked at",
    )
    return [matrices, numbers, confusion]


_FIGURES: dict[str, Callable[[Experiment, Sequence[Record]], list[Figure]]] = {
    "order": _studies,
    "layers": _studies,
    "perturbation-rate": _studies,
    "noise": _noise,
    "equivariance": _equivariance,
}


def training_curves(groups: Sequence[Group], losses: dict[tuple[Any, ...], list[float]]) -> list[Chart]:
    """The loss of TopoTER by epoch, of the first seed of each dataset and recipe, beside the entropy of the prior."""
    return [
        _training_curve(group, losses[group.records[0].key])
        for group in groups
        if group.method == OURS and losses.get(group.records[0].key)
    ]


def _training_curve(group: Group, losses: Sequence[float]) -> Chart:
    record = group.records[0]
    prior = prior_entropy(record)
    return Chart(
        lines=[Line("training loss", *thinned(losses))],
        title=f"{group.dataset}, {row_name(group.recipe, group.protocol)}, seed {record.seed}",
        x_label="epoch",
        y_label="loss",
        references={} if prior is None else {"entropy of the prior": prior},
    )


def prior_entropy(record: Record) -> float | None:
    """What guessing by the shares of the types costs, if the stored losses are those of predicting types alone."""
    # Where links are learned after or beside it, the losses are not comparable: such runs have no "loss".
    value = record.details.get("prior_entropy") if "loss" in record.details else None
    return None if value is None else float(value)


def thinned(losses: Sequence[float], most: int = MOST_POINTS) -> tuple[list[float], list[float]]:
    """Epochs and losses, evenly thinned out to at most so many points; the first and the last stay."""
    count = min(len(losses), most)
    step = (len(losses) - 1) / max(count - 1, 1)
    kept = [round(index * step) for index in range(count)]
    return [at + 1.0 for at in kept], [float(losses[at]) for at in kept]


def _by(records: Iterable[Record], name: str) -> dict[str, list[Record]]:
    """Records by one of their fields, in the order of the first of each."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(getattr(record, name), []).append(record)
    return found
