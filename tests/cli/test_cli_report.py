"""`topoter report` as a user meets it: real sub-processes on real results."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from topoter.cli import report
from topoter.datasets import block_model

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
    source, target = OURS / "node-classification" / "cora", tmp_path / "few" / "node-classification" / "cora"
    target.mkdir(parents=True)
    for path in [*source.glob("topoter.best.*"), *source.glob("propagated.*")]:
        shutil.copy(path, target)
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
    assert set(said["standing"]) == {"better", "within one deviation", "worse", "not run"}
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "do not edit" in text.splitlines()[2]
    assert "## Node classification" in text
    assert f"{said['standing']['worse']} worse" in text


def test_no_maps_trains_nothing(few: Path) -> None:
    result = topoter("few", "-o", "r.html", "--no-maps", "--quiet", cwd=few.parent)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "no map of cora yet" in (few.parent / "r.html").read_text(encoding="utf-8")
    assert not (few / "maps").exists()


def test_a_map_that_is_missing_is_made_once(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = block_model(num_nodes=60, num_blocks=3, mean_degree=6.0, num_features=20, seed=0)
    monkeypatch.setattr("topoter.datasets.load", lambda name, data_root: data)
    report.run(few, few.parent / "r.html", quiet=True)
    made = (few / "maps" / "cora.json").stat().st_mtime_ns
    report.run(few, few.parent / "r.html", quiet=True)
    assert (few / "maps" / "cora.json").stat().st_mtime_ns == made, "a map that is there is not made again"
    assert "after training" in (few.parent / "r.html").read_text(encoding="utf-8")


def test_errors_are_one_line(tmp_path: Path, few: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "There are no runs in empty. Make some: topoter reproduce" in fails(1, "empty", cwd=tmp_path)
    assert "--out must end in .html or .md. Got r.pdf instead" in fails(2, "few", "-o", "r.pdf", cwd=tmp_path)
    path = next((few / "node-classification" / "cora").glob("topoter.best.*"))
    path.write_text("{")
    assert f"{path.name} is damaged" in fails(1, "few", "--no-maps", cwd=tmp_path)
    assert not (tmp_path / "report.html").exists()
