"""The explorer: one page to walk through embeddings, node by node, offline."""

from topoter.explorer.page import GraphNeighbors, write_explorer

__all__ = ["GraphNeighbors", "write_explorer"]
