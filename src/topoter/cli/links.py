"""`topoter links`: the most likely missing edges of a graph, by a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topoter.cli.graph_options import ModelOptions, takes_options
from topoter.cli.output import Seed, out, print_json, progress_bar, show_log
from topoter.cli.reading import load_both

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from topoter.tasks.link_ranking import RankedLinks
    from topoter.tasks.link_reasons import Reasons


@takes_options
def run(
    *,
    options: ModelOptions,
    top: Annotated[int, typer.Option(min=1, help="How many pairs.")] = 100,
    node: Annotated[str | None, typer.Option("--for", metavar="ID", help="Only pairs of this node.")] = None,
    candidates: Annotated[
        Path | None, typer.Option(help="Only the pairs in this file: a list of two ids a line, as edges are.")
    ] = None,
    out_path: Annotated[Path, typer.Option("--out", "-o", help="Where the ranking goes, a .csv.")] = Path("links.csv"),
    seed: Seed = 0,
) -> None:
    """Rank the pairs of nodes that are not connected and most likely should be."""
    from topoter.errors import UsageError
    from topoter.graphs.atomic import atomic_write, check_writable
    from topoter.tasks.link_ranking import rank_links
    from topoter.tasks.link_reasons import reasons

    show_log(options.quiet)
    if out_path.suffix.lower() != ".csv":
        raise UsageError(f"The ranking is written as .csv. Got {out_path} instead.")
    if node is not None and candidates is not None:
        raise UsageError("Give --for or --candidates, not both.")
    check_writable(out_path)
    fitted, data = load_both(options)
    asked = _pairs_in(candidates, data) if candidates is not None else None
    asked = _pairs_of(node, data) if node is not None else asked
    with atomic_write(out_path) as temporary:
        with progress_bar(options.quiet) as progress:
            task = progress.add_task("scoring pairs", total=None, text="") if progress else None

            def show(done: int, total: int) -> None:
                if progress is not None and task is not None:
                    progress.update(task, completed=done, total=total)

            ranked = rank_links(fitted, data, top, seed, show, asked)
        _write(temporary, ranked, reasons(data, ranked.pairs), data.get("node_ids"))
    if options.json:
        print_json({"links": str(out_path), "pairs": ranked.pairs.size(1), "auc": ranked.auc, "ap": ranked.ap})
    else:
        checked = (
            f"Checked on hidden edges: AUC {ranked.auc:.1f} %, AP {ranked.ap:.1f} % (decoder: weighted inner product, "
            "learned on other hidden edges; the model itself may have been trained on all of them)."
        )
        options.say(checked)
        if asked is not None and ranked.pairs.size(1) < min(top, asked.size(1)):
            options.say(
                f"Of {asked.size(1):,} pairs {ranked.pairs.size(1):,} are ranked: the others are edges already."
            )
        out.print(str(out_path), soft_wrap=True)


def _pairs_in(path: Path, data: Data) -> Tensor:
    """The pairs [2, K] of a file, as numbers of the graph's nodes."""
    import torch

    from topoter.errors import DataError
    from topoter.graphs.edge_lists import open_edges, read_edges
    from topoter.graphs.ids import rows_of_nodes, user_ids
    from topoter.graphs.problems import existing

    existing(path)
    (table,) = open_edges(path)
    raw = read_edges(table)
    try:
        return torch.from_numpy(rows_of_nodes(user_ids(raw.node_ids), _ids(data))[raw.edge_index])
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _pairs_of(node: str, data: Data) -> Tensor:
    """A node and every other one, [2, N - 1]."""
    import torch

    from topoter.graphs.ids import rows_of_nodes

    row = int(rows_of_nodes([node], _ids(data))[0])
    others = torch.cat([torch.arange(row), torch.arange(row + 1, data.num_nodes)])
    return torch.stack([torch.full_like(others, row), others])


def _ids(data: Data) -> Any:
    ids = data.get("node_ids")
    return range(data.num_nodes) if ids is None else ids


def _write(path: Path, ranked: RankedLinks, why: list[Reasons], ids: Any) -> None:
    """A line for each pair, with the user's own ids where the graph has them, and what speaks for it."""
    import csv

    name = (lambda node: node) if ids is None else (lambda node: ids[node])
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["source", "target", "score", "shared_neighbours", "such_as", "alike_in"])
        for (a, b), score, reason in zip(ranked.pairs.t().tolist(), ranked.score.tolist(), why):
            neighbours = "; ".join(str(name(node)) for node in reason.neighbours)
            writer.writerow([name(a), name(b), f"{score:.6g}", reason.shared, neighbours, "; ".join(reason.alike)])
