"""Graphs as users have them: as files, imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from topoter.graphs.importing import import_graph


def imported(folder: Path, data: Any, name: str = "graph.topo") -> Path:
    """A graph written as parquet and NumPy, and imported: node numbers are the ids."""
    source, target = data.edge_index.numpy()
    pq.write_table(pa.table({"source": source, "target": target}), folder / "edges.parquet")
    np.save(folder / "x.npy", data.x.numpy())
    import_graph([folder / "edges.parquet"], folder / name, features=[folder / "x.npy"])
    return folder / name
