"""Batches: an iterable of (x, graph): a whole graph, parts of one, or many small ones; the loop cannot tell."""

from topoter.training.batches.choosing import adaptation, finish, training_batches
from topoter.training.batches.graph_sets import ShuffledBatches
from topoter.training.batches.graphs import Transformed, check_sampling, transitions, usable_device, whole_graph
from topoter.training.batches.moments import KEEP
from topoter.training.batches.subgraphs import SUBGRAPHS, parts_of

__all__ = [
    "KEEP",
    "SUBGRAPHS",
    "ShuffledBatches",
    "Transformed",
    "adaptation",
    "check_sampling",
    "finish",
    "parts_of",
    "training_batches",
    "transitions",
    "usable_device",
    "whole_graph",
]
