"""scikit-learn's conventions, objectives of all kinds through the estimator, and models of version 0.1."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted
from torch import nn
from torch_geometric.data import Data

from topoter import NodeEmbedding, TopoTER
from topoter.datasets import block_model
from topoter.errors import DataError, UsageError
from topoter.levels import LEVELS, defaults
from topoter.pretext.objectives import SUMS
from topoter.training.checkpoint import load_checkpoint, save_checkpoint

pytestmark = pytest.mark.usefixtures("one_thread")

GRAPH = block_model(40, 4, 4, 8, 0)
GRAPHS = [block_model(12 + 2 * number, 2, 2, 3, number) for number in range(5)]
DATA = Path(__file__).parent / "data"


def small(**options) -> TopoTER:
    return TopoTER(**{"out_channels": 6, "epochs": 3, **options})


# ---- parameters --------------------------------------------------------------------------------------------


def test_the_constructor_stores_and_nothing_else():
    given = {name: object() for name in inspect.signature(TopoTER).parameters}
    model = TopoTER(**given)
    assert vars(model) == given
    assert all(value is given[name] for name, value in model.get_params(deep=False).items())


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_set_later_is_the_level_given(level):
    other = next(name for name in LEVELS if name != level)
    graph = GRAPH if level == "node" else GRAPHS
    later = TopoTER(level=other, epochs=2).set_params(level=level)
    given = TopoTER(level=level, epochs=2)
    assert later.get_params() == given.get_params()
    assert later.effective_params() == given.effective_params()
    default = defaults(level, None, None)
    assert all(given.effective_params()[name] == value for name, value in default.items() if name != "epochs")
    np.testing.assert_array_equal(later.fit_transform(graph), given.fit_transform(graph))
    assert later.history_ == given.history_


def test_fitting_does_not_change_the_parameters_and_a_clone_fits_alike():
    model = small(objective=[("paper", 1.0), ("mutual-information", 0.1)], encoder_parameters={"order": 1})
    before = model.get_params()
    z = model.fit_transform(GRAPH)
    assert model.get_params() == before
    copy = clone(model)
    assert not hasattr(copy, "model_")
    np.testing.assert_array_equal(copy.fit_transform(GRAPH), z)


def test_what_is_not_fitted_says_so_as_scikit_learn_does(tmp_path):
    for ask in (
        lambda model: model.transform(GRAPH),
        lambda model: model.save(tmp_path / "m"),
        lambda model: model.get_feature_names_out(),
        check_is_fitted,
    ):
        with pytest.raises(NotFittedError):
            ask(small())
    with pytest.raises(NotFittedError, match="This NodeEmbedding is not fitted yet"):
        NodeEmbedding(GRAPH).transform([0])
    check_is_fitted(small().fit(GRAPH))


def test_the_seed_may_be_none_or_a_random_state():
    drawn = [small(random_state=None).fit(GRAPH) for _ in range(2)]
    assert drawn[0].random_state_ != drawn[1].random_state_
    again = small(random_state=drawn[0].random_state_).fit(GRAPH)
    np.testing.assert_array_equal(again.transform(GRAPH), drawn[0].transform(GRAPH))
    stream = np.random.RandomState(3)
    first, second = (small(random_state=stream).fit(GRAPH) for _ in range(2))
    assert first.random_state_ != second.random_state_, "the stream goes on"
    repeated = small(random_state=np.random.RandomState(3)).fit(GRAPH)
    np.testing.assert_array_equal(repeated.transform(GRAPH), first.transform(GRAPH))
    assert small(random_state=7).fit(GRAPH).random_state_ == 7
    with pytest.raises(UsageError, match="'random_state' parameter of TopoTER must be a whole number, at least 0"):
        small(random_state=-1).fit(GRAPH)


def test_a_saved_model_knows_the_seed_that_was_drawn(tmp_path):
    model = small(random_state=None).fit(GRAPH)
    model.save(tmp_path / "m.topoter")
    assert TopoTER.load(tmp_path / "m.topoter").random_state == model.random_state_


# ---- output ------------------------------------------------------------------------------------------------


def named() -> Data:
    graph = GRAPH.clone()
    graph.node_ids = [f"n{number}" for number in range(40)]
    return graph


def test_columns_have_the_names_that_files_give_them():
    model = small().fit(GRAPH)
    assert model.get_feature_names_out().tolist() == ["z0", "z1", "z2", "z3", "z4", "z5"]
    step = NodeEmbedding(GRAPH, small()).fit([0])
    assert step.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


def test_pandas_frames_have_the_ids_as_their_index():
    pandas = pytest.importorskip("pandas")
    z = small().fit_transform(named())
    assert isinstance(z, np.ndarray)
    model = small()
    assert model.set_output(transform="pandas") is model
    for frame in (model.fit_transform(named()), model.transform(named()), clone(model).fit_transform(named())):
        assert isinstance(frame, pandas.DataFrame)
        assert list(frame.columns) == [f"z{column}" for column in range(6)]
        assert list(frame.index) == [f"n{number}" for number in range(40)]
        np.testing.assert_array_equal(frame.to_numpy(), z)
    assert list(model.transform(GRAPH).index) == list(range(40)), "without ids the nodes' numbers"
    assert isinstance(model.set_output(transform="default").transform(GRAPH), np.ndarray)
    graphs = small(level="graph").set_output(transform="pandas").fit_transform(GRAPHS)
    assert graphs.shape == (5, 128)


def test_the_setting_for_all_of_scikit_learn_holds_too():
    pandas = pytest.importorskip("pandas")
    model = small().fit(GRAPH)
    with config_context(transform_output="pandas"):
        assert isinstance(model.transform(GRAPH), pandas.DataFrame)
        assert isinstance(clone(model).set_output(transform="default").fit_transform(GRAPH), np.ndarray)
        frame = NodeEmbedding(GRAPH, small()).fit_transform([3, 1])
        assert isinstance(frame, pandas.DataFrame)
        np.testing.assert_array_equal(frame.to_numpy(), model.transform(GRAPH).to_numpy()[[3, 1]])
    assert isinstance(model.transform(GRAPH), np.ndarray)


def test_a_pipeline_passes_the_setting_on():
    pandas = pytest.importorskip("pandas")
    pipeline = make_pipeline(small(), StandardScaler()).set_output(transform="pandas")
    scaled = pipeline.fit_transform(GRAPH)
    assert isinstance(scaled, pandas.DataFrame)
    assert list(scaled.columns) == list(pipeline.get_feature_names_out()) == [f"z{column}" for column in range(6)]


@pytest.mark.skipif(importlib.util.find_spec("polars") is None, reason="polars is not installed")
def test_polars_frames_have_the_ids_as_a_column():
    frame = small(encoder="sgc").set_output(transform="polars").fit_transform(named())
    assert frame.columns == ["id", *(f"z{column}" for column in range(6))]
    assert frame["id"].to_list()[:2] == ["n0", "n1"]


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match="The output 'polars' needs the package polars: pip install polars"):
        small(encoder="sgc").set_output(transform="polars").fit_transform(GRAPH)


def test_an_unknown_container_is_named():
    with pytest.raises(ValueError, match=r"Unknown container 'panda'\. Did you mean 'pandas'\?"):
        small().set_output(transform="panda")


# ---- objectives --------------------------------------------------------------------------------------------


class Smooth(nn.Module):
    """An objective with a weight of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, h, h_t, transformation):
        moved = (h_t - h).square().mean()
        return (1 - self.scale * moved).square(), {"moved": moved, "scale": self.scale}


@pytest.mark.parametrize(
    "objective",
    ["paper", "full", "types-from-pair", "mutual-information", [("paper", 1.0), ("mutual-information", 0.1)]],
    ids=str,
)
def test_named_objectives_are_learned_saved_and_loaded(tmp_path, objective):
    model = small(objective=objective).fit(GRAPH)
    assert all(np.isfinite(record.loss) for record in model.history_)
    model.save(tmp_path / "m.topoter")
    loaded = TopoTER.load(tmp_path / "m.topoter")
    np.testing.assert_array_equal(loaded.transform(GRAPH), model.transform(GRAPH))
    assert loaded.history_ == model.history_
    np.testing.assert_array_equal(loaded.fit_transform(GRAPH), model.transform(GRAPH))


def test_the_paper_is_its_one_term_and_a_weight_of_one_changes_no_bit():
    z = small(encoder="sgc").fit_transform(GRAPH)
    for objective in ("types-from-change", [("paper", 1)], [("types-from-change", 1.0)]):
        np.testing.assert_array_equal(small(objective=objective).fit_transform(GRAPH), z)


def test_the_history_shows_whatever_an_objective_reports(tmp_path):
    model = small(objective=[("full", 1.0), (Smooth(), 0.5)]).fit(GRAPH)
    shown = model.history_[-1].metrics
    assert {"prior_entropy", "accuracy_add", "pair_accuracy_add", "agreement", "moved", "scale"} <= set(shown)
    terms = [*SUMS["full"], "Smooth"]
    assert sum(shown[f"{name}_loss"] for name in terms) == pytest.approx(model.history_[-1].loss, rel=1e-5)
    assert len(model.history_[-1].accuracy) == 4
    model.save(tmp_path / "m.topoter")
    assert TopoTER.load(tmp_path / "m.topoter").history_ == model.history_
    alone = small(encoder="sgc", objective="mutual-information").fit(GRAPH).history_[-1]
    assert set(alone.metrics) == {"agreement"}
    assert np.isnan(alone.prior_entropy)
    assert alone.accuracy == ()


def test_an_objective_of_ones_own_is_trained_and_left_as_it_was(tmp_path):
    own = Smooth()
    model = small(objective=own, learning_rate=0.1, epochs=5).fit(GRAPH)
    assert float(own.scale.detach()) == 1.0
    assert model.history_[-1].metrics["scale"] != 1.0, "its weight is learned"
    path = tmp_path / "m.topoter"
    model.save(path)
    assert all(name.startswith("encoder.") for name in load_checkpoint(path, "model")[0]), "code stays outside"
    for _ in range(2):  # and again, from what was loaded
        loaded = TopoTER.load(path)
        np.testing.assert_array_equal(loaded.transform(GRAPH), model.transform(GRAPH))
        path = tmp_path / "again.topoter"
        loaded.save(path)


def test_what_cannot_be_an_objective_is_told_before_the_graph_is_looked_at():
    with pytest.raises(UsageError, match=r"^Unknown objective 'papper'\. Did you mean 'paper'\?$"):
        small(objective="papper").check_parameters()
    with pytest.raises(UsageError, match=r"given with weights of 0 or more\. Got -1 instead"):
        small(objective=[("paper", -1)]).fit(GRAPH)


# ---- models of version 0.1 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_a_model_of_version_0_1_gives_the_embedding_it_gave(level, tmp_path):
    """Made by topoter 0.1 on these graphs; beside each model stands what it returned."""
    path = DATA / f"model-0.1-{level}.topoter"
    model = TopoTER.load(path)
    graph = block_model(20, 2, 3, 4, 0) if level == "node" else [block_model(10 + n, 2, 2, 4, n) for n in range(4)]
    expected = np.loadtxt(DATA / f"model-0.1-{level}.csv", delimiter=",", dtype=np.float32, ndmin=2)
    np.testing.assert_allclose(model.transform(graph), expected, rtol=1e-5, atol=1e-6)
    assert (model.level, model.objective) == (level, "paper")
    assert len(model.history_) == 3
    assert all(len(record.accuracy) == 4 for record in model.history_)
    assert model.history_[0].prior_entropy > 0
    model.save(tmp_path / "new.topoter")
    np.testing.assert_array_equal(TopoTER.load(tmp_path / "new.topoter").transform(graph), model.transform(graph))
    # The loss sees differences of representations only: the last bias, added to every node, is moved by rounding alone.
    nodes = np.array([each.num_nodes for each in graph]) if level == "graph" else np.ones(graph.num_nodes)
    again, before = (z - np.outer(nodes, nodes @ z / (nodes @ nodes)) for z in (model.fit_transform(graph), expected))
    np.testing.assert_allclose(again, before, rtol=1e-3, atol=1e-4)


def test_a_fit_that_version_0_1_left_half_done_says_what_to_do(tmp_path, monkeypatch):
    path = tmp_path / "half.topoter"
    monkeypatch.setattr("topoter.training.checkpoint.FORMAT_VERSION", 1)
    save_checkpoint(path, "training", {"model.weight": torch.zeros(1)}, {"history": []})
    monkeypatch.undo()
    with pytest.raises(DataError, match=r"left by an interrupted fit of topoter 0\.1, .*run without --resume"):
        load_checkpoint(path, "training")
