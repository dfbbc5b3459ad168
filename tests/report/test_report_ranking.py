"""The ranking of all systems: ranks and critical differences by hand, gaps and limits, and its place on the page."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from results_samples import record

from topoter.experiments import experiment
from topoter.experiments.limits import Stopped
from topoter.experiments.store import Store
from topoter.report.found import Found, Results, read_results
from topoter.report.ranking import critical_difference, overall_table, rank_charts, ranking_of
from topoter.report.results import page_of

OURS = Path(__file__).parents[2] / "results"
# Accuracy by method on two datasets; wl has a recipe only, topoter two.
SCORES = {
    "wl": (80.0, 70.0),
    "infograph": (85.0, 60.0),
    "random-init": (85.0, 65.0),
    "topoter": (90.0, 50.0),  # `best`; `paper` is five lower
}


def kept(folder: Path, scores: dict[str, tuple[float | None, ...]] = SCORES) -> Results:
    store = Store.read(folder)
    for place, dataset in enumerate(("mutag", "ptc_mr")):
        for run in experiment("graph-classification").plan([dataset], list(scores), 2):
            value = scores[run.recipe.method][place]
            lower = 5.0 if (run.recipe.method, run.recipe.name) == ("topoter", "paper") else 0.0
            if value == 0:
                store.add(msgspec.structs.replace(record(run, {}, {}), stopped=Stopped("time", 24)))
            elif value is not None:
                store.add(record(run, {"accuracy": value - lower}, {}))
    return read_results(folder)


def graph_table(results: Results) -> Found:
    found = results.of("graph-classification")
    assert found is not None
    return found


def test_mean_ranks_by_hand(tmp_path: Path) -> None:
    ranking = ranking_of(graph_table(kept(tmp_path)), lambda group: group.method)
    assert ranking is not None
    assert ranking.datasets == ["mutag", "ptc_mr"]
    assert ranking.mean_ranks == {"random-init": 2.25, "topoter": 2.5, "wl": 2.5, "infograph": 2.75}
    shares = ranking.shares
    np.testing.assert_allclose(shares["topoter"], [100, 0])
    np.testing.assert_allclose(shares["infograph"], [50, 100 / 3])
    by_row = ranking_of(graph_table(kept(tmp_path)), lambda group: group.method_name)
    assert by_row is not None
    assert {"topoter (best)", "topoter (paper)"} <= set(by_row.systems)


def test_a_limit_comes_last_and_a_gap_is_left_out(tmp_path: Path) -> None:
    ranking = ranking_of(
        graph_table(kept(tmp_path, SCORES | {"sp": (0, 99.0), "gk": (None, 10.0)})), lambda group: group.method
    )
    assert ranking is not None
    assert ranking.left_out == ["gk"]
    assert ranking.ranks[:, ranking.systems.index("sp")].tolist() == [5, 1]


def test_a_dataset_with_few_runs_does_not_leave_the_others_out(tmp_path: Path) -> None:
    kept(tmp_path)
    store = Store.read(tmp_path)
    for run in experiment("graph-classification").plan(["imdb-binary"], ["wl"], 2):
        store.add(record(run, {"accuracy": 70.0}, {}))
    ranking = ranking_of(graph_table(read_results(tmp_path)), lambda group: group.method)
    assert ranking is not None
    assert (ranking.datasets, ranking.left_out) == (["mutag", "ptc_mr"], [])


@pytest.mark.parametrize(("systems", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_is_that_of_the_published_table(systems: int, q: float) -> None:
    """Demšar (2006), table 5: critical values of the two-tailed Nemenyi test at 5 %."""
    found = critical_difference(systems, datasets=14)
    assert found == pytest.approx(q * np.sqrt(systems * (systems + 1) / (6 * 14)), rel=5e-4)


def test_the_page_shows_the_ranking_of_every_table_that_has_one(tmp_path: Path) -> None:
    results = kept(tmp_path)
    (chart,) = rank_charts(results)
    assert chart.categories[0] == "random-init"
    assert "Critical difference" in chart.caption
    table = overall_table(results)
    assert table is not None
    assert list(table.columns) == ["method", "all tasks", "datasets", "Graph classification"]
    assert table.cells[0][0].text == "random-init"
    assert "Ranking of all systems" in page_of(results, maps=False).render()


def test_our_own_results_can_be_ranked_and_little_is_not(tmp_path: Path) -> None:
    own = read_results(OURS)
    assert len(rank_charts(own)) >= 3
    table = overall_table(own)
    assert table is not None
    (topoter,) = [row for row in table.cells if row[0].text == "topoter"]
    assert int(topoter[2].text) >= 12  # datasets
    few = kept(tmp_path, {"wl": SCORES["wl"], "infograph": SCORES["infograph"]})
    assert rank_charts(few) == []
    assert overall_table(few) is None
    assert "Ranking of all systems" not in page_of(few, maps=False).render()
