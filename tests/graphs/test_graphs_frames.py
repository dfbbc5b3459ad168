"""pandas and polars: features joined by index or id column, never by position; nodes by their own ids in and out."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas
import polars
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from topoter import DataError, PoorEmbeddingWarning, TopoTER, UsageError
from topoter.graphs import TableOptions, as_data

NAMES = [f"u{i}" for i in (7, 3, 5, 1, 4, 9, 2, 6)]
EDGES = [(NAMES[i], NAMES[(i + step) % 8]) for i in range(8) for step in (1, 2)]
FRAME = pandas.DataFrame(EDGES, columns=["source", "target"])
NODES = pandas.DataFrame(
    {"age": [20.0, 31, np.nan, 47, 52, 60, 18, 33], "team": ["a", "b", "a", "b", "a", "b", "a", "b"]}, index=NAMES
)


def small(**parameters: object) -> TopoTER:
    return TopoTER("sgc", epochs=2, out_channels=4, **parameters)


def test_rows_are_joined_by_the_index_whatever_their_order() -> None:
    in_order, shuffled = as_data(FRAME, NODES), as_data(FRAME, NODES.sample(frac=1, random_state=0))
    assert in_order.node_ids == NAMES
    assert in_order.feature_names == ["age", "age is missing", "team=a", "team=b"]
    by_name = {name: row.tolist() for name, row in zip(shuffled.node_ids, shuffled.x.to_dense())}
    assert [by_name[name] for name in NAMES] == in_order.x.to_dense().tolist()
    for edges, graph in ((in_order.edge_index, in_order), (shuffled.edge_index, shuffled)):
        assert [(graph.node_ids[a], graph.node_ids[b]) for a, b in edges.t().tolist()] == EDGES


def test_graphs_that_have_an_order_keep_it() -> None:
    graph = nx.Graph(EDGES)
    data = as_data(graph, NODES.sample(frac=1, random_state=1))
    assert data.node_ids == list(graph.nodes)
    assert [bool(row[-2]) for row in data.x.to_dense()] == [NODES.team[name] == "a" for name in graph.nodes]
    number = {name: place for place, name in enumerate(NAMES)}
    edge_index = torch.tensor([[number[a], number[b]] for a, b in EDGES]).t()
    for ids in (NAMES, None):
        pyg = Data(edge_index=edge_index, num_nodes=8, **({} if ids is None else {"node_ids": ids}))
        frame = NODES if ids else NODES.reset_index(drop=True)
        assert torch.equal(as_data(pyg, frame[::-1]).x.to_dense(), as_data(FRAME, NODES).x.to_dense())


def test_no_row_goes_to_a_node_by_its_position() -> None:
    matrix = scipy.sparse.csr_matrix(np.ones((8, 8)) - np.eye(8))
    with pytest.raises(DataError, match=r"has no row for node '0', nor for 7 others\. Its ids are like 'u7'"):
        as_data(matrix, NODES)
    with pytest.raises(DataError, match=r"node 'u7' is not in x \(ids by its row numbers\)"):
        as_data(FRAME, NODES.reset_index(drop=True))
    twice = NODES.rename(index={"u3": "u7"})
    with pytest.raises(DataError, match=r"x: node id 'u7' stands in its index more than once"):
        as_data(FRAME, twice)


def test_a_column_that_holds_the_ids_is_found_whatever_its_name() -> None:
    expected = as_data(FRAME, NODES)
    for frame in (
        NODES.rename_axis("user").reset_index(),
        NODES.rename_axis("user").reset_index()[["age", "user", "team"]],
    ):
        for x in (frame, polars.from_pandas(frame)):
            data = as_data(FRAME, x)
            assert data.node_ids == NAMES
            assert torch.equal(data.x.to_dense(), expected.x.to_dense())
    with pytest.raises(
        DataError, match=r"is not in x \(ids by its row numbers\)\. Every node of the graph needs a row: give the"
    ):
        as_data(FRAME, NODES.reset_index(drop=True))
    with pytest.raises(DataError, match=r"column 'bio' holds text .*In Python: x\.drop\(columns=\.\.\.\)"):
        as_data(FRAME, pandas.concat([NODES] * 9).assign(bio=[f"word {i}" for i in range(72)]))


def test_an_unknown_category_is_a_warning_in_python() -> None:
    model = small().fit(FRAME, x=NODES)
    with pytest.warns(PoorEmbeddingWarning, match=r"2 rows have categories that were not there at fit \('c'\): zeros"):
        model.transform(FRAME, x=NODES.assign(team=["c", "c", *"ababab"]))


def test_gapped_numbers_and_columns_of_ids() -> None:
    edges = pandas.DataFrame({"u": [10, 30, 70], "v": [30, 70, 10]})
    nodes = pandas.DataFrame({"node": [70, 10, 30], "a": [1.0, -1.0, 0.0], "b": [0.5, -0.5, 0.2]})
    for table in (nodes, polars.from_pandas(nodes), nodes.set_index("node")):
        data = as_data(edges, table)
        assert data.node_ids.tolist() == [70, 10, 30]
        assert data.x[:, 0].tolist() == [1, -1, 0]
    data = as_data(polars.from_pandas(edges), polars.from_pandas(nodes))
    assert data.edge_index.tolist() == [[1, 2, 0], [2, 0, 1]]


def test_embeddings_come_back_under_the_ids() -> None:
    model = small().set_output(transform="pandas").fit(FRAME, x=NODES)
    z = model.transform(FRAME, x=NODES)
    assert model.node_ids_ == NAMES
    assert z.index.tolist() == NAMES
    some = model.transform(FRAME, x=NODES, nodes=["u9", "u3"])
    pandas.testing.assert_frame_equal(some, z.loc[["u9", "u3"]])
    assert model.set_output(transform="polars").transform(FRAME, x=NODES)["id"].to_list() == NAMES
    with pytest.raises(DataError, match="Node 'u8' is not in the graph, whose ids are like 'u7'"):
        model.transform(FRAME, x=NODES, nodes=["u8"])
    with pytest.raises(UsageError, match="nodes= goes with one graph"):
        small(level="graph").fit([nx.path_graph(4)] * 3).transform([nx.path_graph(4)], nodes=[1])


def test_a_saved_model_prepares_new_nodes_as_it_did_its_own(tmp_path) -> None:
    model = small().fit(FRAME, x=NODES)
    model.save(tmp_path / "m.topoter")
    again = TopoTER.load(tmp_path / "m.topoter")
    assert np.array_equal(again.transform(FRAME, x=NODES), model.transform(FRAME, x=NODES))
    # One new node, of a team that was never seen: the others' features stay what they were.
    new = pandas.concat([NODES, pandas.DataFrame({"age": [900.0], "team": ["c"]}, index=["new"])])
    data = as_data(FRAME, new, again.preparation_)
    assert torch.equal(data.x.to_dense()[:8], as_data(FRAME, NODES).x.to_dense())
    assert np.array_equal(again.transform(FRAME, x=new)[:8], model.transform(FRAME, x=NODES))


def test_networkx_attributes_are_prepared_by_the_model(tmp_path) -> None:
    graph = nx.Graph(EDGES)
    nx.set_node_attributes(graph, NODES.to_dict("index"))
    model = small().fit(graph)
    assert list(model.feature_names_in_) == ["age", "age is missing", "team=a", "team=b"]
    part = graph.subgraph(NAMES[:4]).copy()
    nx.set_node_attributes(part, "a", "team")
    z = model.transform(part)
    assert z.shape == (4, 4)


def test_columns_are_chosen_in_python_too() -> None:
    people = NODES.assign(bio=[f"likes {name} and tea" for name in NAMES], city=pandas.Categorical(list("xyxyxyxy")))
    data = as_data(FRAME, people, options=TableOptions(exclude=["age"], text="hash"))
    assert [name for name in data.feature_names if "bio" not in name] == ["team=a", "team=b", "city=x", "city=y"]
    assert as_data(FRAME, people, options=TableOptions(columns=["city"])).feature_names == ["city=x", "city=y"]
    model = small().fit(as_data(FRAME, people, options=TableOptions(exclude=["bio", "age"])))
    assert model.transform(FRAME, x=people).shape == (8, 4), "what the model does not know is not used"


def test_numbers_that_are_ids_are_taken_from_a_column_too_and_never_from_the_rows_in_silence() -> None:
    """As pandas.read_csv gives it: ids 0 to 29 in a column, in another order than the rows."""
    edges = pandas.DataFrame({"source": range(30), "target": [(i + 1) % 30 for i in range(30)]})
    by_index = pandas.DataFrame({"age": np.arange(30.0) ** 2, "rank": range(30)})
    read = by_index.drop(columns="rank").assign(user=range(30)).sample(frac=1, random_state=0).reset_index(drop=True)
    data = as_data(edges, read)
    assert data.feature_names == ["age", "constant"]
    order = np.argsort(data.node_ids)
    expected = as_data(edges, by_index[["age"]])
    assert torch.equal(data.x[order], expected.x[np.argsort(expected.node_ids)])
    with pytest.warns(UserWarning, match="no column that names the nodes"):
        as_data(edges, polars.from_pandas(by_index[["age"]]))


def test_odd_columns_become_numbers_or_an_error_that_names_them() -> None:
    def names(**columns: object) -> list[str]:
        return as_data(FRAME, NODES[["team"]].assign(**columns)).feature_names[:-2]

    assert names(worked=pandas.to_timedelta([1, 2, 3, 4, 5, 6, 7, None], unit="D")) == ["worked", "worked is missing"]
    dates = ["since year", "since month", "since weekday", "since age"]
    assert names(since=pandas.period_range("2020-01", periods=8, freq="M")) == dates
    assert names(k=pandas.array([1, 2, 3, 5, 8, 9, 7, None], dtype="Int64")) == ["k", "k is missing"]
    assert names(b=pandas.array([True, False] * 3 + [None, True], dtype="boolean")) == ["b", "b is missing"]
    assert names(d=[f"{i},5" for i in range(8)], empty=None, same=7) == ["d"]
    data = as_data(FRAME, NODES[["team"]].assign(since=pandas.date_range("2020-01-01", periods=8, tz="Asia/Tokyo")))
    assert data.x.to_dense()[:, data.feature_names.index("since year")].unique().numel() == 1, "the day it was there"
    for values, message in (
        ([1, "a"] * 4, r"column 'm' holds values of several types \(int, str\): make it one, as by .astype\(str\)"),
        (np.ones(8) * 1j, "column 'm' is of type complex128: turn it into numbers, or leave it out"),
    ):
        with pytest.raises(DataError, match=message):
            names(m=values)
    with pytest.raises(DataError, match="two columns called 'age'"):
        as_data(FRAME, pandas.concat([NODES, NODES[["age"]]], axis=1))


def test_many_levels_that_recur_are_categories_and_not_text() -> None:
    edges = pandas.DataFrame({"source": range(3000), "target": [(i + 1) % 3000 for i in range(3000)]})
    towns = pandas.DataFrame({"town": [f"town {i % 300}" for i in range(3000)], "size": np.arange(3000.0)})
    assert sum(name.startswith("town=") for name in as_data(edges, towns).feature_names) == 101
    with pytest.raises(DataError, match="column 'town' holds text"):
        as_data(edges, towns.assign(town=[f"town {i % 1500}" for i in range(3000)]))


def test_what_is_nearly_right_is_taken_or_told() -> None:
    numbered = {name: 10 * place for place, name in enumerate(NAMES)}
    gaps = FRAME.replace(numbered)
    expected = as_data(gaps, NODES.rename(index=numbered))
    joined = as_data(gaps, NODES.set_axis([float(numbered[name]) for name in NAMES]))
    assert np.array_equal(joined.node_ids, expected.node_ids)
    assert as_data(FRAME, NODES.age).feature_names == ["age", "age is missing", "constant"]
    with pytest.raises(UsageError, match=r"read_graph\(path"):
        as_data("edges.csv")
    with pytest.raises(UsageError, match=r"Got 'nodes.csv' instead: read it first"):
        as_data(FRAME, "nodes.csv")
    model = small().fit(FRAME, x=NODES)
    with pytest.raises(UsageError, match=r"Got 'u7' instead: give \['u7'\]"):
        model.transform(FRAME, x=NODES, nodes="u7")
