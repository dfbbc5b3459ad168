"""Nodes of one graph as samples for scikit-learn: X holds node numbers, the transformer gives their embeddings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_memory

from topoter.errors import DataError, UsageError
from topoter.estimator import NotFitted, TopoTER
from topoter.graphs import as_data

if TYPE_CHECKING:
    from torch_geometric.data import Data


class NodeEmbedding(TransformerMixin, BaseEstimator):
    """Rows of a graph's embedding, chosen by node number: the first step of a scikit-learn pipeline.

        pipeline = make_pipeline(NodeEmbedding(graph), LogisticRegression())
        search = GridSearchCV(pipeline, {"nodeembedding__model__order": [1, 2, 3]})
        search.fit(nodes, y[nodes])         # nodes: numbers of the labelled nodes
        search.predict(other_nodes)

    `fit` pre-trains on the whole graph whatever nodes it is given, as it is done in the transductive setting: the
    features and edges of the nodes to be predicted are known, and no label is ever passed on. What differs from
    fold to fold is only the rows that the classifier sees.

    Args:
        graph: PyG `Data`, NetworkX, SciPy sparse or pandas edges; all nodes that will ever be asked for.
        model: the `TopoTER` to train, not trained itself; the default one if `None`.
        x: node features, where the graph does not hold them.
        memory: a folder or a `joblib.Memory`. The embedding depends on graph and model only, so with it each
            setting of the model is trained once instead of once for every fold.

    Attributes after `fit`: `embedding_` [N, F].
    """

    def __init__(self, graph: Any = None, model: TopoTER | None = None, *, x: Any = None, memory: Any = None) -> None:
        self.graph = graph
        self.model = model
        self.x = x
        self.memory = memory

    def fit(self, nodes: npt.ArrayLike, y: Any = None) -> NodeEmbedding:
        """Pre-train on the graph; `nodes` are only checked, `y` is not used."""
        if self.graph is None:
            raise UsageError("NodeEmbedding needs the graph its nodes belong to: NodeEmbedding(graph).")
        data = as_data(self.graph, self.x)
        model = TopoTER() if self.model is None else clone(self.model)
        model.set_output(transform="default")
        _numbers(nodes, int(data.num_nodes))
        if model.is_reproducible():
            memory = os.fspath(self.memory) if isinstance(self.memory, os.PathLike) else self.memory
            train = check_memory(memory).cache(_train, ignore=["model", "data"])
            self.embedding_ = train(model.fingerprint(data), model, data)
        else:  # what it would train to cannot be told from its parameters
            self.embedding_ = model.fit_transform(data)
        return self

    def transform(self, nodes: npt.ArrayLike) -> np.ndarray:
        """The embeddings [n, F] of the nodes with these numbers, [n] or [n, 1]."""
        if not hasattr(self, "embedding_"):
            raise NotFitted("This NodeEmbedding is not fitted yet: call fit(nodes) first.")
        rows: np.ndarray = self.embedding_[_numbers(nodes, len(self.embedding_))]
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """z0, z1, ...: the columns of the embedding, as files name them."""
        if not hasattr(self, "embedding_"):
            raise NotFitted("This NodeEmbedding is not fitted yet: the width of its embedding is not known.")
        return np.array([f"z{column}" for column in range(self.embedding_.shape[1])], dtype=object)


def _train(fingerprint: str, model: TopoTER, data: Data) -> np.ndarray:
    """The embedding, remembered by the fingerprint of model and graph."""
    return model.fit_transform(data)


def _numbers(nodes: npt.ArrayLike, num_nodes: int) -> np.ndarray:
    """Node numbers as a flat array, each one checked."""
    array = np.asarray(nodes)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise UsageError(f"Nodes must be whole numbers [n] or [n, 1]. Got {array.dtype} {list(array.shape)} instead.")
    outside = (array < 0) | (array >= num_nodes)
    if outside.any():
        node = array[outside.argmax()]
        raise DataError(f"Node {node} does not exist: the graph has {num_nodes:,} nodes, numbered from 0.")
    return array
