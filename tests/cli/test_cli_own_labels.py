"""The practitioner's path: the commands of docs/your-own-labels.md, in their order, on the network they are about."""

from __future__ import annotations

import csv
import json
import re
import runpy
import shlex
from pathlib import Path

import pytest
from sub_processes import fails

from topoter.cli import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "your-own-labels.md"
PEOPLE = 5_000
NEAR = 1.5  # points that an accuracy may be away from the page's, on another machine


def commands() -> list[list[str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("topoter ")]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("network")
    runpy.run_path(str(ROOT / "examples" / "social_graph.py"))["write"](folder)
    return folder


def test_the_page_is_true(network: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Every command as the page has it, in one process: each would import for longer than it works."""
    monkeypatch.chdir(network)
    said: dict[str, str] = {}
    for arguments in commands():
        name, into = arguments[0], None
        if ">" in arguments:
            arguments, into = arguments[: arguments.index(">")], arguments[-1]
        if name == "search":  # one trial of twenty
            arguments = [*arguments, "--trials", "1", "--seeds", "1", "--task", "node"]
        app([*arguments, "--json" if name in ("evaluate", "label") else "--quiet"], standalone_mode=False)
        printed = capfd.readouterr().out
        if into:
            Path(into).write_text(printed)
        said["dry run" if "--dry-run" in arguments else name] = printed
    assert "income     │ number   │ scaled by rank (heavy tail); gaps get the" in said["dry run"]
    assert "5,000 nodes with 15 features; nothing was trained." in said["dry run"]
    assert "[recipes.best]" in Path("best.toml").read_text()

    page = PAGE.read_text(encoding="utf-8")
    told = {
        name: float(score) for name, score in re.findall(r"^\| ([a-z -]+) \| ([\d.]+) ± [\d.]+ \| ", page, re.MULTILINE)
    }
    evaluated = json.loads(said["evaluate"])
    found = {row["method"]: row["mean"] for row in evaluated["rows"]}
    assert found == pytest.approx(told, abs=NEAR)
    assert found["topoter"] > max(found[name] for name in ("raw", "propagated", "spectral", "hop-svd")) + 5
    assert evaluated["verdict"][0].startswith("TopoTER adds 9.")
    assert "largest class" in Path("evaluation.html").read_text(encoding="utf-8")

    labels = json.loads(said["label"])
    truth = {row["person"]: row["job"] for row in rows(network / "everyone.csv")}
    labelled = [row for row in rows(network / "all.csv") if row["given"] == "false"]
    assert len(labelled) == labels["nodes"] - labels["given"] == PEOPLE * 9 // 10
    right = 100 * sum(row["label"] == truth[row["id"]] for row in labelled) / len(labelled)
    assert abs(right - labels["accuracy"]) < 3.5 * labels["accuracy_error"]
    (promised,) = re.findall(r"Expect ([\d.]+) ± [\d.]+ % to be right", page)
    (true,) = re.findall(r"tells that ([\d.]+) % are", page)
    assert (labels["accuracy"], right) == pytest.approx((float(promised), float(true)), abs=NEAR)

    assert len({row["cluster"] for row in rows(network / "clusters.csv")}) == 8
    assert len(rows(network / "odd-nodes.csv")) == len(rows(network / "clusters.csv")) == PEOPLE
    assert {row["looks_like"] for row in rows(network / "odd-pairs.csv")} == {"false edge", "missing edge"}
    assert "5,000 nodes" in Path("map.html").read_text(encoding="utf-8")


def test_the_script_of_the_whole_story_has_the_commands_of_the_page() -> None:
    script = (ROOT / "examples" / "social_story.sh").read_text(encoding="utf-8").splitlines()
    long = [one for one in commands() if one[0] == "search" or "--recipe" in one]
    assert [shlex.split(line)[1:] for line in script if line.startswith("topoter ")] == [
        one for one in commands() if one not in long
    ]


def test_labels_among_the_features_are_refused(network: Path) -> None:
    arguments = ["--graph", "edges.csv", "--features", "nodes.csv", "--labels", "nodes.csv", "--label-column", "city"]
    line = fails(1, "evaluate", "node", *arguments, "--quiet", cwd=network)
    assert "The features hold the labels themselves ('city=Bern'): leave them out, --exclude city." in line
