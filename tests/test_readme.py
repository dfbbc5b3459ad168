"""The tables of the README, and RESULTS.md, say what the committed runs say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CITATIONS = {"Cora": "cora", "CiteSeer": "citeseer", "PubMed": "pubmed"}
GRAPH_SETS = {
    "MUTAG": "mutag",
    "PTC_MR": "ptc_mr",
    "REDDIT-B": "reddit-binary",
    "REDDIT-M5K": "reddit-multi-5k",
    "IMDB-B": "imdb-binary",
    "IMDB-M": "imdb-multi",
}
PAPER = "the paper's TopoTER"

Table = dict[str, dict[str, str]]  # method, column: cell


def table_after(text: str, start: str) -> Table:
    """The Markdown table whose first line begins with `start`."""
    lines = text[text.index(f"\n{start}") + 1 :].split("\n\n")[0].splitlines()
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}


def stored(experiment: str) -> dict[str, Table]:
    """The tables that `topoter reproduce` wrote, by dataset."""
    text = (ROOT / "results" / experiment / "table.md").read_text(encoding="utf-8")
    blocks = re.split(r"^\*\*(.+)\*\*$", text, flags=re.MULTILINE)
    return {dataset: table_after(block, "| method") for dataset, block in zip(blocks[1::2], blocks[2::2])}


def test_node_classification():
    shown, runs = table_after(README, "| method | cora, ours"), stored("node-classification")
    assert len(shown) == 10
    for name, row in shown.items():
        method, _, selects = name.partition(", ")
        for dataset in CITATIONS.values():
            cells = runs[dataset][method]
            assert row[f"{dataset}, ours"] == cells[f"ours, {selects}" if selects else "ours"], (name, dataset)
            assert row[f"{dataset}, paper"] == cells["paper"], (name, dataset)


def test_graph_classification():
    shown, runs = table_after(README, "| method | MUTAG"), stored("graph-classification")
    assert len(shown) == 7
    for column, dataset in GRAPH_SETS.items():
        assert runs[dataset]["topoter (best)"]["paper"].startswith(f"{shown[PAPER][column]} ±")
        assert {method: cells["ours"].removesuffix(" (5 seeds)") for method, cells in runs[dataset].items()} == {
            method: row[column] for method, row in shown.items() if method != PAPER
        }


def test_link_prediction():
    shown, runs = table_after(README, "| method | decoder"), stored("link-prediction")
    assert len(shown) == 15
    for column, dataset in CITATIONS.items():
        found = {re.sub(r", .*\)", ")", method): cells for method, cells in runs[dataset].items()}
        means = {method: _means(cells, "ours") for method, cells in found.items()}
        means[PAPER] = _means(found["topoter (best)"], "paper")
        assert means == {method: row[column] for method, row in shown.items()}


def _means(cells: dict[str, str], whose: str) -> str:
    return " / ".join(cells[f"{metric}, {whose}"].split(" ± ")[0] for metric in ("AUC", "AP"))


def test_results_are_those_that_the_report_makes(tmp_path):
    command = [sys.executable, "-m", "topoter", "report", "results", "-o", str(tmp_path / "made.md"), "-q"]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300, capture_output=True)
    made = (tmp_path / "made.md").read_text(encoding="utf-8")
    assert made == (ROOT / "RESULTS.md").read_text(encoding="utf-8")
