"""Users' graphs in and out: readers, checks, writers. PyG's `Data` is the graph type."""

from topoter.graphs.atomic import atomic_write
from topoter.graphs.checks import check_graph
from topoter.graphs.directory import GraphDirectory
from topoter.graphs.matching import match_features
from topoter.graphs.objects import as_data
from topoter.graphs.preparation import Preparation, TableOptions
from topoter.graphs.reading import read_graph
from topoter.graphs.sets import read_graphs
from topoter.graphs.snapshots import aligned, read_snapshots
from topoter.graphs.writers import read_embeddings, write_embeddings

__all__ = [
    "GraphDirectory",
    "Preparation",
    "TableOptions",
    "aligned",
    "as_data",
    "atomic_write",
    "check_graph",
    "match_features",
    "read_embeddings",
    "read_graph",
    "read_graphs",
    "read_snapshots",
    "write_embeddings",
]
