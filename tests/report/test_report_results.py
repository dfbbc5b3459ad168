"""The report on a folder of results: what it reads, how it judges, what its tables and its Markdown say."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from results_samples import IMAGE, keep, links, nodes, records_of, write_json, write_sample

from topoter.errors import DataError, TopoterError
from topoter.experiments import EXPERIMENTS
from topoter.experiments.store import Store
from topoter.report.background import search_tables
from topoter.report.figures import MOST_POINTS, figures_of, prior_entropy, thinned, training_curves
from topoter.report.found import read_results
from topoter.report.remarks import read_remarks
from topoter.report.results import markdown_of, page_of
from topoter.report.standing import counts, headline, standings
from topoter.report.tables import Mark

OURS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("results"))


def test_runs_are_found_by_row_and_the_rest_is_named(sample: Path) -> None:
    results = read_results(sample)
    assert [found.name for found in results.found] == [n for n in EXPERIMENTS if (sample / f"{n}.jsonl").is_file()]
    assert "layers" in results.missing
    found = results.of("node-classification")
    assert found is not None
    assert found.seeds == 2
    assert found.datasets == ["cora"]
    others = ["citeseer", "pubmed", "computers", "physics"]
    assert {dataset for *_, dataset in found.absent} == set(others)
    assert found.absent_rows() == [f"{dataset} (all rows)" for dataset in others]
    assert not found.left_out
    extra = results.of("graph-classification")
    assert extra is not None
    assert IMAGE in extra.datasets


def test_a_run_of_other_parameters_is_left_out_and_said(tmp_path: Path) -> None:
    first, *others = records_of("node-classification", nodes, ["cora"], ["topoter"])
    other = msgspec.structs.replace(first, parameters={**first.parameters, "order": 99})
    keep(tmp_path, [other, *others])
    results = read_results(tmp_path)
    assert results.found[0].left_out == [other]
    assert "today&#39;s recipes: 1 runs (cora, topoter (paper))" in page_of(results).render()


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
    assert f"{counted['better']} better; {counted['better, but not by training']} better, but not" in headline(items)


def test_a_study_has_its_own_chart_and_no_training_curves(sample: Path) -> None:
    found = read_results(sample).of("order")
    assert found is not None
    ((title, (chart,)),) = figures_of(found.experiment, found.records)
    assert title == "cora"
    assert [line.name for line in chart.lines] == ["topoter", "propagated"]
    assert chart.lines[0].x == (1, 2, 3, 4, 5)
    assert chart.lines[0].y[2] == 76.5
    assert 'class="band"' in chart.__html__()
    assert "Study: order" not in page_of(read_results(sample)).render().split('id="training-curves"')[1]


def test_long_curves_are_thinned_and_only_fitting_priors_are_drawn(sample: Path) -> None:
    epochs, losses = thinned([float(value) for value in range(5000)])
    assert len(epochs) == MOST_POINTS
    assert (epochs[0], epochs[-1], losses[-1]) == (1.0, 5000.0, 4999.0)
    assert thinned([0.5]) == ([1.0], [0.5])
    results = read_results(sample)
    for name, expected in (("node-classification", 1.304), ("link-prediction", None)):  # losses of links
        found = results.of(name)
        assert found is not None
        ours = [group for group in found.groups if group.method == "topoter"]
        assert prior_entropy(ours[0].records[0]) == expected
        charts = training_curves(found.groups, results.store.losses(name))
        assert len(charts) == len(ours)


def test_how_a_number_was_obtained(sample: Path) -> None:
    found = read_results(sample).of("graph-classification")
    assert found is not None
    own, other = found.commands(sample)
    assert own == f"topoter reproduce graph-classification --seeds 1 --out {sample}"
    assert other.endswith(f"--datasets '{IMAGE}'")
    assert found.commands(Path("results"))[0] == "topoter reproduce graph-classification --seeds 1"
    facts = found.facts()
    assert facts["runs"] == "8"
    assert facts["CPU time"] == "12 s"
    assert facts["git commit"] == "abc1234"


def test_markdown_has_the_same_and_nothing_breaks_out(sample: Path) -> None:
    text = markdown_of(read_results(sample))
    assert text.startswith("# Results\n\nGenerated by `topoter report")
    assert "| cora | paper | 80.1 ± 0.1 | 2 | 83.7 ± 0.3 | −3.6 ▼ | Too few epochs" in text
    assert "△ better, but not by training" in text
    assert "no worse than ours" in text  # the rule
    assert "topoter reproduce node-classification --seeds 2" in text
    assert "topoter reproduce layers" in text
    assert "Said of the table a \\| b." in text
    assert "\n\n\n" not in text
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert "<" not in outside.replace("&lt;", "")
    for block in re.findall(r"(?:^\|.*\n)+", outside, flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block
    assert text == markdown_of(read_results(sample))


def test_the_same_results_give_the_same_page_and_maps_can_be_left_out(sample: Path) -> None:
    one, two = (page_of(read_results(sample)).render() for _ in range(2))
    assert one == two
    assert "Made with other parameters than today" in one
    assert "<canvas" not in page_of(read_results(sample), maps=False).render()


def test_a_map_that_is_missing_is_said(sample: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sample, tmp_path / "results")
    (folder / "maps" / "cora.json").unlink()
    assert "There is no map of cora yet" in page_of(read_results(folder)).render()


def test_of_settings_that_differ_in_epochs_the_best_is_shown(sample: Path) -> None:
    (table,) = search_tables(sample)
    assert [[cell.text for cell in row] for row in table.cells] == [
        ["1", "topoter", "82.60", "order 3"],
        ["2", "topoter", "81.60", "order 2"],
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[nodes]\nall = 'x'", "'nodes', which is no experiment"),
        ("[order]\ncora = 3", "must be a text or a table of texts: Expected `str | object`, got `int`"),
        ("order = 3", "must be a text or a table of texts: Expected `str | object`, got `int`"),
        ("[order.cora]\nbest = 3", "must be a text or a table of texts: Expected `str`, got `int`"),
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


@pytest.mark.parametrize(
    ("file", "content"), [("maps/cora.json", []), ("maps/cora.json", {}), ("bench.json", {"a": 1})]
)
def test_a_file_of_another_shape_is_named(tmp_path: Path, file: str, content: object) -> None:
    keep(tmp_path, records_of("link-prediction", links, ["cora"], ["topoter"]))
    write_json(tmp_path / file, content)
    with pytest.raises(DataError, match=f"{Path(file).name} does not hold"):
        page_of(read_results(tmp_path)).render()


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    keep(tmp_path, records_of("link-prediction", links, ["cora"], ["topoter"]))
    with (tmp_path / "link-prediction.jsonl").open("a") as file:
        file.write(json.dumps({"experiment": "link-prediction"}) + "\n")
    with pytest.raises(DataError, match=r"link-prediction.jsonl, line \d+"):
        read_results(tmp_path)


def test_details_of_another_shape_are_named(tmp_path: Path) -> None:
    scores = {"error": 50, "formula error": 120, "formula error of the true dA": 80, "accuracy": 64}
    keep(tmp_path, records_of("equivariance", lambda run: (scores, {}), ["cora"]))
    with pytest.raises(DataError, match=r"A run in .*equivariance.jsonl does not hold"):
        page_of(read_results(tmp_path))


def test_no_runs_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TopoterError, match="topoter reproduce node-classification --out"):
        read_results(tmp_path)
    with pytest.raises(TopoterError, match="There is no folder"):
        read_results(tmp_path / "none")


def test_nothing_here_trains_or_loads_data() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (OURS.parent / "src/topoter/report").glob("*.py"))
    imported = set(re.findall(r"(?:from|import) topoter\.(\w+)", source))
    assert imported <= {"errors", "experiments", "graphs", "report"}
    assert Store.read(OURS).records
