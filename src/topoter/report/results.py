"""The report on a folder of results: a page, and the same in Markdown."""

from __future__ import annotations

from typing import Any

from topoter import __version__
from topoter.experiments.recipes import load_recipe
from topoter.experiments.sizes import model_sizes
from topoter.report.background import search_tables, speed_tables, written_by_topoter
from topoter.report.experiments import size_table
from topoter.report.figures import figures_of, training_curves
from topoter.report.found import Found, Results, command
from topoter.report.maps import Map
from topoter.report.page import Page, Section, asset, part, templates
from topoter.report.ranking import overall_table, rank_charts
from topoter.report.standing import (
    Standing,
    counts,
    counts_table,
    headline,
    standing_charts,
    standing_tables,
    standings,
)
from topoter.report.tables import NOT_RUN, Mark, escape_markdown, signs
from topoter.report.wording import texts, wording

MAPPED = ("cora",)  # one picture is enough to see what training does
_FACTS = ("runs", "seeds", "protocols", "CPU time", "topoter", "git commit", "python", "torch")


def page_of(results: Results, maps: bool = True) -> Page:
    """Where we stand, the tables, the figures, and how each number was obtained."""
    items = standings(results)
    page = Page(
        "TopoTER: results",
        "The paper's tables and figures, ours beside the published numbers",
        summary=headline(items),
        footer=f"Made by topoter report {results.folder} with topoter {__version__}. This page is one file and loads "
        "nothing.",
        styles=[asset("results.css")],
    )
    ranking = _ranking(results)
    page.sections = [_standing(items, results), *([ranking] if ranking.blocks else [])]
    page.sections += [*(_experiment(found, results) for found in results.found), _sizes()]
    page.sections += [_maps(results)] if maps else []
    others = (_curves(results), _searches(results), _speed(results), _missing(results))
    page.sections += [section for section in others if section.blocks]
    return page


def _standing(items: list[Standing], results: Results) -> Section:
    counted = counts([item for item in items if item.headline])
    kinds = {mark.word: (mark.sign, mark.name.lower()) for mark in Mark} | {NOT_RUN: ("–", "absent")}
    tiles = part("tiles", counted=[(number, word, *kinds[word]) for word, number in counted.items()])
    return Section("Where we stand against the paper", f"{texts().rules['within']} {texts().rules['counted']}").add(
        tiles,
        texts().rules["training"],
        part("beside", blocks=standing_charts(items), kind="charts"),
        counts_table(items),
        *standing_tables(items, results.remarks),
    )


def _experiment(found: Found, results: Results) -> Section:
    words = wording(found.name)
    section = Section(words.title, words.intro)
    with written_by_topoter(f"A run in {results.folder / found.name}.jsonl"):
        figures = figures_of(found.experiment, found.records)
    if figures:
        blocks = [part("together", title=title, blocks=blocks) for title, blocks in figures]
        section.add(part("beside", blocks=blocks, kind="charts"), part("note", text=words.about))
    section.add(part("beside", blocks=found.tables(), kind="tables"))
    said = results.remarks.of_table(found.name)
    if said:
        section.add(part("heading", text="Remarks"), part("remarks", said=said))
    recipes = found.experiment.recipes or found.name
    section.add(
        part("heading", text="How these numbers were obtained"),
        f"{words.protocol} Parameters are those of the recipes in src/topoter/experiments/recipes/{recipes}; every run "
        f"in {results.folder / found.name}.jsonl holds its own, with seed, time and memory.",
        part("code", lines=found.commands(results.folder)),
        part("facts", values=found.facts()),
    )
    if found.absent:
        section.add(f"Not run yet, and run by the command above: {'; '.join(found.absent_rows())}.")
    if found.left_out:
        rows = list(dict.fromkeys(f"{r.dataset}, {r.method} ({r.recipe})" for r in found.left_out))
        more = f" and {len(rows) - 5} more rows" if len(rows) > 5 else ""
        section.add(
            f"Left out, because they were made with other parameters than today's recipes: {len(found.left_out)} runs "
            f"({'; '.join(rows[:5])}{more})."
        )
    return section


def _ranking(results: Results) -> Section:
    charts, table = rank_charts(results), overall_table(results)
    section = Section(
        "Ranking of all systems",
        "Mean ranks over the datasets of each table by its first metric, with our protocol. A system that ran into a "
        "limit comes last. With few datasets the critical difference is wide: most neighbours cannot be told apart.",
    )
    section.add(*([part("beside", blocks=charts, kind="charts")] if charts else []))
    return section.add(table) if table else section


def _sizes() -> Section:
    intro = "Numbers of parameters on Cora with the paper's settings, counted on the modules."
    return Section("Model size", intro).add(
        size_table(model_sizes()), part("code", lines=["topoter reproduce model-size"])
    )


def _maps(results: Results) -> Section:
    section = Section(
        "Embeddings before and after training",
        "Each dot is a node. Nodes with similar embeddings lie near each other; classes were not used to place them. "
        "Distances between far groups mean little.",
    )
    for dataset in MAPPED:
        name = f"maps/{dataset}.json"
        content = results.store.left(name)
        if content is None:
            run = f"topoter reproduce node-classification --methods topoter --datasets {dataset}"
            section.add(f"There is no map of {dataset} yet; its run leaves it: {run}.")
            continue
        with written_by_topoter(results.folder / name):
            section.add(_map(content, dataset))
    return section


def _map(content: dict[str, Any], dataset: str) -> Map:
    recipe = load_recipe("node-classification", "topoter", dataset, content["recipe"])
    stale = "" if content["parameters"] == recipe.parameters else " Made with other parameters than today's recipe."
    return Map(
        content["maps"],
        content["labels"],
        label_names=content["label_names"] or None,
        title=f"{content['dataset']}: embeddings on a plane, coloured by class",
        caption=f"t-SNE of the embeddings of recipe “{content['recipe']}”, seed {content['seed']}. Point at a dot to "
        f"find the same node in both panels; click a class to hide it.{stale}",
    )


def _curves(results: Results) -> Section:
    section = Section(
        "Training curves",
        "TopoTER's training loss by epoch, of the first seed; long trainings are thinned out. The dashed line is the "
        "entropy of the prior: a loss at or above it says that nothing was learned beyond how often each type of "
        "change occurs. It is left out where the loss is that of predicting links.",
    )
    for found in results.found:
        if not found.experiment.varied:  # studies would repeat those of the tables
            charts = training_curves(found.groups, results.store.losses(found.name))
            heading = part("heading", text=wording(found.name).title)
            section.add(*([heading, part("beside", blocks=charts, kind="charts")] if charts else []))
    return section


def _searches(results: Results) -> Section:
    section = Section(
        "What was tried for “best”",
        "How the settings “best” were looked for, scored on training and validation labels or pairs; those of the "
        "test are erased before a search begins.",
        [*search_tables(results.folder)],
    )
    return section.add(part("code", lines=["topoter search DATASET"])) if section.blocks else section


def _speed(results: Results) -> Section:
    return Section("Speed", "", [*speed_tables(results.store)])


def _missing(results: Results) -> Section:
    calls = [command(name, results.folder) for name in results.missing]
    blocks = [part("code", lines=calls)] if calls else []
    return Section("Not run yet", "Of these experiments the folder holds no run.", blocks)


def markdown_of(results: Results) -> str:
    """The same summary and tables as Markdown, a section per experiment with its command."""
    items = standings(results)
    rules, environment = texts().rules, templates(autoescape=False)
    environment.filters["md"] = escape_markdown
    return environment.get_template("results.md.j2").render(
        folder=results.folder,
        headline=headline(items),
        rules=f"{rules['within']} {rules['training']} {rules['counted']} Signs: {signs()}.",
        tables=[counts_table(items), *standing_tables(items, results.remarks)],
        found=[
            (found, wording(found.name), _known(found), results.remarks.of_table(found.name)) for found in results.found
        ],
        sizes=size_table(model_sizes()),
        missing=[command(name, results.folder) for name in results.missing],
    )


def _known(found: Found) -> str:
    facts = found.facts()
    return "; ".join(f"{name}: {facts[name]}" for name in _FACTS if name in facts) + "."
