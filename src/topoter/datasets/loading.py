"""From a name to a graph: find the files, check them, read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from topoter.datasets import embedded, files
from topoter.datasets.checks import check_counts, read_checked
from topoter.datasets.download import FAMILIES, download
from topoter.datasets.npz import read_npz
from topoter.datasets.planetoid import read_planetoid
from topoter.datasets.registry import SOURCES, Dataset, find, resolve
from topoter.datasets.splits import random_split
from topoter.datasets.synthetic import block_model
from topoter.datasets.temporal import Snapshots, read_temporal
from topoter.datasets.tu import PARTS, read_tu
from topoter.errors import UsageError

if TYPE_CHECKING:
    from torch_geometric.data import Data


def load(name: str, *, data_root: str | Path | None = None, seed: int = 0) -> Data:
    """Load a graph for node tasks: x, edge_index, y, train_mask, val_mask, test_mask and its name.

    Planetoid's graphs have their public split. The others are split at random by `seed`: 20 nodes per class
    for training, 30 for validation, the rest for test. Files are looked for in `data_root`, else in the
    folder TOPOTER_DATA, else in the user cache, which is filled by a download if need be.
    """
    dataset = _resolve(name, "node", data_root)
    data = _read_node_dataset(dataset, data_root, seed)
    check_counts(dataset, [data])
    if "train_mask" not in data:
        data.train_mask, data.val_mask, data.test_mask = random_split(data.y, seed=seed)
        data.split_is_random = True
    data.name = dataset.name
    return data


def load_graphs(name: str, data_root: str | Path | None = None) -> list[Data]:
    """Load a set of graphs, each with x (one-hot node labels or ones), edge_index and y (from 0).

    Any set of the TU collection whose files are there can be named. Files are looked for as in `load`.
    """
    dataset = _resolve(name, "graphs", data_root)
    paths = _on_disk(dataset, data_root)
    bundled = embedded.mutag_folder() if dataset.name == "mutag" else None
    if paths is None and bundled is not None:
        source = bundled
    else:
        paths = paths or _fetch(dataset, data_root)
        first = next(iter(paths.values()))
        source = first if first.suffix == ".zip" else first.parent
    if source.is_dir():
        texts = [f"{dataset.folder}_{part}.txt" for part in PARTS]
        paths = {f"tu/{dataset.folder}/raw/{text}": source / text for text in texts if (source / text).is_file()}
    graphs = read_checked(dataset, paths or {}, lambda: read_tu(source, dataset.folder))
    check_counts(dataset, graphs)
    return graphs


def load_snapshots(name: str, data_root: str | Path | None = None) -> Snapshots:
    """Load a temporal graph: one weighted graph per point in time, over the same named nodes."""
    dataset = _resolve(name, "temporal", data_root)
    paths = _on_disk(dataset, data_root) or _fetch(dataset, data_root)
    for file, path in paths.items():
        files.verify(path, file, SOURCES["temporal"])
    edges, nodes = paths.values()
    return read_temporal(edges, nodes, dataset.name)


def _resolve(name: str, kind: str, data_root: str | Path | None) -> Dataset:
    """The dataset of a name, which must be of the kind that the caller loads."""
    dataset = resolve(name, files.given_root(data_root) or files.user_cache())
    if dataset.kind != kind:
        kinds = {
            "node": ("one graph", "load"),
            "graphs": ("a set of graphs", "load_graphs"),
            "temporal": ("a graph over time", "load_snapshots"),
        }
        what, loader = kinds[dataset.kind]
        raise UsageError(f"The dataset {name!r} is {what}, not {kinds[kind][0]} (in Python: {loader}({name!r})).")
    return dataset


def _read_node_dataset(dataset: Dataset, data_root: str | Path | None, seed: int) -> Data:
    if dataset.family == "synthetic":
        return block_model(seed=seed)
    if dataset.family == "embedded":
        return embedded.read_embedded_cora()
    paths = _on_disk(dataset, data_root)
    # The embedded Cora is the same graph, so it is preferred to a download.
    if paths is None and dataset.name == "cora" and embedded.cora_folder() is not None:
        return embedded.read_embedded_cora()
    paths = paths or _fetch(dataset, data_root)
    first = next(iter(paths.values()))
    if dataset.family == "planetoid":
        # Pickles: checked before they are opened.
        for file, path in paths.items():
            files.verify(path, file, SOURCES["planetoid"])
        return read_planetoid(first.parent, dataset.folder.lower())
    return read_checked(dataset, paths, lambda: [read_npz(first)])[0]


def _on_disk(dataset: Dataset, data_root: str | Path | None) -> dict[str, Path] | None:
    """The dataset's files by their relative names, or None if some are missing."""
    root = files.given_root(data_root) or files.user_cache()
    names = find(dataset, root)
    return None if names is None else {file: root / file for file in names}


def _fetch(dataset: Dataset, data_root: str | Path | None) -> dict[str, Path]:
    """Download what is missing to the user cache (never to a user's root), or say in one line what it is."""
    given = files.given_root(data_root)
    root = given or files.user_cache()
    reason = ""
    if given is None and dataset.family in FAMILIES:
        try:
            download(dataset.family, dataset.folder, root)
        # Whatever the network, the server or the disk raised, the user needs the same one line.
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
    paths = _on_disk(dataset, data_root)
    if paths is None:
        raise files.missing_error(dataset.name, root, dataset.file_sets[0], _remedy(dataset, given), reason=reason)
    return paths


def _remedy(dataset: Dataset, given: Path | None) -> str:
    """What to do about missing files, as one sentence."""
    or_zip = f" (or {dataset.folder}.zip to tu-zip)" if dataset.family == "tu" else ""
    remedy = f"Copy what is missing there{or_zip} from {SOURCES[dataset.family]}"
    if given is None:
        folder = Path(dataset.file_sets[0][0]).parent.as_posix()
        return f"{remedy}, or set {files.ENVIRONMENT_VARIABLE} to a folder that has {folder}."
    if dataset.family in FAMILIES:
        return f"{remedy}, or give no data root to have it downloaded to the user cache."
    return f"{remedy}."
