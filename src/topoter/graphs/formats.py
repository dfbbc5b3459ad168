"""Graph files other than edge lists: SciPy .npz, GraphML, GML, PyG's .pt."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from topoter.errors import DataError, UsageError
from topoter.graphs.objects import from_networkx, from_scipy
from topoter.graphs.raw import RawGraph

if TYPE_CHECKING:
    from torch_geometric.data import Data


def read_npz(path: Path) -> RawGraph:
    """A SciPy sparse adjacency matrix, as `scipy.sparse.save_npz` writes it; pickles inside are refused."""
    import scipy.sparse

    try:
        with path.open("rb") as file:  # opened here, because NumPy leaves a damaged file open
            matrix = scipy.sparse.load_npz(file)
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        reason = _first_line(error).replace(f"The file <_io.BufferedReader name={str(path)!r}>", "it")
        raise DataError(f"{path} is not a SciPy sparse matrix (scipy.sparse.save_npz writes one): {reason}") from error
    return from_scipy(matrix, str(path))


def read_graphml(path: Path) -> RawGraph:
    """A GraphML file, through NetworkX."""
    return from_networkx(_parse(path, "GraphML", _networkx().read_graphml), str(path))


def read_gml(path: Path) -> RawGraph:
    """A GML file, through NetworkX; nodes are named by their label, or by their id if labels are no names."""
    networkx = _networkx()
    try:
        return from_networkx(networkx.read_gml(path), str(path))
    except networkx.NetworkXError:  # labels missing or given twice
        graph = _parse(path, "GML", lambda file: networkx.read_gml(file, label="id"))
    raw = from_networkx(graph, str(path))
    raw.notes.append(f"{path}: nodes are named by their id, because their labels are missing or not unique.")
    return raw


def read_pt(path: Path) -> Data:
    """A PyG graph as `torch.save` writes it. No code in the file is run."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    allowed = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, *_numpy_globals()]
    if hasattr(torch.serialization, "safe_globals"):
        # Leaving the context forgets all it was given: what PyG or the user had allowed before must not be among it.
        known = torch.serialization.get_safe_globals()
        safe: Any = torch.serialization.safe_globals([item for item in allowed if item not in known])
    else:  # torch 2.4 knows only the list that holds for the whole process
        torch.serialization.add_safe_globals(allowed)
        safe = nullcontext()
    try:
        with safe:
            data = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a hostile or damaged file fails in many ways, all of them its own fault
        reason = str(error).partition("WeightsUnpickler error: ")[2].partition("\n")[0].partition("Please use")[0]
        reason = reason.strip() or "it is damaged, or no file of torch.save"
        raise DataError(f"{path} cannot be loaded safely as a PyG graph: {reason}") from None
    if isinstance(data, dict) and "edge_index" in data:  # what data.to_dict() gives
        data = Data.from_dict(data)
    if not isinstance(data, Data):
        raise DataError(f"{path} holds a {type(data).__name__}, not one PyG graph (torch_geometric.data.Data).")
    return data


def _parse(path: Path, kind: str, read: Callable[[Path], Any]) -> Any:
    try:
        return read(path)
    except Exception as error:  # the parsers raise whatever comes, from SyntaxError to KeyError
        raise DataError(f"{path} is not a {kind} file: {_first_line(error)}") from error


def _networkx() -> ModuleType:
    try:
        import networkx
    except ImportError:
        raise UsageError('GraphML and GML need NetworkX: pip install "topoter[baselines]".') from None
    return networkx


def _numpy_globals() -> list[Any]:
    """What a pickled NumPy array of numbers is made of: ids are often kept in one."""
    array: Any = np.arange(1)
    kinds = ("int64", "int32", "float64", "float32", "bool")
    return [array.__reduce__()[0], np.ndarray, np.dtype, *(type(np.dtype(kind)) for kind in kinds)]


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


GRAPH_FORMATS: dict[str, Callable[[Path], RawGraph]] = {
    ".npz": read_npz,
    ".graphml": read_graphml,
    ".gml": read_gml,
}
