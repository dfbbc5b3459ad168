"""A named dataset: the files it needs, where they come from, how they are read.

A family of datasets is a subclass of `Dataset` in one file of this folder, which registers what the family has. Another
dataset of a known family is one line there; a new family is a new file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from topoter.datasets import files
from topoter.datasets.checks import check_counts, read_checked
from topoter.datasets.download import download

if TYPE_CHECKING:
    from collections.abc import Iterable

REGISTRY: dict[str, Dataset] = {}


class Bundled(NamedTuple):
    """A copy inside another Python package: where it is (None: not installed), and how to get it."""

    folder: Callable[[], Path | None]
    install: str


class Dataset:
    """What a name stands for. Counts are None where they are not known; edges are undirected.

    Args:
        folder: PyG's spelling, the name of the folder and of the files.
        nodes, edges: of all graphs or snapshots together.
        graphs: graphs of a set, snapshots of a temporal graph.
        name: how users call it, if not the folder in lower case; `aliases` are further names.
        bundled: a copy that another package carries.
    """

    family: str = ""  # the first folder of its files under a data root
    kind: str = "node"  # node, graphs or temporal
    source: str = ""  # where the published files are
    downloader: str = ""  # PyG's class that can download them
    strict: bool = False  # a file with another sha256 is not even opened

    def __init__(
        self,
        folder: str,
        nodes: int | None = None,
        edges: int | None = None,
        features: int | None = None,
        classes: int | None = None,
        graphs: int | None = None,
        *,
        name: str | None = None,
        aliases: Iterable[str] = (),
        bundled: Bundled | None = None,
    ) -> None:
        self.folder, self.name, self.aliases, self.bundled = folder, name or folder.lower(), tuple(aliases), bundled
        self.nodes, self.edges, self.features, self.classes, self.graphs = nodes, edges, features, classes, graphs

    # ---- what a family says ------------------------------------------------------------------------------------

    def file_sets(self) -> list[list[str]]:
        """The files it needs, relative to a root; the first complete set is read."""
        return []

    def read(self, paths: dict[str, Path]) -> Any:
        """A `Data`, a list of them or `Snapshots`, from files that are there; the keys are their relative names."""
        raise NotImplementedError

    def read_bundled(self, folder: Path) -> Any:
        """The same from the copy that another package carries."""
        raise NotImplementedError

    @property
    def first_download(self) -> str:
        """The first file that a download asks for."""
        return Path(self.file_sets()[0][0]).name

    @classmethod
    def others_under(cls, root: Path) -> list[Dataset]:
        """Datasets of the family that are on disk and have no line in its file."""
        return []

    # ---- what all families share -------------------------------------------------------------------------------

    def find(self, root: Path) -> dict[str, Path] | None:
        """Its files under a root, by their relative names; None if some are missing."""
        for names in self.file_sets():
            paths = {name: root / name for name in names}
            if all(path.is_file() for path in paths.values()):
                return paths
        return None

    def location(self, root: Path) -> Path | None:
        """The folder it would be read from right now."""
        found = self.find(root)
        if found:
            return next(iter(found.values())).parent
        return self.bundled.folder() if self.bundled else None

    @property
    def how(self) -> str:
        """One sentence for the user: where it comes from."""
        ways = [f"{self.bundled.install} brings a copy"] if self.bundled else []
        if self.downloader:
            ways.append(f"downloaded on first use, if no data root is given, from {self.source}")
        elif self.source:
            ways.append(f"copy its files to {Path(self.file_sets()[0][0]).parent.as_posix()}, from {self.source}")
        return "; ".join(ways)

    def load(self, data_root: str | Path | None, seed: int) -> Any:
        """Find the files, check them, read them. `seed` is for what is made on the spot."""
        root = files.given_root(data_root) or files.user_cache()
        paths = self.find(root)
        bundle = self.bundled.folder() if self.bundled and paths is None else None
        if self.bundled and bundle:  # the same graphs, so preferred to a download
            content = self.read_bundled(bundle)
        else:
            content = read_checked(self, paths or self._fetch(data_root))
        check_counts(self, content)
        return content

    def _fetch(self, data_root: str | Path | None) -> dict[str, Path]:
        """Download what is missing to the user cache (never to a user's root), or say in one line what it is."""
        given = files.given_root(data_root)
        root = given or files.user_cache()
        reason = ""
        if given is None and self.downloader:
            try:
                download(self, root)
            # Whatever the network, the server or the disk raised, the user needs the same one line.
            except Exception as error:
                reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        paths = self.find(root)
        if paths is None:
            raise files.missing_error(self.name, root, self.file_sets()[0], self._remedy(given), reason=reason)
        return paths

    def _remedy(self, given: Path | None) -> str:
        """What to do about missing files, as one sentence."""
        first, *others = self.file_sets()
        elsewhere = "".join(f" (or {Path(file).name} to {Path(file).parent.as_posix()})" for file, *_ in others)
        remedy = f"Copy what is missing there{elsewhere} from {self.source}"
        if given is None:
            folder = Path(first[0]).parent.as_posix()
            return f"{remedy}, or set {files.ENVIRONMENT_VARIABLE} to a folder that has {folder}."
        if self.downloader:
            return f"{remedy}, or give no data root to have it downloaded to the user cache."
        return f"{remedy}."


def register(*datasets: Dataset) -> None:
    """Make datasets known by their names."""
    for dataset in datasets:
        assert dataset.name not in REGISTRY, f"two datasets are called {dataset.name!r}"
        REGISTRY[dataset.name] = dataset
