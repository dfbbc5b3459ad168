"""The paper's studies on node classification: one parameter changes, the others stay, curves instead of rows.

They take the recipes of node classification (`best` for TopoTER: the paper's own settings hardly train), give all
encoders the paper's width and put a variation over them. `propagated` and `random-init` stand beside every curve; where
the parameter makes no difference to them they are run once, and their line is level.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from topoter.experiments.experiment import Experiment, Row
from topoter.experiments.node_classification import load_labelled, measure, scores
from topoter.experiments.recipes import load_recipe

if TYPE_CHECKING:
    from topoter.report import Html

DATASETS = ("cora", "citeseer", "pubmed")
REFERENCES = ("propagated", "random-init")
COLORS = {"topoter": 0, "dgi": 1, "gae": 2, "propagated": 3, "random-init": 4}  # the same in every figure
ABOUT = "Node classification, test accuracy in percent; the band is one deviation over seeds."
WIDTHS = (
    "All encoders have the paper's width: 512 channels, 256 on PubMed. All else is that of each method's recipe, so "
    "TopoTER's curve does not go through its number in the table where that recipe has more channels."
)
LABELS = {
    "order": "order k of the adjacency",
    "num_layers": "SGC layers (hidden 64)",
    "perturbation_rate": "edge perturbation rate r",
}

Point = tuple[float, float, float | None]  # a value of the parameter, mean, deviation (none for a single seed)


def paper_width(dataset: str) -> dict[str, Any]:
    """The channels that the paper gives every encoder: curves of unequal widths could not be compared."""
    recipe = load_recipe("node-classification", "topoter", dataset, "paper")
    return {"out_channels": recipe.parameters["out_channels"]}


def _study(
    name: str,
    methods: Sequence[str],
    parameter: str,
    variations: Sequence[dict[str, Any]],
    about: str,
    fixed: Callable[[str], dict[str, Any]] = paper_width,
) -> Experiment:
    axis = [variation[parameter] for variation in variations]
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
        charts=lambda stored: charts(stored, parameter, axis),
        about=f"{ABOUT} {about}",
    )


ORDER = _study("order", ("topoter", "dgi", "gae"), "order", [{"order": k} for k in range(1, 6)], WIDTHS)
LAYERS = _study(
    "layers",
    ("topoter",),
    "num_layers",
    [{"num_layers": n, "hidden_channels": 64} for n in range(1, 6)],
    "As in the paper, 64 channels between layers, 512 at the end and LeakyReLU of slope 0.1 after each. The paper does "
    "not say how often a layer propagates: k = 2, as in its table, so n layers reach 2n hops. “propagated” stays at 2.",
    # `best` is linear, but layers without anything between them would be one layer of 64 channels.
    fixed=lambda dataset: {"out_channels": 512, "order": 2, "negative_slope": 0.1},
)
PERTURBATION_RATE = _study(
    "perturbation-rate",
    ("topoter",),
    "perturbation_rate",
    [{"order": 1, "perturbation_rate": r / 10} for r in range(11)],
    f"At k = 1, as in the paper. {WIDTHS} Without any change, at r = 0, there is no gradient: the encoder stays "
    "as it was drawn, which is “random-init”.",
)


def charts(stored: Sequence[dict[str, Any]], parameter: str, axis: Sequence[float]) -> list[tuple[str, Html]]:
    """A chart per dataset, with the dataset as its title."""
    return [
        (
            dataset,
            curves(
                [run for run in stored if run["dataset"] == dataset],
                lambda of_method: mean_by_value(of_method, parameter, axis),
                LABELS[parameter],
                dataset,
            ),
        )
        for dataset in dict.fromkeys(run["dataset"] for run in stored)
    ]


def curves(
    runs: Sequence[dict[str, Any]],
    points_of: Callable[[Sequence[dict[str, Any]]], list[Point]],
    x_label: str,
    name: str,
) -> Html:
    """A curve per method, through the points that its runs give; references dashed."""
    from topoter.report import line_chart
    from topoter.report.charts.lines import Series

    series = []
    for method in dict.fromkeys(run["method"] for run in runs):
        at, means, deviations = zip(*points_of([run for run in runs if run["method"] == method]))
        dashed = method in REFERENCES
        series.append(Series(method, at, means, deviations, dashed=dashed, markers=True, color=COLORS.get(method)))
    return line_chart(series, title="", label=name, x_label=x_label, y_label="test accuracy, %")


def mean_by_value(runs: Sequence[dict[str, Any]], parameter: str, axis: Sequence[float]) -> list[Point]:
    """The points of one method, by increasing value; the same all along `axis` where runs do not depend on it."""
    points = [(run.get("variation", {}).get(parameter), run["result"]["test"]) for run in runs]
    return averaged((at, score) for value, score in points for at in (axis if value is None else [value]))


def averaged(measured: Iterable[tuple[float, float]]) -> list[Point]:
    """What was measured at each value, by increasing value."""
    by_value: dict[float, list[float]] = {}
    for value, score in measured:
        by_value.setdefault(value, []).append(score)
    return [
        (value, statistics.fmean(found), statistics.stdev(found) if len(found) > 1 else None)
        for value, found in sorted(by_value.items())
    ]
