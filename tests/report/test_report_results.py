"""The report on a folder of results: what it reads, how it judges, what its tables and its Markdown say."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from results_samples import IMAGE, keep, links, nodes, write_json, write_sample

from topoter.datasets import block_model
from topoter.errors import DataError, TopoterError
from topoter.experiments import EXPERIMENTS
from topoter.report.results import markdown_summary, read_remarks, read_results, write_page
from topoter.report.results.curves import MOST_POINTS, curves_of, prior_entropy, thinned
from topoter.report.results.maps import draw_maps, has_map, make_map, map_path
from topoter.report.results.provenance import absent_rows, commands, facts_of
from topoter.report.results.standing import counts, headline, standings
from topoter.report.results.tables import tables_of
from topoter.report.tables import Mark


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("results"))


def column(table, name: str) -> dict[str, object]:
    """A table's column by the names of its rows."""
    place = list(table.columns).index(name)
    return {row[0]: row[place] for row in table.rows}


def test_runs_are_found_by_row_and_the_rest_is_named(sample: Path) -> None:
    results = read_results(sample)
    assert [found.name for found in results.found] == [name for name in EXPERIMENTS if (sample / name).is_dir()]
    assert "layers" in results.missing
    found = results.of("node-classification")
    assert found is not None
    assert found.seeds == 2
    assert found.datasets == ["cora"]
    assert {dataset for *_, dataset in found.absent} == {"citeseer", "pubmed"}
    assert absent_rows(found) == ["citeseer (all rows)", "pubmed (all rows)"]
    assert not found.left_out
    extra = results.of("graph-classification")
    assert extra is not None
    assert IMAGE in extra.datasets


def test_a_run_of_other_parameters_is_left_out_and_said(tmp_path: Path) -> None:
    (run, *_) = keep(tmp_path, "node-classification", nodes, ["cora"], ["topoter"])
    path = run.path(tmp_path)
    stored = json.loads(path.read_text())
    stored["parameters"]["order"] = 99
    path.write_text(json.dumps(stored))
    results = read_results(tmp_path)
    assert results.found[0].left_out == [path]
    write_page(results, read_remarks(tmp_path), tmp_path / "r.html")
    assert path.name in (tmp_path / "r.html").read_text()


def test_every_published_number_is_judged_by_the_stated_rule(sample: Path) -> None:
    items = standings(read_results(sample))
    cora = {item.row_name: item for item in items if (item.experiment, item.dataset) == ("node-classification", "cora")}
    assert cora["best"].mark is Mark.BETTER
    assert cora["paper"].mark is Mark.WORSE
    assert cora["paper, selects on test"].mark is Mark.WITHIN
    assert [name for name, item in cora.items() if item.headline] == ["best"]
    pubmed = [item for item in items if (item.experiment, item.dataset) == ("link-prediction", "pubmed")]
    assert {item.word for item in pubmed} == {"not run"}
    auc = next(
        item for item in items if (item.experiment, item.dataset, item.metric) == ("link-prediction", "cora", "AUC")
    )
    assert auc.published["mean"] == 93.4
    assert auc.mark is Mark.WITHIN
    counted = counts([item for item in items if item.headline])
    colonies = {f"ant-colony{number}" for number in range(1, 7)}  # one published number, held against their mean
    assert sum(counted.values()) == len(
        {(i.experiment, i.dataset, i.metric) for i in items if i.dataset not in colonies}
    )
    assert "ant colonies, mean of six" in {item.dataset for item in items if item.headline}
    assert f"{counted['better']} better, {counted['within one deviation']} within one deviation" in headline(items)


def test_the_table_has_seeds_restarts_marks_and_the_best(sample: Path) -> None:
    found = read_results(sample).of("node-classification")
    assert found is not None
    (table,) = tables_of(found)
    assert list(table.columns) == ["method", "accuracy, ours", "accuracy, ours, selects on test", "accuracy, paper"]
    ours = column(table, "accuracy, ours")
    assert ours["topoter (best)"].text == "84.6 ± 0.1"
    assert ours["topoter (best)"].strong
    assert ours["topoter (best)"].mark is Mark.BETTER
    assert ours["propagated"].mark is None  # the paper has no such row
    assert column(table, "accuracy, ours, selects on test")["topoter (paper)"].text == (
        "83.7 ± 0.2 (1 encoder, 3 restarts)"
    )
    assert column(table, "accuracy, paper")["topoter (best)"] == "83.7 ± 0.3"


def test_fewer_seeds_are_said(tmp_path: Path) -> None:
    keep(tmp_path, "node-classification", nodes, ["cora"], seeds=3)
    for seed in (1, 2):
        (tmp_path / "node-classification" / "cora" / f"gae.paper.validation.{seed}.json").unlink()
    found = read_results(tmp_path).found[0]
    (table,) = tables_of(found)
    assert column(table, "accuracy, ours")["gae"].text == "70.0 (1 seed)"
    assert "over 3 seeds" in table.note
    assert "1 in 2 rows" in facts_of(found)["seeds"]  # gae, and the one encoder of the authors' protocol


def test_a_study_has_its_values_by_column_and_its_own_chart(sample: Path) -> None:
    found = read_results(sample).of("order")
    assert found is not None
    assert found.varied == ["order"]
    (table,) = tables_of(found)
    assert list(table.columns) == ["method", "1", "2", "3", "4", "5"]
    assert column(table, "3")["topoter (best)"].text == "76.5 ± 0.7"
    assert found.experiment.charts is not None
    ((title, drawn),) = found.experiment.charts(found.runs)
    assert title == "cora"
    assert 'class="band"' in drawn
    assert curves_of(found) == []


def test_what_a_killed_process_left_behind_is_passed_over(sample: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sample, tmp_path / "results")
    whole = read_results(folder).of("order")
    half = folder / "order" / "cora" / ".topoter.best.validation.order=1.0.12345678.json"
    half.write_text('{"experiment": ', encoding="utf-8")
    assert read_results(folder).of("order") == whole


def test_long_curves_are_thinned_and_only_fitting_priors_are_drawn() -> None:
    epochs, losses = thinned([float(value) for value in range(5000)])
    assert len(epochs) == MOST_POINTS
    assert (epochs[0], epochs[-1], losses[-1]) == (1.0, 5000.0, 4999.0)
    assert thinned([0.5]) == ([1.0], [0.5])
    assert prior_entropy({"loss": 1.0, "prior_entropy": 1.3}) == 1.3
    assert prior_entropy({"prior_entropy": 1.3}) is None  # losses of links, after a pre-training


def test_how_a_number_was_obtained(sample: Path) -> None:
    results = read_results(sample)
    found = results.of("graph-classification")
    assert found is not None
    own, other = commands(found, sample)
    assert own == f"topoter reproduce graph-classification --seeds 1 --out {sample}"
    assert other.endswith(f"--datasets '{IMAGE}'")
    assert commands(found, Path("results"))[0] == "topoter reproduce graph-classification --seeds 1"
    facts = facts_of(found)
    assert facts["runs"] == "6"
    assert facts["CPU time"] == "9.0 s"
    assert facts["git commit"] == "abc1234"


def test_markdown_has_the_same_and_nothing_breaks_out(sample: Path) -> None:
    text = markdown_summary(read_results(sample), read_remarks(sample))
    assert text.startswith("# Results\n\nGenerated by `topoter report")
    assert "| cora | paper | 80.1 ± 0.1 | 2 | 83.7 ± 0.3 | −3.6 | worse ▼ | Too few epochs" in text
    assert "topoter reproduce node-classification --seeds 2" in text
    assert "topoter reproduce layers" in text
    assert "Said of the table a \\| b." in text
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert "<" not in outside.replace("&lt;", "")
    for block in re.findall(r"(?:^\|.*\n)+", outside, flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block
    assert text == markdown_summary(read_results(sample), read_remarks(sample))


def test_the_same_results_give_the_same_page(sample: Path, tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        write_page(read_results(sample), read_remarks(sample), tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[nodes]\nall = 'x'", "'nodes', which is no experiment"),
        ("[order]\ncora = 3", "order.cora must be a text or a table of texts. Got 3"),
        ("order = 3", "order must be a text or a table of texts. Got 3"),
        ("[order.cora]\nbest = 3", "order.cora.best must be a text. Got 3"),
        ("order", "is not TOML"),
    ],
)
def test_wrong_remarks_are_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "remarks.toml").write_text(text)
    with pytest.raises(DataError, match=re.escape(said)):
        read_remarks(tmp_path)


def test_remarks_by_table_dataset_and_recipe(tmp_path: Path) -> None:
    (tmp_path / "remarks.toml").write_text("order = 'a'\n[layers]\ncora = 'b'\n[layers.pubmed]\nbest = 'c'\n")
    remarks = read_remarks(tmp_path)
    assert remarks.of_experiment("order") == "a"
    assert remarks.of_number("layers", "cora", "best") == "b"
    assert remarks.of_number("layers", "pubmed", "best") == "c"
    assert remarks.of_number("layers", "pubmed", "paper") == ""
    assert remarks.of_table("layers") == [("cora", "b"), ("pubmed, best", "c")]


@pytest.mark.parametrize(("file", "content"), [("maps/cora.json", []), ("search/a.json", {}), ("bench.json", {"a": 1})])
def test_a_file_of_another_shape_is_named(tmp_path: Path, file: str, content: object) -> None:
    keep(tmp_path, "link-prediction", links, ["cora"], ["topoter"])
    write_json(tmp_path / file, content)
    with pytest.raises(DataError, match=f"{Path(file).name} does not hold"):
        write_page(read_results(tmp_path), read_remarks(tmp_path), tmp_path / "r.html")


def test_a_run_without_scores_is_named(tmp_path: Path) -> None:
    keep(tmp_path, "link-prediction", lambda run: {}, ["cora"], ["topoter"])
    with pytest.raises(DataError, match="does not hold"):
        read_results(tmp_path)


def test_no_runs_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TopoterError, match="topoter reproduce node-classification --out"):
        read_results(tmp_path)
    with pytest.raises(TopoterError, match="There is no folder"):
        read_results(tmp_path / "none")


@pytest.mark.usefixtures("one_thread")
def test_a_map_is_made_once_for_a_recipe(tmp_path: Path) -> None:
    data = block_model(num_nodes=60, num_blocks=3, mean_degree=6.0, num_features=20, seed=0)
    seen = []
    assert not has_map(tmp_path, "cora")
    make_map(tmp_path, "cora", data, lambda record: seen.append(record.epoch))
    assert seen  # of the trained encoder
    assert has_map(tmp_path, "cora")
    ((dataset, drawing),) = draw_maps(tmp_path)
    assert dataset == "cora"
    assert "before training" in drawing
    assert "after training" in drawing
    stored = json.loads(map_path(tmp_path, "cora").read_text())
    before, after = stored["maps"].values()
    assert len(before) == len(after) == 60
    assert before != after
    stored["parameters"]["order"] = 99
    write_json(map_path(tmp_path, "cora"), stored)
    assert not has_map(tmp_path, "cora")
    assert "other parameters than today" not in drawing
    assert "other parameters than today" in draw_maps(tmp_path)[0][1]
