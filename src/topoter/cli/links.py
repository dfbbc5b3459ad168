"""`topoter links`: the most likely missing edges of a graph, by a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoter.cli.output import Seed, out, print_json, progress_bar, show_log
from topoter.cli.reading import ModelOptions, takes_options


@takes_options
def run(
    *,
    options: ModelOptions,
    top: Annotated[int, typer.Option(min=1, help="How many pairs.")] = 100,
    out_path: Annotated[Path, typer.Option("--out", "-o", help="Where the ranking goes, a .csv.")] = Path("links.csv"),
    seed: Seed = 0,
) -> None:
    """Rank the pairs of nodes that are not connected and most likely should be."""
    from topoter.errors import UsageError
    from topoter.graphs.atomic import atomic_write, check_writable
    from topoter.tasks.link_ranking import rank_links

    show_log(options.quiet)
    if out_path.suffix.lower() != ".csv":
        raise UsageError(f"The ranking is written as .csv. Got {out_path} instead.")
    check_writable(out_path)
    fitted, data = options.load_both()
    with atomic_write(out_path) as temporary:
        with progress_bar(options.quiet) as progress:
            task = progress.add_task("scoring pairs", total=None, text="") if progress else None

            def show(done: int, total: int) -> None:
                if progress is not None and task is not None:
                    progress.update(task, completed=done, total=total)

            ranked = rank_links(fitted, data, top, seed, show)
        _write(temporary, ranked.pairs.tolist(), ranked.score.tolist(), data.get("node_ids"))
    if options.json:
        print_json({"links": str(out_path), "pairs": ranked.pairs.size(1), "auc": ranked.auc, "ap": ranked.ap})
    else:
        checked = (
            f"Checked on hidden edges: AUC {ranked.auc:.1f} %, AP {ranked.ap:.1f} % (decoder: weighted inner product, "
            "learned on other hidden edges; the model itself may have been trained on all of them)."
        )
        options.say(checked)
        out.print(str(out_path), soft_wrap=True)


def _write(path: Path, pairs: list[list[int]], scores: list[float], ids: object) -> None:
    """source, target, score; with the user's own ids where the graph has them."""
    import csv

    name = (lambda node: node) if ids is None else (lambda node: ids[node])  # type: ignore[index]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["source", "target", "score"])
        writer.writerows([name(a), name(b), f"{score:.6g}"] for a, b, score in zip(*pairs, scores))
