"""Each notebook runs from its first cell to its last, and what it ends in can be shown."""

from __future__ import annotations

import ast
import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
JOBS = {"own_graph", "own_labels", "molecules", "time", "links"}


def cells(path: Path) -> list[str]:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["nbformat"] == 4
    assert not any(cell.get("outputs") for cell in content["cells"]), "outputs are not committed"
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """As Jupyter does: the value of a last line that is an expression is shown."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


def test_the_molecules_are_those_that_the_script_makes(tmp_path: Path) -> None:
    runpy.run_path(str(FOLDER / "made_molecules.py"))["write"](tmp_path / "molecules.csv")
    assert (tmp_path / "molecules.csv").read_text() == (FOLDER / "molecules.csv").read_text()


def test_there_is_one_for_each_job() -> None:
    assert {path.stem for path in NOTEBOOKS} == JOBS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.usefixtures("one_thread")
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOPOTER_DATA", raising=False)  # what a user has: the copies that other packages carry
    runpy.run_path(str(FOLDER / "social_graph.py"))["write"](tmp_path, people=600)
    if path.stem == "molecules":
        pytest.importorskip("rdkit")
        shutil.copy(FOLDER / "molecules.csv", tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = [run_cell(source, names) for source in cells(path)]
    assert any(value is not None for value in shown)
    if path.stem == "own_labels":
        table = next(
            value for value in shown if hasattr(value, "_repr_html_") and "three splits" in value._repr_html_()
        )
        assert "<table" in table._repr_html_()
    if path.stem == "links":
        assert shown[-1][0] > 5
    if path.stem == "time":
        assert shown[-1] > 75
    if path.stem == "molecules":
        assert names["accuracy"]["topoter"] > 95 > 75 > names["accuracy"]["counts of atoms"]
        assert list(shown[-1].index) == names["new"]
    if path.stem == "own_graph":
        assert "<div" in names["model"]._repr_html_()
