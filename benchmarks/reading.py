"""How long, and in how much memory, ten million edges are read: `python -m benchmarks.reading`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

EDGES, NODES = 10_000_000, 1_000_000
# A process of its own for each file: peak memory is that of a process.
_READ = """
import resource, sys, time
start = time.perf_counter()
from topoter.graphs import read_graph
data, _ = read_graph(sys.argv[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
gigabytes = peak / (1e9 if sys.platform == "darwin" else 1e6)
print(f"{data.num_edges:,} edges, {data.num_nodes:,} nodes,", end=" ")
print(f"{time.perf_counter() - start:.1f} s, peak {gigabytes:.1f} GB")
"""


def main() -> None:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    generator = np.random.default_rng(0)
    ends = generator.integers(0, NODES, (2, EDGES))
    with tempfile.TemporaryDirectory() as name:
        numbers, text = Path(name) / "numbers.csv", Path(name) / "text.csv"
        pacsv.write_csv(pa.table({"source": ends[0], "target": ends[1]}), numbers)
        ids = pa.array([f"user{node}" for node in range(NODES)])
        weight = generator.random(EDGES, dtype=np.float32)
        columns = {"source": ids.take(ends[0]), "target": ids.take(ends[1]), "weight": weight}
        pacsv.write_csv(pa.table(columns), text)
        for path in (numbers, text):
            print(path.name, end=": ", flush=True)
            subprocess.run([sys.executable, "-c", _READ, str(path)], check=True)


if __name__ == "__main__":
    main()
