"""The names topoter knows, what belongs to each, and what is on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from topoter.datasets import embedded, files, planetoid, tu
from topoter.errors import unknown_name

SOURCES = {
    "planetoid": "https://github.com/kimiyoung/planetoid (data/)",
    "amazon": "https://github.com/shchur/gnn-benchmark (data/npz/)",
    "coauthor": "https://github.com/shchur/gnn-benchmark (data/npz/)",
    "tu": "https://www.chrsmrrs.com/graphkerneldatasets",
    "temporal": "https://github.com/bansallab/asnr (as 'u v weight time' lines and a table 'id,name')",
}

# Copies inside installed packages: how to find one, how to get one.
BUNDLED = {
    "cora": (embedded.cora_folder, embedded.INSTALL_CORA),
    "embedded-cora": (embedded.cora_folder, embedded.INSTALL_CORA),
    "mutag": (embedded.mutag_folder, embedded.INSTALL_MUTAG),
}


@dataclass(frozen=True)
class Dataset:
    """What a name stands for. Counts are None where they are not known; edges are undirected."""

    name: str
    kind: str  # node, graphs or temporal
    family: str
    folder: str = ""  # PyG's spelling: the name of the folder and of the files
    nodes: int | None = None
    edges: int | None = None
    features: int | None = None
    classes: int | None = None
    graphs: int | None = None  # graphs of a set, snapshots of a temporal graph
    aliases: tuple[str, ...] = ()

    @property
    def file_sets(self) -> list[list[str]]:
        """The files it needs, relative to a root; the first complete set is read."""
        folder, lower = self.folder, self.folder.lower()
        tu_texts = [f"tu/{folder}/raw/{folder}_{part}.txt" for part in tu.REQUIRED]
        sets = {
            "planetoid": [[f"planetoid/{folder}/raw/ind.{lower}.{part}" for part in planetoid.PARTS]],
            "amazon": [[f"amazon/{folder}/raw/amazon_electronics_{lower}.npz"]],
            "coauthor": [[f"coauthor/{folder}/raw/ms_academic_{lower[:3]}.npz"]],
            "tu": [tu_texts, [f"tu-zip/{folder}.zip"]],
            "temporal": [[f"temporal/edges/{folder}.edges", f"temporal/edges/{folder}.nodes.csv"]],
        }
        return sets.get(self.family, [])

    @property
    def how(self) -> str:
        """One sentence for the user: where it comes from."""
        if self.family == "synthetic":
            return "made on the spot"
        ways = [f"{BUNDLED[self.name][1]} brings a copy"] if self.name in BUNDLED else []
        if self.family == "temporal":
            ways.append(f"copy its files to temporal/edges, from {SOURCES['temporal']}")
        elif self.family in SOURCES:
            ways.append(f"downloaded on first use, if no data root is given, from {SOURCES[self.family]}")
        return "; ".join(ways)


def _node(
    name: str, family: str, folder: str, nodes: int, edges: int, features: int, classes: int, *aliases: str
) -> Dataset:
    return Dataset(name, "node", family, folder, nodes, edges, features, classes, aliases=aliases)


def _set(
    folder: str,
    nodes: int | None = None,
    edges: int | None = None,
    features: int | None = None,
    classes: int | None = None,
    graphs: int | None = None,
) -> Dataset:
    return Dataset(folder.lower(), "graphs", "tu", folder, nodes, edges, features, classes, graphs)


def _temporal(name: str, prefix: str, nodes: int, edges: int, snapshots: int) -> Dataset:
    long = f"{prefix}-{name}"
    return Dataset(name, "temporal", "temporal", long, nodes, edges, graphs=snapshots, aliases=(long,))


REGISTRY: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        # nodes, undirected edges, features, classes
        _node("cora", "planetoid", "Cora", 2708, 5278, 1433, 7),
        _node("citeseer", "planetoid", "CiteSeer", 3327, 4552, 3703, 6),
        _node("pubmed", "planetoid", "PubMed", 19717, 44324, 500, 3),
        _node("embedded-cora", "embedded", "", 2708, 5278, 1433, 7),
        _node("computers", "amazon", "Computers", 13752, 245861, 767, 10, "amazon-computers"),
        _node("photo", "amazon", "Photo", 7650, 119081, 745, 8, "amazon-photo"),
        _node("cs", "coauthor", "CS", 18333, 81894, 6805, 15, "coauthor-cs"),
        _node("physics", "coauthor", "Physics", 34493, 247962, 8415, 5, "coauthor-physics"),
        _node("sbm", "synthetic", "", 1000, 5000, 32, 4, "block-model"),
        # nodes and undirected edges of all graphs together, features, classes, graphs
        _set("MUTAG", 3371, 3721, 7, 2, 188),
        _set("PTC_MR", 4915, 5054, 18, 2, 344),
        _set("IMDB-BINARY", 19773, 96531, 1, 2, 1000),
        _set("IMDB-MULTI", 19502, 98903, 1, 3, 1500),
        _set("REDDIT-BINARY", 859254, 995508, 1, 2, 2000),
        _set("REDDIT-MULTI-5K", 2542071, 2973778, 1, 5, 4999),
        _set("DD", 334925, 843046, 89, 2, 1178),
        _set("PROTEINS", None, None, 3, 2, 1113),
        _set("NCI1", None, None, 37, 2, 4110),
        _set("ENZYMES", None, None, 3, 6, 600),
        _set("COLLAB", None, None, 1, 3, 5000),
        # animals, edges of all snapshots together, snapshots
        _temporal("sparrow-social", "aves", 52, 516, 2),
        _temporal("wildbird-network", "aves", 202, 11900, 6),
        _temporal("ant-colony1", "insecta", 113, 111578, 41),
        _temporal("ant-colony2", "insecta", 131, 139941, 41),
        _temporal("ant-colony3", "insecta", 160, 241280, 41),
        _temporal("ant-colony4", "insecta", 102, 81599, 41),
        _temporal("ant-colony5", "insecta", 152, 194317, 41),
        _temporal("ant-colony6", "insecta", 164, 247214, 39),
    )
}


def resolve(name: str, root: Path) -> Dataset:
    """The dataset of a name or alias in any case: a known one, or a TU set whose files are under the root."""
    known = {**{dataset.name: dataset for dataset in _other_tu_sets(root)}, **REGISTRY}
    by_spelling = {
        _spelling(alias): dataset for dataset in known.values() for alias in (dataset.name, *dataset.aliases)
    }
    try:
        return by_spelling[_spelling(name)]
    except KeyError:
        raise unknown_name("dataset", name, known) from None


def known_as(name: str) -> str | None:
    """The one name of a known dataset, by whatever name, alias and spelling; None for others, such as users' files."""
    spellings = {_spelling(alias): one.name for one in REGISTRY.values() for alias in (one.name, *one.aliases)}
    return spellings.get(_spelling(name))


def _spelling(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def _other_tu_sets(root: Path) -> list[Dataset]:
    """TU sets on disk that the registry does not list."""
    folders = {path.parent.parent.name for path in root.glob("tu/*/raw/*_graph_indicator.txt")}
    folders |= {path.stem for path in root.glob("tu-zip/*.zip")}
    return [_set(folder) for folder in sorted(folders) if folder.lower() not in REGISTRY]


def find(dataset: Dataset, root: Path) -> list[str] | None:
    """The first complete set of the dataset's files under the root."""
    return next((names for names in dataset.file_sets if not files.missing(root, names)), None)


@dataclass(frozen=True)
class DatasetInfo:
    """One line of `topoter datasets`; counts are None where they are not known."""

    name: str
    kind: str
    on_disk: bool
    location: Path | None
    how: str
    nodes: int | None
    edges: int | None
    features: int | None
    classes: int | None
    graphs: int | None


def available(data_root: str | Path | None = None) -> list[DatasetInfo]:
    """Every known dataset: its kind and size, whether it can be loaded right now, and how to get it."""
    root = files.given_root(data_root) or files.user_cache()
    return [_info(dataset, root) for dataset in (*REGISTRY.values(), *_other_tu_sets(root))]


def _info(dataset: Dataset, root: Path) -> DatasetInfo:
    found = find(dataset, root)
    location = (root / found[0]).parent if found else None
    if location is None and dataset.name in BUNDLED:
        location = BUNDLED[dataset.name][0]()
    return DatasetInfo(
        name=dataset.name,
        kind=dataset.kind,
        on_disk=location is not None or dataset.family == "synthetic",
        location=location,
        how=dataset.how,
        nodes=dataset.nodes,
        edges=dataset.edges,
        features=dataset.features,
        classes=dataset.classes,
        graphs=dataset.graphs,
    )


def dataset_kind(name: str, data_root: str | Path | None = None) -> str:
    """`node`, `graphs` or `temporal`: which of load, load_graphs and load_snapshots takes this name."""
    return resolve(name, files.given_root(data_root) or files.user_cache()).kind
