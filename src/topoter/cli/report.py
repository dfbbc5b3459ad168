"""`topoter report`: one page, or one Markdown file, from what was run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoter.cli.output import DataRoot, Json, Quiet, note, out, print_json, show_log
from topoter.errors import UsageError

FORMATS = (".html", ".md")


def run(
    folder: Annotated[Path, typer.Argument(help="Where `topoter reproduce` keeps its runs.")] = Path("results"),
    out_path: Annotated[Path, typer.Option("--out", "-o", help="A page (.html) or Markdown (.md).")] = Path(
        "report.html"
    ),
    no_maps: Annotated[bool, typer.Option("--no-maps", help="Leave the map of the embeddings out.")] = False,
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write what was run as one self-contained page: where we stand, tables, figures, how each number was obtained."""
    suffix = out_path.suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(f"--out must end in {' or '.join(FORMATS)}. Got {out_path} instead.")
    from topoter.graphs.atomic import atomic_write
    from topoter.report.found import read_results
    from topoter.report.results import markdown_of, page_of
    from topoter.report.standing import counts, standings

    show_log(quiet)
    results = read_results(folder)
    with atomic_write(out_path) as temporary:
        text = markdown_of(results) if suffix == ".md" else page_of(results, maps=not no_maps).render()
        temporary.write_text(text, encoding="utf-8")
    if results.missing:
        note(f"Without any run: {', '.join(results.missing)}. The report says how to run them.", quiet)
    if json:
        counted = counts([item for item in standings(results) if item.headline])
        print_json({"report": str(out_path), "standing": counted, "missing": results.missing})
    else:
        out.print(str(out_path), soft_wrap=True)
