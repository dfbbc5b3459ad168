"""Graphs larger than memory: `python -m benchmarks.scale` measures and writes results/scale.jsonl and docs/scale.md.

    python -m benchmarks.scale --edges 1000000 10000000 100000000 --folder /large/disk
    python -m benchmarks.scale --cases embed --edges 100000000 --folder /large/disk
    python -m benchmarks.scale --cases quality --seeds 5

Each case runs in a process of its own (benchmarks/watch.py tells what it took). The graph is a block model with text
ids, made in pieces, written as parquet; in a folder that is given graphs and models stay, for further cases.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale_page import Rows, tables
from topoter.experiments.store import write_text

ROOT = Path(__file__).parent.parent
RESULTS, PAGE = ROOT / "results" / "scale.jsonl", ROOT / "docs" / "scale.md"
MARK = "<!-- measured: everything below is written by `python -m benchmarks.scale` -->"
MEAN_DEGREE, BLOCK, WITHIN = 20, 2000, 0.8
FEATURES = CHANNELS = 64
PIECE = 1_000_000  # rows of a file
CURVE_STEPS = 200
EPOCHS = 2  # of sgc, which sees each part in each epoch; the default sees each part before the first one
MEMORY, EMBED_MEMORY = "2GB", "3GB"
MOST_AT_ONCE = 20_000_000  # edges of a graph that is embedded as a whole, too
QUALITY = ("pubmed", "computers", "physics")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument(
        "--cases", nargs="*", choices=[*CASES, "quality"], default=[case for case in CASES if case != "curve"]
    )
    parser.add_argument("--batch-nodes", type=int, default=100_000, help="of a part")
    parser.add_argument("--folder", type=Path, help="where graphs go and stay (else a temporary folder)")
    parser.add_argument("--seeds", type=int, default=5, help="of the case quality; those that are stored stay")
    parser.add_argument("--datasets", nargs="+", choices=QUALITY, default=QUALITY, help="of the case quality")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where figures go and are taken from")
    arguments = parser.parse_args()
    rows = _stored(arguments.results)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        if "quality" in arguments.cases:
            for dataset in arguments.datasets:
                _keep(quality(dataset, arguments.seeds, rows), rows, arguments.results)
        for edges in arguments.edges:
            for case in (CASES[name] for name in arguments.cases if name in CASES):
                _keep(case(folder, edges, arguments.batch_nodes), rows, arguments.results)


def _stored(path: Path) -> Rows:
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {(row["case"], row["edges"]): row for row in map(json.loads, lines)}


def _keep(found: Iterable[dict[str, Any]], rows: Rows, path: Path) -> None:
    """Print and store each figure as soon as it is there."""
    for row in found:
        print(json.dumps(row), flush=True)
        rows[row["case"], row["edges"]] = row
        write_text(path, "\n".join(json.dumps(rows[key]) for key in sorted(rows)) + "\n")
    if path == RESULTS:
        write_text(PAGE, PAGE.read_text(encoding="utf-8").split(MARK)[0] + MARK + "\n\n" + tables(rows))


# ---- the graph ---------------------------------------------------------------------------------------------


def write_graph(folder: Path, edges: int, seed: int = 0) -> None:
    """Edges and features as parquet files of a million rows; text ids; a block's nodes lie far apart in the files."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    nodes = 2 * edges // MEAN_DEGREE
    generator = np.random.default_rng(seed)
    step = next(prime for prime in (7_368_787, 15_485_863) if nodes % prime)  # a permutation without a table
    back = pow(step, -1, nodes)

    def names(row: np.ndarray) -> Any:
        return pc.binary_join_element_wise("user", pc.cast(pa.array(row), pa.string()), "-")

    for kind in ("edges", "features"):
        (folder / kind).mkdir(parents=True)
    for number, start in enumerate(range(0, edges, PIECE)):
        count = min(PIECE, edges - start)
        source = generator.integers(0, nodes, count)
        near = source // BLOCK * BLOCK + generator.integers(0, BLOCK, count)
        far = generator.integers(0, nodes, count)
        target = np.where(generator.random(count) < WITHIN, np.minimum(near, nodes - 1), far)
        pq.write_table(
            pa.table({"source": names(source * step % nodes), "target": names(target * step % nodes)}),
            folder / f"edges/{number:05}.parquet",
        )
    for number, start in enumerate(range(0, nodes, PIECE)):
        row = np.arange(start, min(start + PIECE, nodes))
        x = np.sin(np.outer(row * back % nodes // BLOCK + 1, np.arange(1, FEATURES + 1))) + generator.normal(
            size=(len(row), FEATURES)
        )
        table = {
            "id": names(row),
            "x": pa.FixedSizeListArray.from_arrays(pa.array(x.astype(np.float32).ravel()), FEATURES),
        }
        pq.write_table(pa.table(table), folder / f"features/{number:05}.parquet")


def _graph(folder: Path, edges: int) -> Path:
    made = folder / str(edges)
    if not made.exists():
        write_graph(made, edges)
    return made


# ---- the cases ---------------------------------------------------------------------------------------------


def measured(*command: object) -> tuple[str, dict[str, Any]]:
    """What a Python process printed, and what it took."""
    watch = [sys.executable, "-S", str(ROOT / "benchmarks" / "watch.py"), sys.executable, *map(str, command)]
    answer = subprocess.run(watch, stdout=subprocess.PIPE, text=True, check=True)
    said, _, last = answer.stdout.rstrip("\n").rpartition("\n")
    took = json.loads(last)
    if took.pop("code"):
        raise SystemExit(f"{' '.join(map(str, command))[:200]} failed.")
    return said, took


def import_case(folder: Path, edges: int, batch_nodes: int) -> Iterator[dict[str, Any]]:
    """Parquet with text ids to a graph directory."""
    graph = _graph(folder, edges)
    files = sorted((graph / "edges").glob("*.parquet"))
    features = [part for file in sorted((graph / "features").glob("*.parquet")) for part in ("--features", file)]
    command = ("-m", "topoter", "import", *files, *features, "-o", graph / "graph.topo", "--memory", MEMORY)
    said, took = measured(*command, "-q", "--json")
    found = json.loads(said)
    yield {"case": "import", "edges": edges, "nodes": found["nodes"], "kept": found["edges"], **took}


def fit_case(kind: str, encoder: str, folder: Path, edges: int, batch_nodes: int) -> Iterator[dict[str, Any]]:
    """A training on the whole graph, on parts, or on parts by two processes."""
    name = f"{'fit' if encoder == 'sgc' else 'default,'} {kind}"
    yield {"case": name, "edges": edges, **_fit(name, encoder, EPOCHS, _graph(folder, edges), batch_nodes)}


def curve_case(folder: Path, edges: int, batch_nodes: int) -> Iterator[dict[str, Any]]:
    """The losses of one process and of two over as many steps as two epochs of 100 million edges have."""
    epochs = max(2, round(CURVE_STEPS * batch_nodes * MEAN_DEGREE / (2 * edges)))
    for name in ("curve, parts", "curve, parts, two processes"):
        found = _fit(name, "sgc", epochs, _graph(folder, edges), batch_nodes)
        yield {"case": name, "edges": edges, "losses": found["losses"]}


def _fit(name: str, encoder: str, epochs: int, graph: Path, batch_nodes: int) -> dict[str, Any]:
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node", 2) if name.endswith("two processes") else ()
    nodes = 0 if name.endswith("whole") else batch_nodes
    arguments = (graph / "graph.topo", nodes, encoder, CHANNELS, epochs, graph / f"{name}.topoter")
    said, took = measured(*torchrun, "-m", "benchmarks.scale_fit", *arguments)
    return {**took, **json.loads(said)}


def embed_case(before: str, fitted: str, folder: Path, edges: int, batch_nodes: int) -> Iterator[dict[str, Any]]:
    """All nodes at once, and block by block; the largest difference relative to the largest value."""
    graph = _graph(folder, edges)
    outs = {f"{before}embed in blocks": EMBED_MEMORY}
    if edges <= MOST_AT_ONCE:
        outs = {f"{before}embed at once": "1TB", **outs}
    rows = []
    for case, memory in outs.items():
        model, out = graph / f"{fitted}.topoter", graph / f"{case}.parquet"
        command = ("-m", "topoter", "embed", model, graph / "graph.topo", "-o", out)
        _, took = measured(*command, "--memory", memory, "-q")
        rows.append({"case": case, "edges": edges, **took})
    if len(rows) == 2:
        once, blocks = (_embedding(graph / f"{case}.parquet") for case in outs)
        rows[1]["difference"] = float(np.abs(once - blocks).max() / np.abs(once).max())
    yield from rows


def _embedding(path: Path) -> np.ndarray:
    import pyarrow.parquet as pq

    stored = pq.read_table(path, columns=["embedding"])["embedding"]
    values: np.ndarray = stored.combine_chunks().flatten().to_numpy()
    return values


def quality(dataset: str, seeds: int, rows: Rows) -> Iterator[dict[str, Any]]:
    """Test accuracy by seed of whole-graph training and of training on parts, a quarter of the nodes each."""
    from topoter import TopoTER
    from topoter.datasets import load
    from topoter.tasks.node_classification import score, split_by_seed, without_labels

    data = load(dataset)
    edges = data.num_edges // 2
    row = rows.get((f"quality {dataset}", edges)) or {"case": f"quality {dataset}", "edges": edges}
    for seed in range(seeds):
        data = split_by_seed(data, seed)
        graph = without_labels(data)
        for kind, parts in (("whole", None), ("clusters", data.num_nodes // 4)):
            scores = row.setdefault(kind, [])
            if len(scores) == seed:
                z = TopoTER(batch_nodes=parts, random_state=seed).fit_transform(graph)
                scores.append(score(z, data)["test"])
                yield row


CASES: dict[str, Callable[[Path, int, int], Iterator[dict[str, Any]]]] = {
    "import": import_case,
    "whole": partial(fit_case, "whole", "sgc"),
    "parts": partial(fit_case, "parts", "sgc"),
    "two": partial(fit_case, "parts, two processes", "sgc"),
    "default-whole": partial(fit_case, "whole", "hops"),
    "default-parts": partial(fit_case, "parts", "hops"),
    "default-two": partial(fit_case, "parts, two processes", "hops"),
    "curve": curve_case,
    "embed": partial(embed_case, "", "fit parts"),
    "default-embed": partial(embed_case, "default, ", "default, parts"),
}


if __name__ == "__main__":
    main()
