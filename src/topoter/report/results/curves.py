"""Training curves: the loss of TopoTER by epoch, beside what guessing by the shares of the types would cost."""

from __future__ import annotations

from typing import Any

from topoter.report.charts import Reference, Series, line_chart
from topoter.report.markup import Html
from topoter.report.results.standing import OURS, row_name
from topoter.report.results.stored import Entry, Found

MOST_POINTS = 300


def curves_of(found: Found) -> list[Html]:
    """A chart per dataset and recipe, of the first seed; studies would repeat those of the tables."""
    if found.varied:
        return []
    entries = [entry for entry in found.entries if entry.cell.recipe.method == OURS and entry.runs[0].get("losses")]
    return [_curve(entry) for entry in entries]


def _curve(entry: Entry) -> Html:
    run = entry.runs[0]
    epochs, losses = thinned(run["losses"])
    prior = prior_entropy(run["result"])
    return line_chart(
        [Series("training loss", epochs, losses)],
        title=f"{entry.dataset}, {row_name(entry.cell.recipe.name, entry.cell.protocol)}, seed {run['seed']}",
        x_label="epoch",
        y_label="loss",
        references=[] if prior is None else [Reference("entropy of the prior", prior)],
    )


def prior_entropy(result: dict[str, Any]) -> float | None:
    """What guessing by the shares of the types costs, if the stored losses are those of predicting types alone."""
    # Where links are learned after or beside it, the losses are not comparable: such runs have no "loss".
    value = result.get("prior_entropy") if "loss" in result else None
    return None if value is None else float(value)


def thinned(losses: list[float], most: int = MOST_POINTS) -> tuple[list[float], list[float]]:
    """Epochs and losses, evenly thinned out to at most so many points; the first and the last stay."""
    count = min(len(losses), most)
    step = (len(losses) - 1) / max(count - 1, 1)
    kept = [round(index * step) for index in range(count)]
    return [at + 1.0 for at in kept], [float(losses[at]) for at in kept]
