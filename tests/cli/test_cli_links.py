"""Links and snapshots on the command line: real sub-processes, exit codes, the text of each error."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from own_files import write_edges, write_graph
from sub_processes import fails, topoter

from topoter.datasets import block_model


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A user's graph with names for nodes, and one over time."""
    folder = tmp_path_factory.mktemp("files")
    data = block_model(num_nodes=120, num_blocks=3, mean_degree=8.0, num_features=6, seed=0, within=0.95, noise=0.3)
    edges = write_graph(folder, data)
    timed = [f"n{a},n{b},{time}\n" for time in (1, 2, 3) for a, b in edges[time * 40 : time * 40 + 100]]
    (folder / "timed.csv").write_text("source,target,time\n" + "".join(timed))
    days = folder / "days"
    days.mkdir()
    for time in (1, 2, 10):
        write_edges(days / f"day{time}.csv", edges[time * 10 : time * 10 + 100])
    fit = topoter(
        "fit", "edges.csv", "--features", "features.csv", "-o", "m.topoter", "--epochs", 5, "--channels", 16, cwd=folder
    )
    assert fit.returncode == 0, fit.stderr
    return folder


def test_links_are_ranked_with_the_users_ids(files):
    arguments = ["links", "m.topoter", "edges.csv", "--features", "features.csv", "--top", 25]
    result = topoter(*arguments, "-o", "links.csv", cwd=files)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "links.csv"
    assert "AUC" in result.stderr
    with (files / "links.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 25
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    known = set((files / "edges.csv").read_text().split())
    for row in rows:
        assert f"{row['source']},{row['target']}" not in known
        assert f"{row['target']},{row['source']}" not in known
    content = json.loads(topoter(*arguments, "-o", "again.csv", "--json", "--quiet", cwd=files).stdout)
    assert content["pairs"] == 25
    assert 50 < content["auc"] <= 100
    assert (files / "again.csv").read_bytes() == (files / "links.csv").read_bytes()


def test_links_that_cannot_be_ranked_say_why(files):
    (files / "small.csv").write_text("source,target\na,b\nb,c\n")
    assert "2 edges: too few" in fails(1, "links", "m.topoter", "small.csv", "-q", cwd=files)
    assert "greater than or equal to 1" in fails(2, "links", "m.topoter", "edges.csv", "--top", 0, "-q", cwd=files)
    assert ".csv. Got x.txt" in fails(2, "links", "m.topoter", "edges.csv", "-o", "x.txt", "-q", cwd=files)
    assert "fitted on the features" in fails(1, "links", "m.topoter", "edges.csv", "-q", cwd=files)
    assert not (files / "links.csv.tmp").exists()


@pytest.mark.parametrize("source", ["timed.csv", "days"])
def test_a_graph_over_time_is_fitted_and_embeds_other_graphs(files, source):
    result = topoter("fit", "--snapshots", source, "-o", "time.topoter", "--epochs", 4, "--json", cwd=files)
    assert result.returncode == 0, result.stderr
    assert "3 snapshots" in result.stderr
    assert "2 transitions" in result.stderr
    content = json.loads(result.stdout)
    assert (content["epochs"], content["edges"]) == (4, 300)
    embedded = topoter("embed", "time.topoter", "edges.csv", "-o", "z.csv", "--json", cwd=files)
    assert embedded.returncode == 0, embedded.stderr
    assert json.loads(embedded.stdout)["channels"] == 256


def test_bad_snapshots_say_why(files):
    (files / "one.csv").write_text("source,target,time\na,b,1\nb,c,1\n")
    (files / "apart.csv").write_text("source,target,time\na,b,1\nb,c,1\nx,y,2\n")
    assert "two snapshots at least" in fails(1, "fit", "--snapshots", "one.csv", "-q", cwd=files)
    assert "two successive snapshots" in fails(1, "fit", "--snapshots", "apart.csv", "-q", cwd=files)
    assert "which column is the time" in fails(2, "fit", "--snapshots", "edges.csv", "-q", cwd=files)
    assert "There is no file none.csv" in fails(1, "fit", "--snapshots", "none.csv", "-q", cwd=files)
    assert "Give one graph to fit on" in fails(2, "fit", "-q", cwd=files)
    assert "Give one graph to fit on" in fails(2, "fit", "edges.csv", "--snapshots", "timed.csv", "-q", cwd=files)
    assert "--features goes with an edge list" in fails(
        2, "fit", "--snapshots", "days", "--features", "features.csv", "-q", cwd=files
    )


def test_events_are_binned_with_features_and_links_of_timed_edges_are_explained(files):
    """From a stream of events to missing links: a question, bins, features, a ranking for one node and of a list."""
    lines = (files / "edges.csv").read_text().splitlines()[1:]
    stamps = [f"2024-03-{1 + day:02d}T{hour:02d}:15:00" for day in range(10) for hour in range(24)]
    events = [f"{line},{stamps[place % len(stamps)]}" for place, line in enumerate(lines)]
    (files / "events.csv").write_text("\n".join(["source,target,when", *events]) + "\n")
    arguments = ["fit", "--snapshots", "events.csv", "--time-column", "when", "--features", "features.csv"]
    line = fails(2, *arguments, "-q", cwd=files)
    assert "240 different times" in line
    assert "--every 1d gives 10" in line
    assert "Got '1x'" in fails(2, *arguments, "--every", "1x", "-q", cwd=files)
    fitted = topoter(*arguments, "--every", "1d", "-o", "events.topoter", "--epochs", 2, "--json", cwd=files)
    assert fitted.returncode == 0, fitted.stderr
    assert "10 snapshots of 120 nodes, 9 transitions" in fitted.stderr
    links = ["links", "events.topoter", "events.csv", "--time-column", "when", "--features", "features.csv"]
    first = lines[0].split(",")[0]
    ranked = topoter(*links, "--for", first, "--top", 5, "-o", "one.csv", cwd=files)
    assert ranked.returncode == 0, ranked.stderr
    with (files / "one.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 5
    assert {row["source"] for row in rows} == {first}
    around = {first: set(), **{row["target"]: set() for row in rows}}
    for line in lines:
        for node, other in (line.split(","), line.split(",")[::-1]):
            if node in around:
                around[node].add(other)
    for row in rows:
        shared = around[first] & around[row["target"]]
        assert int(row["shared_neighbours"]) == len(shared)
        assert set(filter(None, row["such_as"].split("; "))) <= shared
    wanted = [*rows[:2], dict(zip(("source", "target"), lines[0].split(",")))]  # the last is an edge already
    listed = "".join(f"{row['target']},{row['source']}\n" for row in wanted)
    (files / "wanted.csv").write_text(f"source,target\n{listed}")
    again = topoter(*links, "--candidates", "wanted.csv", "-o", "two.csv", cwd=files)
    assert again.returncode == 0, again.stderr
    assert "Of 3 pairs 2 are ranked" in again.stderr
    with (files / "two.csv").open(newline="") as stream:
        scores = [float(row["score"]) for row in csv.DictReader(stream)]
    assert scores == pytest.approx([float(row["score"]) for row in rows[:2]], rel=1e-4)
    assert "Node 'nobody' is not in the graph" in fails(1, *links, "--for", "nobody", "-q", cwd=files)
    (files / "wanted.csv").write_text(f"source,target\n{first},nobody\n")
    line = fails(1, *links, "--candidates", "wanted.csv", "-q", cwd=files)
    assert "wanted.csv: Node 'nobody' is not in the graph" in line


def test_links_are_evaluated_and_reproduced(real_data, tmp_path):
    arguments = ["--dataset", "sparrow-social", "--seeds", 2, "--data-root", real_data, "--quiet"]
    content = json.loads(topoter("evaluate", "temporal", "--epochs", 2, *arguments, "--json").stdout)
    assert (content["task"], content["metric"], content["protocol"]) == ("temporal", "AUC", "held-out-pairs")
    assert {"mean", "std", "ap_mean", "ap_std"} <= set(content)
    line = fails(1, "evaluate", "temporal", *arguments, "--protocol", "next-snapshot")
    assert "three at least" in line
    link = ["evaluate", "link", "--method", "adamic-adar", "--dataset", "cora", "--data-root", real_data, "--seeds", 1]
    content = json.loads(topoter(*link, "--json", "--quiet").stdout)
    assert (content["task"], content["metric"]) == ("link", "AUC")
    assert 50 < content["ap_mean"] < 100
    again = ["reproduce", "link-prediction", "--methods", "feature-cosine,adamic-adar", "--datasets", "cora"]
    shown = topoter(*again, "--seeds", 2, "--data-root", real_data, "--out", tmp_path, "--quiet")
    assert shown.returncode == 0, shown.stderr
    # The paper has neither method, so there is no column for it.
    assert "| method | AUC, ours | AP, ours |" in shown.stdout
    assert len((tmp_path / "link-prediction.jsonl").read_text().splitlines()) == 4
    stored = topoter(*again, "--seeds", 2, "--stored", "--out", tmp_path, "--quiet")
    assert stored.stdout == shown.stdout


def test_search_knows_its_tasks():
    assert "Unknown task 'lnk'. Did you mean 'link'?" in fails(2, "search", "cora", "--task", "lnk")
