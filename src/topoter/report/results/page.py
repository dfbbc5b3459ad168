"""The page on a folder of results: where we stand, the tables, the figures, and how each number was obtained."""

from __future__ import annotations

import os

from topoter import __version__
from topoter.experiments.sizes import model_sizes
from topoter.report.markup import Html, code_block, escape, heading, join, paragraph
from topoter.report.page import Page, Section
from topoter.report.results.background import search_tables, speed_tables
from topoter.report.results.curves import curves_of
from topoter.report.results.maps import MAPPED, draw_maps
from topoter.report.results.provenance import absent_rows, command, commands, facts_of
from topoter.report.results.remarks import Remarks
from topoter.report.results.standing import COUNTED, RULE, Standing, counts, counts_by_row, headline, standings
from topoter.report.results.stored import Found, Results, written_by_topoter
from topoter.report.results.tables import counts_table, size_table, standing_tables, tables_of
from topoter.report.results.wording import wording
from topoter.report.tables import Mark, facts


def write_page(results: Results, remarks: Remarks, path: str | os.PathLike[str]) -> None:
    """Write one self-contained page from what was run."""
    items = standings(results)
    page = Page(
        "TopoTER: results",
        "The paper's tables and figures, ours beside the published numbers",
        summary=headline(items),
        footer=f"Made by topoter report {results.folder} with topoter {__version__}. This page is one file and loads "
        "nothing.",
        assets=["results.css"],
    )
    page.add(_standing(items, remarks))
    for found in results.found:
        page.add(_experiment(found, results, remarks))
    page.add(_sizes())
    page.add(_maps(results))
    for section in (_curves(results), _searches(results), _speed(results), _missing(results)):
        if section is not None:
            page.add(section)
    page.write(path)


def _standing(items: list[Standing], remarks: Remarks) -> Section:
    counted = counts([item for item in items if item.headline])
    signs = {mark.word: (mark.sign, mark.name.lower()) for mark in Mark}
    tiles = join(
        Html(
            f'<li class="tile {css}"><span class="tile-number">{number}</span>'
            f'<span><span class="mark {css}" aria-hidden="true">{sign}</span> {escape(word)}</span></li>'
        )
        for word, number in counted.items()
        for sign, css in [signs.get(word, ("–", "absent"))]
    )
    return Section("Where we stand against the paper", f"{RULE} {COUNTED}").add(
        Html(f'<ul class="tiles" aria-label="Counts">{tiles}</ul>'),
        counts_table(counts_by_row(items)).html(),
        *(table.html() for table in standing_tables(items, remarks)),
    )


def _experiment(found: Found, results: Results, remarks: Remarks) -> Section:
    words = wording(found.name)
    section = Section(words.title, words.intro)
    if found.experiment.charts is not None:
        with written_by_topoter(results.folder / found.name):
            charts = found.experiment.charts(found.runs)
        section.add(_grid([heading(title) + chart for title, chart in charts]))
        section.add(paragraph(found.experiment.about, "note"))
    section.add(*(table.html() for table in tables_of(found)))
    said = remarks.of_table(found.name)
    if said:
        section.add(heading("Remarks"), _remarks(said))
    section.add(heading("How these numbers were obtained"))
    recipes = found.experiment.recipes or found.name
    kept = f"Parameters are those of the recipes in src/topoter/experiments/recipes/{recipes}; the JSON of every run "
    section.add(f"{words.protocol} {kept}in {results.folder / found.name} holds its own, with seed, time and memory.")
    section.add(code_block(commands(found, results.folder)), facts(facts_of(found)))
    absent = absent_rows(found)
    if absent:
        section.add(f"Not run yet, and run by the command above: {'; '.join(absent)}.")
    if found.left_out:
        files = ", ".join(str(path.relative_to(results.folder)) for path in found.left_out[:5])
        more = f" and {len(found.left_out) - 5} more" if len(found.left_out) > 5 else ""
        section.add(f"Left out, because they were made with other parameters than today's recipes: {files}{more}.")
    return section


def _remarks(said: list[tuple[str, str]]) -> Html:
    lines = join(
        Html(f"<li>{f'<strong>{escape(about)}:</strong> ' if about else ''}{escape(text)}</li>") for about, text in said
    )
    return Html(f'<ul class="remarks">{lines}</ul>')


def _grid(blocks: list[Html]) -> Html:
    """Charts beside each other where there is room."""
    return Html(f'<div class="charts">{join(Html(f"<div>{block}</div>") for block in blocks)}</div>')


def _sizes() -> Section:
    return Section(
        "Model size", "Numbers of parameters on Cora with the paper's settings, counted on the modules."
    ).add(size_table(model_sizes()).html(), code_block(["topoter reproduce model-size"]))


def _maps(results: Results) -> Section:
    section = Section(
        "Embeddings before and after training",
        "Each dot is a node. Nodes with similar embeddings lie near each other; classes were not used to place them. "
        "Distances between far groups mean little.",
    )
    drawn = draw_maps(results.folder)
    for dataset in MAPPED:
        if dataset not in {name for name, _ in drawn}:
            section.add(f"There is no map of {dataset} yet; topoter report makes it, unless --no-maps is given.")
    return section.add(*(drawing for _, drawing in drawn))


def _curves(results: Results) -> Section | None:
    parts = [(wording(found.name).title, charts) for found in results.found if (charts := curves_of(found))]
    if not parts:
        return None
    section = Section(
        "Training curves",
        "TopoTER's training loss by epoch, of the first seed; long trainings are thinned out. The dashed line is the "
        "entropy of the prior: a loss at or above it says that nothing was learned beyond how often each type of "
        "change occurs. It is left out where the loss is that of predicting links.",
    )
    for title, charts in parts:
        section.add(heading(title), _grid(charts))
    return section


def _searches(results: Results) -> Section | None:
    tables = search_tables(results.folder)
    if not tables:
        return None
    intro = (
        "How the settings “best” were looked for: one parameter at a time, scored on training and validation labels; "
        "test labels are erased before a search begins."
    )
    return Section("What was tried for “best”", intro).add(
        *(table.html() for table in tables), code_block(["topoter search DATASET"])
    )


def _speed(results: Results) -> Section | None:
    tables = speed_tables(results.folder)
    return Section("Speed").add(*(table.html() for table in tables)) if tables else None


def _missing(results: Results) -> Section | None:
    if not results.missing:
        return None
    calls = [command(name, results.folder) for name in results.missing]
    return Section("Not run yet", "Of these experiments the folder holds no run.").add(code_block(calls))
