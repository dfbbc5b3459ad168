"""Readers that are slow and plain: what a file says by the standard library alone, to compare topoter's readers with.

Each returns a `Graph`, or None where the file holds something that the promise does not cover.
"""

from __future__ import annotations

import ast
import csv
import io
import itertools
import json
import math
import re
import struct
import xml.etree.ElementTree as ElementTree
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NULLS = {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA", "NULL"}
NULLS |= {"NaN", "n/a", "nan", "null"}
ENDS = [("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2")]


@dataclass
class Graph:
    """Nodes in their order, and edges (source, target, weight or None, time or None) by id, in theirs."""

    nodes: list[Any]
    edges: list[tuple[Any, Any, float | None, float | None]]


class Refused(Exception):
    """The file breaks a rule that topoter states: it must be refused, or the row dropped."""


def _plain(value: str) -> bool:
    return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", value) is not None and -(2**63) <= int(value) < 2**63


def lines_of(text: bytes) -> list[str]:
    """The lines that count: no comments, no blank ones."""
    content = text.decode("utf-8").removeprefix("\ufeff")
    if "\n" not in content:
        content = content.replace("\r", "\n")
    lines = [line.removesuffix("\r") for line in content.split("\n")]
    return [line for line in lines if not line.startswith("#") and line.strip(" \t\r")]


def rows_of(text: bytes, delimiter: str) -> list[list[str]]:
    if delimiter == " ":
        return [re.split(r"[ \t]+", line.strip(" \t")) for line in lines_of(text)]
    return [next(csv.reader([line], delimiter=delimiter)) for line in lines_of(text)]


def ids_of(*columns: list[str]) -> list[list[Any]]:
    """Ids as integers where all of them are written as such, else as text; None for a missing one."""
    read = []
    for column in columns:
        words = [value.strip() for value in column]
        present = [word for word in words if word not in NULLS]
        if present and all(_plain(word) for word in present):
            read.append([None if word in NULLS else int(word) for word in words])
        else:
            read.append([word or None for word in words])
    if not all(value is None or isinstance(value, int) for column in read for value in column):
        read = [[None if value is None else str(value) for value in column] for column in read]
    return read


def number(word: str) -> float:
    """A number as text; NaN for what is none."""
    if re.fullmatch(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", word):
        return float(word)
    return math.nan


def as_float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def edge_list(text: bytes, delimiter: str, header: bool, time_column: str | None = None, drop: bool = False) -> Graph:
    rows = rows_of(text, delimiter)
    width = Counter(map(len, rows)).most_common(1)[0][0]  # a line of another width is the odd one, also the first
    names = [str(place) for place in range(1, width + 1)]
    if header:
        names = [word.strip() or place for word, place in zip(rows[0], names)]
        rows = rows[1:]
    if any(len(row) != width for row in rows):
        if not drop:
            raise Refused("ragged")
        rows = [row for row in rows if len(row) == width]
    lower = {name.lower(): name for name in names}
    found = [(lower[a], lower[b]) for a, b in ENDS if a in lower and b in lower]
    source, target = (found or [tuple(name for name in names if name != time_column)])[0][:2]
    free = [name for name in names if name not in (source, target, time_column)]
    weight = next((name for name in free if not header or name.lower() in ("weight", "w")), None)
    columns = {name: [row[names.index(name)] for row in rows] for name in names}
    ends = ids_of(columns[source], columns[target])
    weights: list[float | None] = [None] * len(rows)
    if weight is not None:
        read = [number(word) for word in columns[weight]]
        if header or sum(map(math.isfinite, read)) >= len(read) / 2:
            weights = [as_float32(value) for value in read]
    times: list[float | None] = [None] * len(rows)
    if time_column is not None:
        times = [number(word) for word in columns[time_column]]
    edges = []
    for edge in zip(*ends, weights, times):
        bad_weight = edge[2] is not None and not (math.isfinite(edge[2]) and edge[2] >= 0)
        if edge[0] is None or edge[1] is None or bad_weight or (edge[3] is not None and not math.isfinite(edge[3])):
            if not drop:
                raise Refused(str(edge))
            continue
        edges.append(edge)
    if not edges:
        raise Refused("empty")
    return Graph(_sorted({end for edge in edges for end in edge[:2]}), edges)


def _sorted(ids: set[Any]) -> list[Any]:
    """Numbers by size, texts by their bytes."""
    return sorted(ids, key=lambda value: value if isinstance(value, int) else value.encode())


def npy(content: bytes) -> tuple[tuple[int, ...], list[Any]]:
    """The shape and the numbers of a NumPy file, in C order."""
    if content[:6] != b"\x93NUMPY":
        raise ValueError("no NumPy file")
    wide = content[6] > 1
    length = struct.unpack("<I" if wide else "<H", content[8 : 12 if wide else 10])[0]
    start = 12 if wide else 10
    header = ast.literal_eval(content[start : start + length].decode("latin1"))
    order, kind, size = header["descr"][0], header["descr"][1], int(header["descr"][2:])
    codes = {("f", 8): "d", ("f", 4): "f", ("f", 2): "e", ("i", 8): "q", ("i", 4): "i", ("i", 2): "h", ("i", 1): "b"}
    codes |= {("u", 1): "B", ("u", 2): "H", ("u", 4): "I", ("u", 8): "Q", ("b", 1): "?"}
    count = math.prod(header["shape"])
    code = f"{'>' if order == '>' else '<'}{count}{codes[kind, size]}"
    values = list(struct.unpack(code, content[start + length : start + length + count * size]))
    if header["fortran_order"] and len(header["shape"]) == 2:
        rows, columns = header["shape"]
        values = [values[column * rows + row] for row in range(rows) for column in range(columns)]
    return tuple(header["shape"]), values


def npz(content: bytes) -> Graph:
    """A matrix that SciPy saved, by its entries."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}
    kind = re.search(rb"(coo|csr|csc)\s*$", parts["format"])
    arrays = {name: npy(part)[1] for name, part in parts.items() if name not in ("format", "_is_array")}
    size = arrays["shape"][0]
    assert kind is not None
    if kind[1] == b"coo":
        places = list(zip(arrays["row"], arrays["col"]))
    else:
        starts = arrays["indptr"]
        major = [place for place in range(size) for _ in range(starts[place], starts[place + 1])]
        places = list(zip(major, arrays["indices"]))
        if kind[1] == b"csc":
            places = [(row, column) for column, row in places]
    entries = [(row, column, as_float32(float(value))) for (row, column), value in zip(places, arrays["data"]) if value]
    if all(value == 1 for _, _, value in entries):
        return Graph(list(range(size)), [(row, column, None, None) for row, column, _ in entries])
    if any(not math.isfinite(value) or value < 0 for _, _, value in entries):
        raise Refused("weight")
    return Graph(list(range(size)), [(*entry, None) for entry in entries])


def graphml(content: bytes) -> Graph:
    space = "{http://graphml.graphdrawing.org/xmlns}"
    root = ElementTree.fromstring(content)
    keys = {key.get("id"): key.get("attr.name") for key in root.iter(f"{space}key") if key.get("for") == "edge"}
    nodes = [node.get("id") for node in root.iter(f"{space}node")]
    edges: list[Any] = []
    for edge in root.iter(f"{space}edge"):
        said = {keys[data.get("key")]: data.text for data in edge.iter(f"{space}data")}
        edges.append((edge.get("source"), edge.get("target"), float(said["weight"]) if "weight" in said else None))
    return _with_weights(nodes, edges)


def _with_weights(nodes: list[Any], edges: list[Any]) -> Graph:
    """An edge without a weight among edges with one has the weight 1."""
    nodes = list(dict.fromkeys([*nodes, *(end for edge in edges for end in edge[:2])]))
    weighted = any(edge[2] is not None for edge in edges)
    read = [(a, b, as_float32(1.0 if w is None else w) if weighted else None, None) for a, b, w in edges]
    if weighted and any(not math.isfinite(w) or w < 0 for _, _, w, _ in read):
        raise Refused("weight")
    return Graph(nodes, read)


def gml(content: bytes) -> Graph:
    """Nested lists of keys and values."""
    text = content.decode("ascii")
    tokens = iter(re.findall(r'"[^"]*"|\[|\]|[^\s\[\]]+', text))

    def block() -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        for key in tokens:
            if key == "]":
                break
            value: Any = next(tokens)
            found.append((key, block() if value == "[" else value))
        return found

    (graph,) = [value for key, value in block() if key == "graph"]
    nodes = {dict(value)["id"]: dict(value)["label"].strip('"') for key, value in graph if key == "node"}
    links = [dict(value) for key, value in graph if key == "edge"]
    edges = [(nodes[e["source"]], nodes[e["target"]], float(e["weight"]) if "weight" in e else None) for e in links]
    return _with_weights(list(nodes.values()), edges)


def safetensors(content: bytes) -> tuple[dict[str, tuple[tuple[int, ...], bytes]], dict[str, Any]]:
    """Tensors as shape and bytes, and what the file says of itself."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    said = json.loads(header.pop("__metadata__")["topoter"])
    data = content[8 + length :]
    return {name: (tuple(part["shape"]), data[slice(*part["data_offsets"])]) for name, part in header.items()}, said


def tu(texts: dict[str, bytes]) -> list[tuple[int, set[tuple[int, int]], int, list[int] | None]]:
    """Of each graph: nodes, edges without self-loops and repetitions, the label's rank, and the nodes' labels."""

    def integers(name: str) -> list[list[int]]:
        lines = texts[name].decode().replace("\r", "").split("\n")
        return [[int(word) for word in line.split(",")] for line in lines if line.strip()]

    indicator = [row[0] for row in integers("graph_indicator")]
    labels = [row[0] for row in integers("graph_labels")]
    if indicator != sorted(indicator) or (indicator and (indicator[0] < 1 or indicator[-1] > len(labels))):
        raise Refused("graphs out of order")
    ranks = {label: rank for rank, label in enumerate(sorted(set(labels)))}
    node_labels = [row[0] for row in integers("node_labels")] if "node_labels" in texts else None
    if node_labels is not None and len(node_labels) != len(indicator):
        raise Refused("labels of other nodes")
    first: dict[int, int] = {}
    for place, graph in enumerate(indicator):
        first.setdefault(graph, place)
    edges: dict[int, set[tuple[int, int]]] = {graph: set() for graph in range(1, len(labels) + 1)}
    for a, b in integers("A"):
        if not (1 <= a <= len(indicator) and 1 <= b <= len(indicator)) or indicator[a - 1] != indicator[b - 1]:
            raise Refused("edge")
        if a != b:
            graph = indicator[a - 1]
            edges[graph].add((a - 1 - first[graph], b - 1 - first[graph]))
    found = []
    for graph, label in enumerate(labels, 1):
        own = [place for place, of in enumerate(indicator) if of == graph]
        told = None if node_labels is None else [node_labels[place] - min(node_labels) for place in own]
        found.append((len(own), edges[graph], ranks[label], told))
    return found


def graph_directory(folder: Path) -> Graph:
    """By its plain arrays; ids by Arrow, which knows parquet."""
    import pyarrow.parquet as pq

    ids = pq.read_table(folder / "ids.parquet")["id"].to_pylist()
    _, starts = npy((folder / "indptr.npy").read_bytes())
    _, neighbours = npy((folder / "indices.npy").read_bytes())
    weights = (
        npy((folder / "weight.npy").read_bytes())[1] if (folder / "weight.npy").exists() else itertools.repeat(None)
    )
    source = [place for place in range(len(ids)) for _ in range(starts[place], starts[place + 1])]
    return Graph(ids, [(ids[a], ids[b], w, None) for a, b, w in zip(source, neighbours, weights)])
