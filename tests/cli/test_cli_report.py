"""`topoter report` as a user meets it: real sub-processes on real results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

OURS = Path(__file__).parents[2] / "results"


def topoter(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "topoter", "report", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, cwd=cwd, env=dict(os.environ), check=False
    )


def fails(code: int, *arguments: object, cwd: Path) -> str:
    result = topoter(*arguments, cwd=cwd)
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("error: ")
    return line


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """The runs of two methods on Cora: a part of the results of this repository."""
    (tmp_path / "few").mkdir()
    lines = (OURS / "node-classification.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = ('"cora","method":"topoter","recipe":"tuned"', '"cora","method":"propagated",')
    chosen = [line for line in lines if any(row in line for row in kept)]
    assert chosen
    (tmp_path / "few" / "node-classification.jsonl").write_text("".join(chosen), encoding="utf-8")
    return tmp_path / "few"


def test_a_page_from_part_of_the_results_says_what_is_missing(few: Path) -> None:
    result = topoter("few", "--no-maps", cwd=few.parent)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "report.html\n"
    assert "Without any run: " in result.stderr
    page = (few.parent / "report.html").read_text(encoding="utf-8")
    assert "topoter reproduce node-classification --seeds 10 --out few" in page
    assert "topoter reproduce graph-classification --out few" in page


def test_all_results_as_markdown_and_for_machines(tmp_path: Path) -> None:
    result = topoter(OURS, "-o", "RESULTS.md", "--json", "-q", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    said = json.loads(result.stdout)
    assert said["report"] == "RESULTS.md"
    assert set(said["standing"]) == {
        "better",
        "better, but not by training",
        "within one deviation",
        "worse",
        "not run",
    }
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "do not edit" in text.splitlines()[2]
    assert "## Node classification" in text
    assert f"{said['standing']['worse']} worse" in text


def test_the_map_is_left_out_if_asked_for_and_said_if_missing(few: Path) -> None:
    for options, said in (((), True), (("--no-maps",), False)):
        result = topoter("few", "-o", "r.html", "--quiet", *options, cwd=few.parent)
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        assert ("no map of cora yet" in (few.parent / "r.html").read_text(encoding="utf-8")) is said
    assert [path.name for path in few.iterdir()] == ["node-classification.jsonl"]  # a report writes nothing beside


def test_errors_are_one_line(tmp_path: Path, few: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "There are no runs in empty. Make some: topoter reproduce" in fails(1, "empty", cwd=tmp_path)
    assert "--out must end in .html or .md. Got r.pdf instead" in fails(2, "few", "-o", "r.pdf", cwd=tmp_path)
    with (few / "node-classification.jsonl").open("a") as file:
        file.write("{\n")
    assert "node-classification.jsonl, line " in fails(1, "few", cwd=tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_the_committed_results_are_current(tmp_path: Path) -> None:
    result = topoter("results", "-o", tmp_path / "RESULTS.md", "-q", cwd=OURS.parent)
    assert result.returncode == 0, result.stderr
    made, committed = (
        path.read_text(encoding="utf-8") for path in (tmp_path / "RESULTS.md", OURS.parent / "RESULTS.md")
    )
    assert made == committed, "make it again: topoter report results -o RESULTS.md"
