"""The table of the README says what the committed runs say, and nothing is committed that can be built."""

from __future__ import annotations

import statistics
import subprocess
from pathlib import Path

from topoter.experiments.recipes import load_recipe
from topoter.experiments.store import Store

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DATASETS = ("cora", "citeseer", "pubmed")
# The README's rows: method and recipe.
ROWS = {
    "raw features": ("raw", "tuned"),
    "propagated features, no training": ("propagated", "tuned"),
    "DGI": ("dgi", "paper"),
    "topoter, the one default": ("topoter", "default"),
    "topoter, settings searched for on validation": ("topoter", "best"),
    "the default before training": ("random-init", "default"),
    "topoter, the paper's encoder, our settings": ("topoter", "tuned"),
    "topoter, the paper's settings": ("topoter", "paper"),
}


def shown() -> dict[str, list[str]]:
    """The cells of the README's table of results, by the name of the row."""
    lines = README[README.index("| method | Cora | CiteSeer | PubMed |") :].split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return {name: cells for name, *cells in rows}


def test_the_table_of_the_readme_is_that_of_the_runs():
    table, records = shown(), Store.read(ROOT / "results").of("node-classification")
    for name, (method, recipe) in ROWS.items():
        for dataset, cell in zip(DATASETS, table.pop(name), strict=True):
            found = [
                record.scores["accuracy"][0]
                for record in records
                if (record.dataset, record.method, record.recipe, record.protocol)
                == (dataset, method, recipe, "validation")
            ]
            seeds = "" if len(found) == 10 else f" ({len(found)} seeds)"
            assert cell == f"{statistics.fmean(found):.1f} ± {statistics.stdev(found):.1f}{seeds}", (name, dataset)
    ((name, cells),) = table.items()
    assert name.startswith("the paper's own numbers")
    published = [load_recipe("node-classification", "topoter", dataset, "paper").paper for dataset in DATASETS]
    assert cells == [f"{paper['mean']:.1f} ± {paper['std']:.1f}" for paper in published]


def test_what_can_be_built_is_not_committed_twice():
    tracked = subprocess.run(
        ["git", "ls-files", "results"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert not [path for path in tracked if path.endswith((".html", ".md"))]
