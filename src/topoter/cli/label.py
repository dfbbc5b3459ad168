"""`topoter label`: labels for the rest, with probabilities and the accuracy to expect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topoter.cli.graph_options import GraphOptions, takes_options
from topoter.cli.output import Device, Seed, out, print_json, show_log, training_progress
from topoter.cli.own_labels import LabelColumn, aligned, load_labelled
from topoter.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from torch_geometric.data import Data

SURE = (0.9, 0.8, 0.7)  # stated probabilities of which it is said how often they are right
AUTO = "auto"
TRIED = ("raw", "propagated", "hop-svd", "topoter")


@takes_options
def run(
    graph: Annotated[str, typer.Argument(help="The file of your graph.")],
    *,
    labels: Annotated[Path, typer.Option(help="A table of labels for some nodes, ids in its first column.")],
    label_column: LabelColumn = None,
    out_path: Annotated[Path, typer.Option("--out", "-o", help="One row per node: .csv, .tsv or .parquet.")] = Path(
        "labels-for-all.csv"
    ),
    model: Annotated[
        Path | None, typer.Option(help="A model of `topoter fit` for the embeddings (else one is fitted).")
    ] = None,
    embeddings: Annotated[Path | None, typer.Option(help="Embeddings to use in place of any method's.")] = None,
    method: Annotated[str, typer.Option(help="auto: the best on held-out labels; or the name of one method.")] = AUTO,
    options: GraphOptions,
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """Label all nodes of a graph from the labels of some, and say how far to trust it."""
    from topoter.graphs.node_tables import check_table_destination, write_node_table
    from topoter.tasks.labelling import best_labelling, sure_of

    show_log(options.quiet)
    if model is not None and embeddings is not None:
        raise UsageError("Give --model or --embeddings, not both.")
    check_table_destination(out_path)
    data, known = load_labelled(graph, labels, label_column, options, seed)
    if embeddings is not None:
        candidates = {embeddings.stem: aligned(embeddings, data.node_ids)}
    elif model is not None:
        from topoter.estimator import TopoTER

        candidates = {model.stem: TopoTER.load(model, device).transform(data)}
    else:
        candidates = _embedded(data, method, seed, device, options.quiet)
    options.say("Classifying ...")
    chosen, tried = best_labelling(candidates, known, seed)
    found = tried[chosen]
    given = known.y >= 0
    names = [known.names[label] for label in found.predicted]
    labelled = [known.names[known.y[node]] if given[node] else name for node, name in enumerate(names)]
    columns: dict[str, Any] = {
        "id": data.node_ids,
        "label": labelled,
        "given": given,
        "predicted": names,
        "probability": found.probabilities.max(axis=1).round(4),
    }
    columns |= {f"p({name})": found.probabilities[:, place].round(4) for place, name in enumerate(known.names)}
    write_node_table(out_path, columns)
    sure = {least: sure_of(found, known, least) for least in SURE}
    if options.json:
        content = {
            "table": str(out_path),
            "nodes": len(given),
            "given": int(given.sum()),
            "classes": known.names,
            "embedding": chosen,
            "accuracy": found.accuracy,
            "accuracy_error": found.error,
            "accuracy_by_embedding": {name: one.accuracy for name, one in tried.items()},
            "calibration_error": found.calibration_error,
            "calibration_error_before": found.before,
            "sure": [
                {"probability": least, "share": share, "accuracy": right} for least, (share, right) in sure.items()
            ],
        }
        print_json(content)
        return
    if len(tried) > 1:
        listed = ", ".join(f"{name} {one.accuracy:.1f} %" for name, one in tried.items())
        options.say(f"On held-out labels: {listed}. Used: {chosen}, whose probabilities fit them best.")
    count, expected = int(given.sum()), f"{found.accuracy:.1f} ± {found.error:.1f} %"
    out.print(
        f"Labelled {len(given) - count:,} nodes from {count:,}. Expect {expected} to be right (measured on held-out "
        f"labels, where stated probabilities are off by {found.calibration_error:.1f} points).",
        soft_wrap=True,
    )
    told = 100
    for least, (share, right) in sure.items():
        if right is not None and 0 < round(share) != told:
            told = round(share)
            out.print(
                f"Of the {share:.0f} % with a probability of {least:.0%} or more, {right:.0f} % are right.",
                soft_wrap=True,
            )
    out.print(str(out_path), soft_wrap=True)


def _embedded(data: Data, method: str, seed: int, device: str, quiet: bool) -> dict[str, np.ndarray]:
    """Embeddings by one method, or by those worth trying."""
    from topoter.experiments.recipes import DEFAULT, load_recipe
    from topoter.methods import build, methods_of
    from topoter.tasks.node_classification import without_labels
    from topoter.training.callbacks import as_callbacks

    names = [name for name in TRIED if name in methods_of("node")] if method == AUTO else [method]
    graph, found = without_labels(data), {}
    for name in names:
        parameters = load_recipe("node-classification", name, DEFAULT).parameters
        if name == "topoter":
            parameters = {**parameters, "device": device}
        made = build(name, "node", parameters)
        with training_progress(name, quiet) as show:
            found[name] = made.fit(graph, seed, as_callbacks([show])).embed(graph)
    return found
