"""Generated files for every reader, good and bad, and valid files that were damaged.

A reader may refuse, in one line; what it accepts must be what a slow, plain reader finds in the same bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import random
import re
import struct
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import scipy.sparse
import slow_readers as slow
import torch
from campaign import case, time_limit
from commands import new_folder
from hypothesis import HealthCheck, Phase, given, seed, settings
from slow_readers import Graph, Refused
from torch_geometric.data import Data

from topoter.errors import TopoterError

EACH = 50  # inputs of an attempt
ACCEPTED: dict[str, list[int]] = {}  # by reader: how many inputs were accepted, of how many


def answered(reader: str, call: Callable[[], Any]) -> Any:
    """What a reader makes of an input, or None if it says in one line why it does not; anything else is a defect."""
    counts = ACCEPTED.setdefault(reader, [0, 0])
    counts[1] += 1
    with time_limit(), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = call()
        except TopoterError as error:
            said = str(error)
            assert said.strip(), "an error without a message"
            assert "\n" not in said, f"more than a line: {said!r}"
            assert len(said) < 2000, f"a message of {len(said)} characters"
            return None
    counts[0] += 1
    return found


def explore(number: int, strategy: st.SearchStrategy[Any], check: Callable[[Any], None]) -> None:
    """Try some inputs of a strategy; all randomness comes from the number."""

    @seed(number)
    @settings(
        max_examples=EACH,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(strategy)
    def run(content: Any) -> None:
        check(content)

    run()


def seen(data: Any) -> Graph:
    """A PyG graph as the slow readers tell it."""
    ids = data.node_ids.tolist() if hasattr(data.node_ids, "tolist") else list(data.node_ids)
    source, target = data.edge_index.tolist()
    weight = data.edge_weight.tolist() if data.get("edge_weight") is not None else [None] * len(source)
    time = data.time.tolist() if data.get("time") is not None else [None] * len(source)
    return Graph(ids, [(ids[a], ids[b], w, t) for a, b, w, t in zip(source, target, weight, time)])


def agree(reader: str, read: Callable[[], Any], slowly: Callable[[], Graph]) -> None:
    """Both readers see the same graph, or topoter's refuses; what breaks a rule must be refused."""
    data = answered(reader, read)
    if data is None:
        return
    from topoter.graphs import check_graph

    check_graph(data)
    try:
        wanted = slowly()
    except Refused as error:
        raise AssertionError(f"accepted, though there is a rule against it: {error}") from None
    found = seen(data)
    assert found.nodes == wanted.nodes, (found.nodes, wanted.nodes)
    assert found.edges == wanted.edges, (found.edges, wanted.edges)


# ---- text --------------------------------------------------------------------------------------------------------

_INTEGERS = st.integers(0, 8).map(str)
_IDS = st.one_of(
    _INTEGERS,
    st.sampled_from(["a", "b", "é", "n1", "007", "-3", "+4", "1.0", "1e3", "NA", "null", "nan", "True", "2024-01-01"]),
    st.sampled_from(
        ["", " ", "9223372036854775807", "9223372036854775808", "A b", "<b>", "\u202e", "=1+1", "#x", "'", "0x1"]
    ),
    st.text(
        st.characters(exclude_characters='"\r\n\t,;| #', exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), max_size=4
    ),
)
_NUMBERS = st.one_of(
    st.integers(0, 9).map(str),
    st.floats(0, 100, width=16).map(str),
    st.sampled_from(["1e-3", "2.", ".5", "+1"]),
)
_BAD_NUMBERS = st.one_of(_NUMBERS, st.sampled_from(["-1", "nan", "inf", "", "x", "1e400", "-0", "1_0", "1e-400", "３"]))


@st.composite
def edge_texts(draw: st.DrawFn, timed: bool = False) -> tuple[bytes, dict[str, Any]]:
    """An edge list in text, and how it is to be read."""
    delimiter = draw(st.sampled_from(",;|\t ,"))
    ids = draw(st.sampled_from([_INTEGERS, _IDS, st.sampled_from(["a", "b", "c", "d"])]))
    numbers = draw(st.sampled_from([_NUMBERS, _NUMBERS, _BAD_NUMBERS]))
    extra = draw(st.integers(0, 2)) if not timed else draw(st.integers(1, 2))
    rows = draw(st.lists(st.tuples(ids, ids, *[numbers] * extra).map(list), min_size=1, max_size=8))
    if draw(st.integers(0, 9)) == 0:
        rows[draw(st.integers(0, len(rows) - 1))].append("1")  # ragged
    header = draw(st.booleans())
    names = draw(st.sampled_from([["source", "target"], ["u", "v"], ["from", "to"], ["Src", "dst"], ["x", "y"]]))
    names = [
        *names,
        *draw(st.sampled_from([["weight", "time"], ["w", "t"], ["time", "weight"], ["k", "time"]]))[:extra],
    ]
    if header:
        rows.insert(0, list(names))
    quote = delimiter != " " and draw(st.booleans())
    lines = [delimiter.join(f'"{field}"' if quote else field for field in row) for row in rows]
    for _ in range(draw(st.integers(0, 2))):
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(["# said", "", "#", "  "])))
    ends = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    text = ends.join(lines) + draw(st.sampled_from([ends, ""]))
    content = (b"\xef\xbb\xbf" if draw(st.integers(0, 9)) == 0 else b"") + text.encode()
    options = {"delimiter": delimiter, "header": header, "drop_bad": draw(st.booleans())}
    if timed:
        options["time_column"] = names[2] if header else "3"
    return content, options


def _slow_edges(content: bytes, options: dict[str, Any]) -> Callable[[], Graph]:
    named = {"delimiter": options["delimiter"], "header": options["header"], "drop": options["drop_bad"]}
    return lambda: slow.edge_list(content, **named, time_column=options.get("time_column"))


@case("bad input", "edge lists", 2, 60, EACH)
def edge_lists(number: int) -> None:
    from topoter.graphs import read_graph

    path = new_folder() / "edges.csv"

    def check(made: tuple[bytes, dict[str, Any]]) -> None:
        content, options = made
        path.write_bytes(gzip.compress(content) if len(content) % 7 == 0 else content)
        agree("edge lists", lambda: read_graph(path, **options)[0], _slow_edges(content, options))

    explore(number, edge_texts(), check)


@case("bad input", "edge lists, nothing said of them", 1, 40, EACH)
def edge_lists_found_out(number: int) -> None:
    """What is found out about delimiter and header is told in the notes, and then holds."""
    from topoter.graphs import read_graph
    from topoter.graphs.sniffing import DELIMITERS

    path = new_folder() / "edges.csv"

    def check(made: tuple[bytes, dict[str, Any]]) -> None:
        content, _ = made
        path.write_bytes(content)
        found = answered("edge lists, nothing said of them", lambda: read_graph(path))
        if found is None:
            return
        data, notes = found
        said = re.search(r": (\w+) separated, \d+ columns, with(out)? ", notes[0])
        assert said is not None, notes
        options = {"delimiter": DELIMITERS[said[1]], "header": said[2] is None, "drop_bad": False}
        agree("edge lists, as found out", lambda: data, _slow_edges(content, options))

    explore(number, edge_texts(), check)


@case("bad input", "snapshots", 1, 30, EACH)
def snapshots(number: int) -> None:
    from topoter.graphs import read_snapshots

    folder = new_folder()

    def check(made: tuple[bytes, dict[str, Any]]) -> None:
        content, options = made
        path = folder / "timed.csv"
        path.write_bytes(content)
        found = answered("snapshots", lambda: read_snapshots(path, **options))
        if found is None:
            return
        wanted = _slow_edges(content, options)()
        times, ids = found
        assert list(ids) == wanted.nodes
        assert [time for time, _ in times] == sorted({edge[3] for edge in wanted.edges})
        for time, edge_index in times:
            own = [(ids[a], ids[b]) for a, b in edge_index.t().tolist()]
            assert own == [edge[:2] for edge in wanted.edges if edge[3] == time]

    explore(number, edge_texts(timed=True), check)


@st.composite
def node_texts(draw: st.DrawFn) -> tuple[bytes, list[list[str]]]:
    """A table with ids and columns of numbers, flags or words under a header, and its fields."""
    delimiter = draw(st.sampled_from(",;\t"))
    kinds = draw(
        st.lists(st.sampled_from([_NUMBERS, _BAD_NUMBERS, _IDS, st.sampled_from("01")]), min_size=1, max_size=3)
    )
    ids = draw(st.sampled_from([st.integers(0, 20).map(str), _IDS]))
    rows = draw(st.lists(st.tuples(ids, *kinds).map(list), min_size=1, max_size=8))
    names = ["id", *(f"c{place}" for place in range(len(kinds)))]
    fields = [names, *rows]
    return "".join(delimiter.join(row) + "\n" for row in fields).encode(), fields


@case("bad input", "tables of nodes", 1, 40, EACH)
def tables(number: int) -> None:
    from topoter.graphs.node_tables import read_node_table

    path = new_folder() / "nodes.csv"

    def check(made: tuple[bytes, list[list[str]]]) -> None:
        content, fields = made
        path.write_bytes(content)
        found = answered("tables of nodes", lambda: read_node_table(path, id_column="id"))
        if found is None:
            return
        rows = [row for row in fields[1:] if not row[0].startswith("#") and "".join(row).strip()]
        (ids,) = slow.ids_of([row[0] for row in rows])
        assert len(set(ids)) == len(ids), "an id stands there twice"
        assert None not in ids, "a row without an id"
        assert found.ids.to_pylist() == ids
        for place, (name, column) in enumerate(found.columns.items(), 1):
            assert name == fields[0][place]
            for value, word in zip(column.to_pylist(), (row[place] for row in rows)):
                _same_value(value, word)

    explore(number, node_texts(), check)


def _same_value(value: Any, word: str) -> None:
    """What Arrow makes of a field is what is written there."""
    if value is None:
        assert word.strip() in slow.NULLS, (value, word)
    elif isinstance(value, bool):
        assert word.strip().lower() in ("true", "false", "0", "1"), (value, word)
    elif isinstance(value, int):
        assert int(word, 16 if "x" in word.lower() else 10) == value, (value, word)
    elif isinstance(value, float):
        assert float(word) == value or math.isnan(value), (value, word)
    elif isinstance(value, str):
        assert value == word, (value, word)


@case("bad input", "features beside a graph", 1, 30, EACH)
def features(number: int) -> None:
    """Whatever columns become, they are finite, and every node has its own row."""
    from topoter.graphs import read_graph

    folder = new_folder()

    def check(made: tuple[bytes, list[list[str]]]) -> None:
        content, fields = made
        (folder / "nodes.csv").write_bytes(content)
        ids = [row[0].strip() for row in fields[1:]]
        ring = "".join(f'"{a}","{b}"\n' for a, b in zip(ids, ids[1:] + ids[:1]))
        (folder / "edges.csv").write_text("source,target\n" + ring)

        def read() -> Any:
            return read_graph(
                folder / "edges.csv", features=folder / "nodes.csv", header=True, delimiter=",", text="hash"
            )[0]

        data = answered("features beside a graph", read)
        if data is not None:
            assert bool(data.x.to_dense().isfinite().all())
            assert data.x.shape == (len(ids), len(data.feature_names))
            assert [str(value) for value in data.node_ids] == ids

    explore(number, node_texts(), check)


@case("bad input", "tables of any bytes", 1, 20, EACH)
def any_bytes(number: int) -> None:
    from topoter.graphs import read_graph, read_snapshots
    from topoter.graphs.node_tables import read_node_table

    path = new_folder() / "any.csv"
    piece = st.sampled_from(
        [b"a", b"1", b",", b"\n", b'"', b" ", b"\t", b"#", b"\0", b"\xff", b"\r", b"-", b".", b"e", b";"]
    )

    def check(pieces: list[bytes]) -> None:
        path.write_bytes(b"".join(pieces))
        for read in (read_graph, read_snapshots, read_node_table):
            answered("tables of any bytes", lambda read=read: read(path))

    explore(number, st.lists(piece, max_size=40), check)


# ---- arrays and graphs of libraries --------------------------------------------------------------------------------

_VALUES = st.sampled_from([1.0, 1.0, 0.5, 2.0, 0.0, -1.0, math.nan, math.inf, 1e300])


@st.composite
def matrices(draw: st.DrawFn) -> bytes:
    size = draw(st.integers(1, 6))
    dtype = draw(st.sampled_from(["float64", "float32", "int64", "int8", "bool", "uint16"]))
    shape = (size, size + (draw(st.integers(0, 9)) == 0))
    places = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), unique=True, max_size=10))
    values = [draw(_VALUES if dtype.startswith("float") else st.sampled_from([1, 1, 2, 0])) for _ in places]
    rows, columns = zip(*places) if places else ((), ())
    with np.errstate(over="ignore"):
        matrix = scipy.sparse.coo_matrix((np.array(values).astype(dtype), (rows, columns)), shape=shape)
    file = io.BytesIO()
    scipy.sparse.save_npz(
        file, matrix.asformat(draw(st.sampled_from(["coo", "csr", "csc"]))), compressed=draw(st.booleans())
    )
    return file.getvalue()


@case("bad input", "npz", 1, 30, EACH)
def npz(number: int) -> None:
    from topoter.graphs import read_graph

    path = new_folder() / "matrix.npz"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        agree("npz", lambda: read_graph(path)[0], lambda: slow.npz(content))

    explore(number, matrices(), check)


@st.composite
def arrays(draw: st.DrawFn) -> bytes:
    dtype = draw(st.sampled_from(["<f4", "<f8", ">f8", "<f2", "<i4", "|u1", "|b1", "<U3", "<c8", "<M8[s]", ">i8"]))
    shape = draw(st.sampled_from([(3, 2), (1, 1), (4,), (0, 2), (3, 0), (2, 2, 2), ()]))
    values = draw(st.lists(st.sampled_from([0, 1, 2, 3.5]), min_size=math.prod(shape), max_size=math.prod(shape)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = np.array(values).astype("f8").astype(dtype if dtype[1] != "M" else "i8").astype(dtype).reshape(shape)
    if draw(st.integers(0, 5)) == 0 and dtype[1] == "f" and array.size:
        array.flat[0] = draw(st.sampled_from([math.nan, math.inf]))
    file = io.BytesIO()
    np.save(file, np.asfortranarray(array) if draw(st.booleans()) else array)
    return file.getvalue()


@case("bad input", "npy", 1, 30, EACH)
def npy(number: int) -> None:
    from topoter.graphs.features import read_features

    path = new_folder() / "features.npy"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        found = answered("npy", lambda: read_features(path))
        if found is not None:
            shape, values = slow.npy(content)
            assert tuple(found.x.shape) == shape
            assert found.x.flatten().tolist() == [slow.as_float32(float(value)) for value in values]

    explore(number, arrays(), check)


_NAMES = st.sampled_from(["a", "b", "c", "n1", "7", "-2", "07", "ü", "a b", "&lt;b&gt;", "x y"])


@st.composite
def graphml_texts(draw: st.DrawFn) -> bytes:
    nodes = draw(st.lists(_NAMES, min_size=1, max_size=5, unique=True))
    edges = draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), unique_by=frozenset, max_size=6))
    weights = draw(st.sampled_from([None, _NUMBERS, _BAD_NUMBERS]))
    said = []
    for a, b in edges:
        data = f'<data key="w">{draw(weights)}</data>' if weights is not None and draw(st.booleans()) else ""
        said.append(f'<edge source="{a}" target="{b}">{data}</edge>')
    body = "".join(f'<node id="{node}"/>' for node in nodes) + "".join(said)
    return (
        '<?xml version="1.0" encoding="UTF-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<key id="w" for="edge" attr.name="weight" attr.type="double"/>'
        f'<graph edgedefault="{draw(st.sampled_from(["directed", "undirected"]))}">{body}</graph></graphml>'
    ).encode()


@case("bad input", "GraphML", 1, 25, EACH)
def graphml(number: int) -> None:
    _of_networkx(number, "GraphML", "graph.graphml", graphml_texts(), slow.graphml)


@st.composite
def gml_texts(draw: st.DrawFn) -> bytes:
    nodes = draw(st.lists(st.sampled_from(["a", "b", "c", "n1", "x_y", "Z"]), min_size=1, max_size=5, unique=True))
    places = range(len(nodes))
    pairs = st.tuples(st.sampled_from(places), st.sampled_from(places))
    edges = draw(st.lists(pairs, unique_by=frozenset, max_size=6))
    weights = draw(st.sampled_from([None, st.sampled_from(["1.0", "0.5", "2", "-1.0", "NAN", "+INF"])]))
    text = "".join(f'node [ id {place} label "{name}" ]\n' for place, name in enumerate(nodes))
    for a, b in edges:
        text += f"edge [ source {a} target {b}{f' weight {draw(weights)}' if weights is not None else ''} ]\n"
    return f"graph [\n{draw(st.sampled_from(['', 'directed 1']))}\n{text}]\n".encode()


@case("bad input", "GML", 1, 25, EACH)
def gml(number: int) -> None:
    _of_networkx(number, "GML", "graph.gml", gml_texts(), slow.gml)


def _of_networkx(
    number: int, reader: str, name: str, strategy: st.SearchStrategy[bytes], slowly: Callable[[bytes], Graph]
) -> None:
    """NetworkX tells the edges of an undirected graph node by node: their order and direction are its own."""
    from topoter.graphs import read_graph

    path = new_folder() / name

    def check(content: bytes) -> None:
        path.write_bytes(content)
        data = answered(reader, lambda: read_graph(path)[0])
        if data is None:
            return
        try:
            wanted = slowly(content)
        except Refused as error:
            raise AssertionError(f"accepted: {error}") from None
        found = seen(data)
        assert [str(node) for node in found.nodes] == wanted.nodes
        kinds = [
            sorted((tuple(sorted((str(a), str(b)))), w if w is None else slow.as_float32(w)) for a, b, w, _ in edges)
            for edges in (found.edges, wanted.edges)
        ]
        assert kinds[0] == kinds[1]

    explore(number, strategy, check)


@st.composite
def pyg_graphs(draw: st.DrawFn) -> dict[str, Any]:
    nodes = draw(st.integers(0, 5))
    ends = st.integers(-1 if draw(st.integers(0, 9)) == 0 else 0, max(0, nodes - 1))
    edges = draw(st.lists(st.tuples(ends, ends), max_size=6))
    content: dict[str, Any] = {"edge_index": torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()}
    if draw(st.booleans()):
        kind = draw(st.sampled_from([torch.float32, torch.float64, torch.long, torch.bool]))
        content["x"] = torch.ones(nodes, draw(st.integers(0, 3))).to(kind)
        if draw(st.integers(0, 5)) == 0 and content["x"].numel() and kind.is_floating_point:
            content["x"][0, 0] = math.nan
    else:
        content["num_nodes"] = nodes
    if draw(st.booleans()):
        content["edge_weight"] = torch.tensor([draw(_VALUES) for _ in edges], dtype=torch.float32)
    if draw(st.integers(0, 9)) == 0:
        content[draw(st.sampled_from(["x", "edge_index", "edge_weight"]))] = draw(
            st.sampled_from([torch.ones(3), "text", [1, 2], torch.ones(2, 3), None])
        )
    if draw(st.booleans()) and nodes:
        content["node_ids"] = draw(st.sampled_from([[f"n{i}" for i in range(nodes)], torch.arange(nodes) + 7]))
    return content


@case("bad input", ".pt", 1, 25, EACH)
def pt(number: int) -> None:
    from topoter.graphs import read_graph

    path = new_folder() / "graph.pt"

    def check(content: dict[str, Any]) -> None:
        torch.save(Data(**content), path)
        data = answered(".pt", lambda: read_graph(path)[0])
        if data is None:
            return
        ids = content.get("node_ids")
        ids = ids.tolist() if isinstance(ids, torch.Tensor) else ids or list(range(data.num_nodes))
        found = seen(data)
        weights = content["edge_weight"].tolist() if content.get("edge_weight") is not None else None
        pairs = content["edge_index"].t().tolist()
        wanted = [(ids[a], ids[b], weights[place] if weights else None, None) for place, (a, b) in enumerate(pairs)]
        assert found.nodes == ids
        assert found.edges == wanted

    explore(number, pyg_graphs(), check)


# ---- sets of graphs, recipes, the store ----------------------------------------------------------------------------


@st.composite
def tu_texts(draw: st.DrawFn) -> dict[str, bytes]:
    graphs = draw(st.integers(1, 4))
    indicator = sorted(draw(st.lists(st.integers(1, graphs), min_size=1, max_size=8)))
    if draw(st.integers(0, 9)) == 0:
        indicator = indicator[::-1]
    nodes = len(indicator) + (draw(st.integers(0, 9)) == 0)
    pairs = [(a, b) for a in range(1, nodes + 1) for b in range(1, nodes + 1)]
    inside = [pair for pair in pairs if len({indicator[min(end, len(indicator)) - 1] for end in pair}) == 1]
    edges = draw(st.lists(st.sampled_from(inside if draw(st.integers(0, 9)) else pairs), min_size=1, max_size=8))
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    last = draw(st.sampled_from([end, ""]))
    texts = {
        "A": [f"{a}, {b}" for a, b in edges],
        "graph_indicator": [str(value) for value in indicator],
        "graph_labels": [str(draw(st.sampled_from([-1, 0, 1, 5]))) for _ in range(graphs)],
    }
    if draw(st.booleans()):
        count = len(indicator) + (draw(st.integers(0, 9)) == 0)
        texts["node_labels"] = [str(draw(st.integers(-1, 3))) for _ in range(count)]
    if draw(st.integers(0, 9)) == 0:
        part = draw(st.sampled_from(sorted(texts)))
        texts[part][draw(st.integers(0, len(texts[part]) - 1))] = draw(
            st.sampled_from(["", "x", "1.5", "1,2,3", "99999999999999999999"])
        )
    return {name: (end.join(lines) + last).encode() for name, lines in texts.items()}


@case("bad input", "TU folders and zips", 1, 30, EACH)
def tu(number: int) -> None:
    from topoter.datasets.tu import read_tu

    folder = new_folder()

    def check(texts: dict[str, bytes]) -> None:
        for file in folder.iterdir():
            file.unlink()
        zipped = folder / "OWN.zip" if sum(map(len, texts.values())) % 2 else None
        if zipped is not None:
            with zipfile.ZipFile(zipped, "w") as archive:
                for name, text in texts.items():
                    archive.writestr(f"OWN/OWN_{name}.txt", text)
        else:
            for name, text in texts.items():
                (folder / f"OWN_{name}.txt").write_bytes(text)
        found = answered("TU folders and zips", lambda: read_tu(zipped or folder, "OWN"))
        if found is None:
            return
        try:
            wanted = slow.tu(texts)
        except Refused as error:
            raise AssertionError(f"accepted: {error}") from None
        assert len(found) == len(wanted)
        for graph, (nodes, edges, label, labels) in zip(found, wanted):
            assert graph.num_nodes == nodes
            assert [tuple(edge) for edge in graph.edge_index.t().tolist()] == sorted(edges)
            assert graph.y.tolist() == [label]
            if labels is not None:
                assert graph.x.argmax(1).tolist() == labels
                assert (graph.x.sum(1) == 1).all()

    explore(number, tu_texts(), check)


@case("bad input", "recipes", 1, 20, EACH)
def recipes(number: int) -> None:
    import sys

    from topoter.experiments.recipes import read_recipe

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    path = new_folder() / "recipe.toml"
    line = st.sampled_from(
        [
            *(
                "[recipes.best]",
                "[recipes]",
                "order = 2",
                "order = -1",
                'encoder = "sgc"',
                'a = "',
                "= 3",
                "x = [1, 2]",
            ),
            *("best = 3", "recipes = 4", "order = 2024-01-01", "\u202e = 1", "[[recipes]]", "# said", "rate = 1e-3"),
        ]
    )

    def check(lines: list[str]) -> None:
        path.write_text("\n".join(lines), encoding="utf-8")
        found = answered("recipes", lambda: read_recipe(path))
        if found is not None:
            assert found == tomllib.loads("\n".join(lines))["recipes"]["best"]

    explore(
        number,
        st.lists(line, max_size=6).map(lambda lines: ["[recipes.best]", *lines] if len(lines) % 2 else lines),
        check,
    )


@cache
def _record_line() -> bytes:
    results = Path(__file__).parents[2] / "results" / "node-classification.jsonl"
    return results.read_bytes().splitlines()[0]


@case("bad input", "the store", 1, 20, EACH)
def store(number: int) -> None:
    from topoter.experiments.store import Store

    folder = new_folder()
    path = folder / "node-classification.jsonl"
    changed = st.tuples(
        st.sampled_from(["seed", "dataset", "scores", "seconds", "experiment", "point", "protocol", "new", "versions"]),
        st.sampled_from([1, 2, "x", None, {}, [], {"a": [1.0]}, 1e400, -1, "node-classification", True]),
    )

    def check(lines: list[Any]) -> None:
        rows = []
        for change in lines:
            row = json.loads(_record_line())
            row.update([change])
            rows.append(json.dumps(row))
        path.write_text("".join(f"{row}\n" for row in rows))
        found = answered("the store", lambda: Store.read(folder).records)
        if found is not None:
            keys = ("dataset", "method", "seed", "scores", "parameters", "protocol")
            read = [[getattr(record, key) for key in keys] for record in found]
            assert read == [[json.loads(row)[key] for key in keys] for row in rows]

    explore(number, st.lists(changed, max_size=3), check)


@case("bad input", "embeddings", 1, 20, EACH)
def embeddings(number: int) -> None:
    """What was written comes back; what someone else wrote comes back as written, or is refused."""
    from topoter.graphs import read_embeddings, write_embeddings

    folder = new_folder()
    ids = st.lists(_IDS.filter(lambda word: word.strip() == word != ""), min_size=1, max_size=5, unique=True)

    def check(made: tuple[list[str], str, float]) -> None:
        names, suffix, value = made
        path = folder / f"z{suffix}"
        z = np.full((len(names), 3), value, dtype=np.float32)
        if answered("embeddings", lambda: write_embeddings(path, z, names) or True):
            read = answered("embeddings", lambda: read_embeddings(path))
            if read is not None:
                assert [str(value) for value in read[0]] == names, (list(read[0]), names)
                np.testing.assert_array_equal(read[1], z)

    explore(number, st.tuples(ids, st.sampled_from([".csv", ".parquet", ".npy"]), st.floats(width=32)), check)


# ---- damage --------------------------------------------------------------------------------------------------------


def damaged(content: bytes, random_: random.Random) -> bytes:
    """A file after a bit flip, a cut, a doubled or a missing section, or with a huge number in its head."""
    if not content:
        return content
    start, end = sorted(random_.randrange(len(content) + 1) for _ in range(2))
    kind = random_.randrange(6)
    if kind == 0:
        changed = bytearray(content)
        for _ in range(random_.randint(1, 4)):
            changed[random_.randrange(len(changed))] ^= 1 << random_.randrange(8)
        return bytes(changed)
    if kind == 1:
        return content[:start]
    if kind == 2:
        return content[:end] + content[start:end] + content[end:]
    if kind == 3:
        return content[:start] + content[end:]
    if kind == 4:  # digits of some size
        huge = random_.choice([b"99999999999", b"9223372036854775807", b"-1", b"0", b"1e308"])
        found = list(re.finditer(rb"\d+", content))
        if found:
            place = random_.choice(found)
            return content[: place.start()] + huge + content[place.end() :]
    place = random_.randrange(max(1, len(content) - 8))  # a size in binary
    return content[:place] + struct.pack("<Q", random_.choice([2**63 - 1, 2**40, 2**64 - 1, 0])) + content[place + 8 :]


@cache
def valid_files() -> Path:
    """A valid file of every kind."""
    import networkx
    import pyarrow as pa
    import pyarrow.parquet as pq

    from topoter import TopoTER
    from topoter.graphs import write_embeddings
    from topoter.graphs.importing import import_graph

    folder = new_folder()
    (folder / "edges.csv").write_text(
        "source,target,weight,time\n" + "".join(f"n{i},n{(i * 3 + 1) % 9},{i},{i % 3}\n" for i in range(9))
    )
    (folder / "edges.csv.gz").write_bytes(gzip.compress((folder / "edges.csv").read_bytes()))
    (folder / "nodes.csv").write_text("id,a,b,c\n" + "".join(f"n{i},{i},{i % 2},w{i % 3}\n" for i in range(9)))
    pq.write_table(
        pa.table({"source": [1, 2, 3], "target": [2, 3, 1], "weight": [1.0, 2.0, 0.5]}), folder / "edges.parquet"
    )
    scipy.sparse.save_npz(folder / "matrix.npz", scipy.sparse.csr_matrix(np.eye(4) + np.eye(4, k=1)))
    np.save(folder / "features.npy", np.arange(12.0).reshape(4, 3))
    graph = networkx.path_graph(5)
    networkx.write_graphml(graph, folder / "graph.graphml")
    networkx.write_gml(graph, folder / "graph.gml")
    torch.save(Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]])), folder / "graph.pt")
    TopoTER(encoder="sgc", order=1, out_channels=4, epochs=1).fit(graph).save(folder / "model.topoter")
    with zipfile.ZipFile(folder / "OWN.zip", "w") as archive:
        texts = {"A": "1, 2\n2, 1\n3, 4\n", "graph_indicator": "1\n1\n2\n2\n", "graph_labels": "1\n0\n"}
        for name, text in texts.items():
            archive.writestr(f"OWN/OWN_{name}.txt", text)
    (folder / "recipe.toml").write_text('[recipes.best]\norder = 2\nencoder = "sgc"\nlearning_rate = 1e-3\n')
    write_embeddings(folder / "z.parquet", np.ones((3, 2), dtype=np.float32), ["a", "b", "c"])
    write_embeddings(folder / "z.csv", np.ones((3, 2), dtype=np.float32), ["a", "b", "c"])
    write_embeddings(folder / "z.npy", np.ones((3, 2), dtype=np.float32), ["a", "b", "c"])
    import_graph([folder / "edges.csv"], folder / "graph.topo", memory=10**8)
    return folder


def _model(path: Path) -> Any:
    from topoter import TopoTER

    return TopoTER.load(path)


def _tu_zip(path: Path) -> Any:
    from topoter.datasets.tu import read_tu

    return read_tu(path, "OWN")


def _graph_directory(path: Path) -> Any:
    from topoter.graphs import GraphDirectory

    return GraphDirectory.open(path.parent).as_data()


def readers() -> dict[str, Callable[[Path], Any]]:
    from topoter.experiments.recipes import read_recipe
    from topoter.graphs import read_embeddings, read_graph, read_snapshots
    from topoter.graphs.features import read_features
    from topoter.graphs.node_tables import read_node_table

    def graph(path: Path) -> Any:
        return read_graph(path)[0]

    return {
        "edges.csv": graph, "edges.csv.gz": graph, "edges.parquet": graph, "matrix.npz": graph, "graph.graphml": graph,
        "graph.gml": graph, "graph.pt": graph, "nodes.csv": read_node_table, "features.npy": read_features,
        "model.topoter": _model, "OWN.zip": _tu_zip, "recipe.toml": read_recipe, "z.parquet": read_embeddings,
        "z.csv": read_embeddings, "z.npy": read_embeddings, "graph.topo/manifest.json": _graph_directory,
        "graph.topo/indices.npy": _graph_directory, "graph.topo/ids.parquet": _graph_directory,
        "edges.csv as snapshots": lambda path: read_snapshots(path),
    }  # fmt: skip


def _enter_damage(name: str) -> None:
    file = name.partition(" ")[0]

    @case("bad input", f"damaged {name}", 1, 8, EACH)
    def attempt(number: int) -> None:
        import shutil

        from topoter.graphs import check_graph

        folder, read = new_folder(), readers()[name]
        whole = (valid_files() / file).read_bytes()
        if "/" in file:
            shutil.copytree((valid_files() / file).parent, folder / Path(file).parent)
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        if file == "z.npy":
            shutil.copy(valid_files() / "z.ids.txt", folder)
        random_ = random.Random(f"{name} {number}")
        for _ in range(EACH):
            path.write_bytes(damaged(whole, random_))
            found = answered(f"damaged {name}", lambda: read(path))
            if isinstance(found, Data):
                check_graph(found)
        shutil.rmtree(folder)


for _name in readers():
    _enter_damage(_name)
