"""The paper's studies on node classification: one parameter changes, the others stay, curves instead of rows.

They take the recipes of node classification (`best` for TopoTER: the paper's own settings hardly train) and put
a variation over them. `propagated` and `random-init` stand beside every curve; where the parameter makes no difference
to them they are run once, and their line is level.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from topoter.experiments.experiment import Experiment, Row
from topoter.experiments.node_classification import load_labelled, measure, scores

if TYPE_CHECKING:
    from topoter.report import Html

DATASETS = ("cora", "citeseer", "pubmed")
REFERENCES = ("propagated", "random-init")
ABOUT = "Node classification, test accuracy in percent; the band is one deviation over seeds."
AXES = {
    "order": ("order", "order k of the adjacency"),
    "layers": ("num_layers", "SGC layers (hidden 64)"),
    "perturbation-rate": ("perturbation_rate", "edge perturbation rate r"),
}


def _study(name: str, methods: Sequence[str], variations: Sequence[dict[str, Any]], **fixed: Any) -> Experiment:
    return Experiment(
        name=name,
        recipes="node-classification",
        datasets=DATASETS,
        rows=tuple(Row(method) for method in (*methods, *REFERENCES)),
        metrics=("accuracy",),
        load=load_labelled,
        measure=measure,
        scores=scores,
        fixed=fixed,
        variations=variations,
        charts=lambda stored: charts(name, stored),
        about=ABOUT,
    )


ORDER = _study("order", ("topoter", "dgi", "gae"), [{"order": k} for k in range(1, 6)])
# The paper's widths, whatever those of the recipe are.
LAYERS = _study(
    "layers", ("topoter",), [{"num_layers": n, "hidden_channels": 64} for n in range(1, 6)], out_channels=512
)
# The paper studies r at k = 1.
PERTURBATION_RATE = _study(
    "perturbation-rate", ("topoter",), [{"order": 1, "perturbation_rate": r / 10} for r in range(11)]
)


def charts(name: str, stored: Sequence[dict[str, Any]]) -> list[tuple[str, Html]]:
    """A chart per dataset, with the dataset as its title."""
    parameter, label = AXES[name]
    return [
        (dataset, chart([run for run in stored if run["dataset"] == dataset], parameter, label))
        for dataset in dict.fromkeys(run["dataset"] for run in stored)
    ]


def chart(runs: Sequence[dict[str, Any]], parameter: str, label: str) -> Html:
    """The curves of every method on one dataset."""
    axis = sorted({value for run in runs if (value := run.get("variation", {}).get(parameter)) is not None})
    return curves(runs, lambda of_method: mean_by_value(of_method, parameter, axis), label)


def curves(
    runs: Sequence[dict[str, Any]],
    points_of: Callable[[Sequence[dict[str, Any]]], list[tuple[float, float, float]]],
    label: str,
    title: str = "",
) -> Html:
    """A curve per method, through the (value, mean, deviation) that its runs give; references dashed."""
    from topoter.report import line_chart
    from topoter.report.charts.lines import Series

    series = []
    for method in dict.fromkeys(run["method"] for run in runs):
        at, means, deviations = zip(*points_of([run for run in runs if run["method"] == method]))
        series.append(Series(method, at, means, deviations, dashed=method in REFERENCES, markers=True))
    return line_chart(series, title=title, x_label=label, y_label="test accuracy, %")


def mean_by_value(
    runs: Sequence[dict[str, Any]], parameter: str, axis: Sequence[float]
) -> list[tuple[float, float, float]]:
    """(value of the parameter, mean, deviation) over seeds, by increasing value; the same all along `axis` where runs
    do not depend on it."""
    points = [(run.get("variation", {}).get(parameter), run["result"]["test"]) for run in runs]
    return averaged((at, score) for value, score in points for at in (axis if value is None else [value]))


def averaged(measured: Iterable[tuple[float, float]]) -> list[tuple[float, float, float]]:
    """(value, mean, deviation) of what was measured at each value, by increasing value."""
    by_value: dict[float, list[float]] = {}
    for value, score in measured:
        by_value.setdefault(value, []).append(score)
    return [
        (value, statistics.fmean(found), statistics.stdev(found) if len(found) > 1 else 0.0)
        for value, found in sorted(by_value.items())
    ]
