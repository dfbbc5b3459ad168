"""`topoter report`: one page, or one Markdown file, from what was run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topoter.cli.output import DataRoot, Json, Quiet, note, out, print_json, show_log, training_progress
from topoter.errors import TopoterError, UsageError

FORMATS = (".html", ".md")


def run(
    folder: Annotated[Path, typer.Argument(help="Where `topoter reproduce` keeps its runs.")] = Path("results"),
    out_path: Annotated[Path, typer.Option("--out", "-o", help="A page (.html) or Markdown (.md).")] = Path(
        "report.html"
    ),
    no_maps: Annotated[bool, typer.Option("--no-maps", help="Train nothing for a map that is not there.")] = False,
    data_root: DataRoot = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write what was run as one self-contained page: where we stand, tables, figures, how each number was obtained."""
    suffix = out_path.suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(f"--out must end in {' or '.join(FORMATS)}. Got {out_path} instead.")
    from topoter.graphs import atomic_write
    from topoter.report.results import markdown_summary, read_remarks, read_results, write_page
    from topoter.report.results.standing import counts, standings

    show_log(quiet)
    with atomic_write(out_path) as temporary:  # find out now, not after training, that it cannot be written
        results, remarks = read_results(folder), read_remarks(folder)
        if suffix == ".md":
            temporary.write_text(markdown_summary(results, remarks), encoding="utf-8")
        else:
            if not no_maps:
                _make_maps(folder, data_root, quiet)
            write_page(results, remarks, temporary)
    if results.missing:
        note(f"Without any run: {', '.join(results.missing)}. The report says how to run them.", quiet)
    if json:
        counted = counts([item for item in standings(results) if item.headline])
        print_json({"report": str(out_path), "standing": counted, "missing": results.missing})
    else:
        out.print(str(out_path), soft_wrap=True)


def _make_maps(folder: Path, data_root: Path | None, quiet: bool) -> None:
    """Train once for every map that is not there; a dataset that cannot be had leaves a gap, not an error."""
    from topoter.datasets import load
    from topoter.report.results.maps import MAPPED, has_map, make_map, map_path, parameters_of

    for dataset in MAPPED:
        if has_map(folder, dataset):
            continue
        try:
            data = load(dataset, data_root=data_root)
        except TopoterError as error:
            note(f"No map of {dataset}: {error}", quiet)
            continue
        try:
            map_path(folder, dataset).parent.mkdir(exist_ok=True)
        except OSError as error:
            raise TopoterError(f"Cannot keep a map in {folder} ({error.strerror}). Give --no-maps.") from error
        with training_progress(f"Map of {dataset}", parameters_of(dataset)["epochs"], quiet) as show:
            make_map(folder, dataset, data, show)
