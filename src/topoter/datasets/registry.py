"""From a name to a dataset: those of the families, those found on disk, those of the user's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from topoter.datasets import files
from topoter.datasets.base import REGISTRY, Dataset
from topoter.datasets.imported import Imported
from topoter.datasets.own import entry_names, is_import_path, own_dataset
from topoter.errors import TopoterError, unknown_name
from topoter.graphs.directory import is_graph_directory

KINDS = ("node", "graphs", "temporal")  # for load, load_graphs and load_snapshots


def resolve(name: str, root: Path) -> Dataset:
    """The dataset of a name or alias in any case, of an import path, of an imported graph, or under the root."""
    if is_import_path(name):
        return own_dataset(name)
    if is_graph_directory(name):
        return Imported(name)
    found = _by_spelling([*REGISTRY.values(), *_others_under(root)]).get(_spelling(name))
    if found is not None:
        return found
    for own in entry_names():
        if _spelling(own) == _spelling(name):
            return own_dataset(own)
    known = [*REGISTRY, *(other.name for other in _others_under(root)), *entry_names()]
    raise unknown_name("dataset", name, known)


def known_as(name: str) -> str | None:
    """The one name of a known dataset, by whatever name, alias and spelling; None for others, such as users' files."""
    if is_import_path(name) or is_graph_directory(name):
        return name
    found = _by_spelling(REGISTRY.values()).get(_spelling(name))
    if found is not None:
        return found.name
    return next((own for own in entry_names() if _spelling(own) == _spelling(name)), None)


def dataset_kind(name: str, data_root: str | Path | None = None) -> str:
    """`node`, `graphs` or `temporal`: which of load, load_graphs and load_snapshots takes this name."""
    return resolve(name, files.given_root(data_root) or files.user_cache()).kind


@dataclass(frozen=True)
class DatasetInfo:
    """One line of `topoter datasets`; counts are None where they are not known."""

    name: str
    kind: str
    on_disk: bool
    location: Path | None
    how: str
    nodes: int | None = None
    edges: int | None = None
    features: int | None = None
    classes: int | None = None
    graphs: int | None = None


def available(data_root: str | Path | None = None) -> list[DatasetInfo]:
    """Every known dataset: its kind and size, whether it can be loaded right now, and how to get it."""
    root = files.given_root(data_root) or files.user_cache()
    known = sorted([*REGISTRY.values(), *_others_under(root)], key=lambda dataset: KINDS.index(dataset.kind))
    return [*(_info(dataset, root) for dataset in known), *map(_own_info, entry_names())]


def _info(dataset: Dataset, root: Path) -> DatasetInfo:
    location = dataset.location(root)
    counts = {name: getattr(dataset, name) for name in ("nodes", "edges", "features", "classes", "graphs")}
    needs_nothing = not dataset.file_sets() and dataset.bundled is None
    return DatasetInfo(
        dataset.name, dataset.kind, location is not None or needs_nothing, location, dataset.how, **counts
    )


def _own_info(name: str) -> DatasetInfo:
    """A dataset of an installed package; one that is broken is listed with the reason."""
    try:
        dataset = own_dataset(name, ask_kind=False)
    except TopoterError as error:
        return DatasetInfo(name, "", False, None, str(error))
    return DatasetInfo(name, dataset.kind, True, None, dataset.how)


def _others_under(root: Path) -> list[Dataset]:
    families = dict.fromkeys(type(dataset) for dataset in REGISTRY.values())
    return [dataset for family in families for dataset in family.others_under(root)]


def _by_spelling(datasets: Iterable[Dataset]) -> dict[str, Dataset]:
    return {_spelling(alias): one for one in reversed([*datasets]) for alias in (one.name, *one.aliases)}


def _spelling(name: str) -> str:
    return name.strip().lower().replace("_", "-")
