"""The practitioner's path: the commands of docs/your-own-labels.md, in their order, on the network they are about."""

from __future__ import annotations

import csv
import json
import runpy
import shlex
from pathlib import Path

import pytest
from sub_processes import fails, topoter

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "your-own-labels.md"
PEOPLE = 1_000
# The same commands with less to do: what they print is measured elsewhere.
SHORTER = {
    "evaluate": ["--seeds", "2", "--epochs", "30"],
    "search": ["--trials", "1", "--seeds", "1", "--task", "node"],
}


def commands() -> list[list[str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("topoter ")]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("network")
    runpy.run_path(str(ROOT / "examples" / "social_graph.py"))["write"](folder, people=PEOPLE)
    return folder


def test_the_page_is_true(network: Path) -> None:
    said: dict[str, str] = {}
    for arguments in commands():
        name, into = arguments[0], None
        if ">" in arguments:
            arguments, into = arguments[: arguments.index(">")], arguments[-1]
        if name == "fit" and "--dry-run" not in arguments:
            arguments = [*arguments, "--epochs", "30"]
        result = topoter(*arguments, *SHORTER.get(name, []), "--json" if name == "label" else "--quiet", cwd=network)
        assert result.returncode == 0, (arguments, result.stderr)
        if into:
            (network / into).write_text(result.stdout)
        said["dry run" if "--dry-run" in arguments else name] = result.stdout
    assert "income     │ number   │ scaled by rank (heavy tail); gaps get the" in said["dry run"]
    assert "1,000 nodes with 15 features; nothing was trained." in said["dry run"]
    verdict = said["evaluate"]
    assert any(words in verdict for words in ("TopoTER is", "TopoTER adds", "may not need"))
    assert "Its training" in verdict
    assert "largest class" in (network / "evaluation.html").read_text(encoding="utf-8")
    assert "[recipes.best]" in (network / "best.toml").read_text()

    found = json.loads(said["label"])
    truth = {row["person"]: row["job"] for row in rows(network / "everyone.csv")}
    labelled = [row for row in rows(network / "all.csv") if row["given"] == "false"]
    assert len(labelled) == found["nodes"] - found["given"] == PEOPLE * 9 // 10
    right = 100 * sum(row["label"] == truth[row["id"]] for row in labelled) / len(labelled)
    assert abs(right - found["accuracy"]) < 3.5 * found["accuracy_error"]
    assert right > found["accuracy_by_embedding"]["raw"] + 5, "neighbours tell more than what is known of one alone"

    assert len({row["cluster"] for row in rows(network / "clusters.csv")}) == 8
    assert len(rows(network / "odd-nodes.csv")) == len(rows(network / "clusters.csv")) == PEOPLE
    assert {row["looks_like"] for row in rows(network / "odd-pairs.csv")} == {"false edge", "missing edge"}
    assert (network / "map.html").stat().st_size > 10_000


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
