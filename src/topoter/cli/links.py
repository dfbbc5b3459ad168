"""`topoter links`: the most likely missing edges of a graph, by a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoter.cli.output import (
    DataRoot,
    Device,
    Json,
    Quiet,
    Seed,
    TrustEncoder,
    note,
    out,
    print_json,
    progress_bar,
    show_log,
)
from topoter.cli.reading import Reading, load_graph, reads_files


@reads_files
def run(
    model: Annotated[Path, typer.Argument(help="A model that `topoter fit` wrote.")],
    graph: Annotated[str, typer.Argument(help="A dataset name or a file, also one the model has not seen.")],
    *,
    top: Annotated[int, typer.Option(help="How many pairs.")] = 100,
    out_path: Annotated[Path, typer.Option("--out", "-o", help="Where the ranking goes, a .csv.")] = Path("links.csv"),
    reading: Reading,
    seed: Seed = 0,
    trust_encoder: TrustEncoder = False,
    device: Device = "cpu",
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Rank the pairs of nodes that are not connected and most likely should be."""
    from topoter.errors import UsageError
    from topoter.estimator import TopoTER
    from topoter.graphs.atomic import atomic_write, check_writable
    from topoter.tasks.link_ranking import rank_links

    show_log(quiet)
    if out_path.suffix.lower() != ".csv":
        raise UsageError(f"The ranking is written as .csv. Got {out_path} instead.")
    if top < 1:
        raise UsageError(f"--top must be at least 1. Got {top} instead.")
    check_writable(out_path)
    fitted = TopoTER.load(model, device, trust_encoder=trust_encoder)
    if fitted.level == "graph":
        raise UsageError(f"{model} was fitted on a set of graphs: fit a model on one graph first.")
    data = load_graph(graph, data_root, quiet, reading=reading, preparation=fitted.preparation_)
    with atomic_write(out_path) as temporary:
        with progress_bar(quiet) as progress:
            task = progress.add_task("scoring pairs", total=None, text="") if progress else None

            def show(done: int, total: int) -> None:
                if progress is not None and task is not None:
                    progress.update(task, completed=done, total=total)

            ranked = rank_links(fitted, data, top, seed, show)
        _write(temporary, ranked.pairs.tolist(), ranked.score.tolist(), data.get("node_ids"))
    if json:
        print_json({"links": str(out_path), "pairs": ranked.pairs.size(1), "auc": ranked.auc, "ap": ranked.ap})
    else:
        note(
            f"Checked on hidden edges: AUC {ranked.auc:.1f} %, AP {ranked.ap:.1f} % (decoder: weighted inner product, "
            "learned on other hidden edges; the model itself may have been trained on all of them).",
            quiet,
        )
        out.print(str(out_path), soft_wrap=True)


def _write(path: Path, pairs: list[list[int]], scores: list[float], ids: object) -> None:
    """source, target, score; with the user's own ids where the graph has them."""
    import csv

    name = (lambda node: node) if ids is None else (lambda node: ids[node])  # type: ignore[index]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["source", "target", "score"])
        writer.writerows([name(a), name(b), f"{score:.6g}"] for a, b, score in zip(*pairs, scores))
