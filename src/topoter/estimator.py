"""TopoTER as a scikit-learn estimator: fit, transform, fit_transform, save, load."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from torch import nn

from topoter.adjacency import Cleaning
from topoter.batches import transitions, usable_device, whole_graph
from topoter.building import build_model
from topoter.checkpoint import fingerprint, load_checkpoint, load_weights, save_checkpoint
from topoter.errors import DataError, UsageError, unknown_name, whole_number
from topoter.graph_sets import POOLINGS, GraphSet, ShuffledBatches
from topoter.graphs import aligned, match_features
from topoter.levels import LEVELS, read_at_level
from topoter.training import Batch, EpochRecord, TrainingSettings, TrainingState, TransitionBatch, pretrain
from topoter.transformation import check_transformable

if TYPE_CHECKING:
    from torch_geometric.data import Data

_logger = logging.getLogger(__name__)


class TopoTER(TransformerMixin, BaseEstimator):
    """Learn embeddings of nodes or of whole graphs without labels, by predicting what was done to edges.

    A parameter given as None gets the value that `topoter.levels` has for the level, at once.

    Args:
        level: "node" embeds the nodes of one graph, "graph" the graphs of a list.
        encoder: "sgc", "gcn", "gin", or any PyG module `module(x, edge_index) -> [N, F]`.
        order: k, how many hops an SGC layer aggregates.
        out_channels: F, the width of the embedding.
        num_layers, hidden_channels: depth of the encoder and its width before the last layer; "gin" concatenates
            its layers, so its embedding is num_layers * hidden_channels wide and `out_channels` is not used.
        negative_slope: of the LeakyReLU after every SGC layer; 1 is no activation, as in the paper's equations, 0.1
            what its experiments use.
        perturbation_rate: r, the share of connected pairs removed, and as many disconnected ones connected.
        sampler: "exact" (the paper's text), "bernoulli" (every pair flipped with probability r) or "paired"
            (the authors' code).
        feature_scaling: "none", "sum" or "unit": rows as they are, of sum one, or of length one.
        init, init_gain: how weights start: "orthogonal", "glorot" or "default" (PyTorch's), the first layer's times
            the gain (1 in the paper). "spread": as "default", but units of "gin" bend among the nodes.
        decoder_layers: linear layers from e_ij to the four types; the paper uses one, and only one is fused.
        scale_edges, prior_bias: multiply e_ij by F, and start the decoder at the shares of the types. Neither
            is in the paper; without them the task is hardly learned (`history_` shows it).
        epochs, patience, learning_rate, weight_decay: of the training (see `TrainingSettings`).
        batch_size, pooling: of level "graph": how many graphs a training step takes, in an order drawn anew every
            epoch, and whether a graph is the "sum", "mean" or "max" of its nodes.
        random_state: seed of everything random; the same seed on the same machine gives the same bits.
        device: where to train, e.g. "cpu", "cuda", "mps".
        on_epoch: called after every epoch with its `EpochRecord`, for progress.

    Attributes after `fit`: `model_` (the module), `history_` (a list of `EpochRecord`), `cleaning_` (what had to
    be changed to make the edges undirected and simple), `num_nodes_`, `num_edges_`, `n_features_in_`,
    `feature_names_in_` if known.
    """

    def __init__(
        self,
        encoder: str | nn.Module | None = None,
        *,
        level: str = "node",
        order: int = 2,
        out_channels: int = 512,
        num_layers: int | None = None,
        hidden_channels: int | None = None,
        negative_slope: float = 1.0,
        perturbation_rate: float | None = None,
        sampler: str = "exact",
        feature_scaling: str | None = None,
        init: str | None = None,
        init_gain: float | None = None,
        decoder_layers: int = 1,
        scale_edges: bool = True,
        prior_bias: bool = True,
        epochs: int | None = None,
        patience: int | None = 50,
        learning_rate: float | None = None,
        weight_decay: float = 0.0,
        batch_size: int = 64,
        pooling: str = "sum",
        random_state: int = 0,
        device: str = "cpu",
        on_epoch: Callable[[EpochRecord], None] | None = None,
    ) -> None:
        # Filled in here and not by `fit`, so that `get_params` and a saved model tell what was used.
        defaults = LEVELS.get(level, LEVELS["node"])

        def filled(name: str, value: Any) -> Any:
            return defaults[name] if value is None else value

        self.encoder: str | nn.Module = filled("encoder", encoder)
        self.level = level
        self.order = order
        self.out_channels = out_channels
        self.num_layers: int = filled("num_layers", num_layers)
        self.hidden_channels: int = filled("hidden_channels", hidden_channels)
        self.negative_slope = negative_slope
        self.perturbation_rate: float = filled("perturbation_rate", perturbation_rate)
        self.sampler = sampler
        self.feature_scaling: str = filled("feature_scaling", feature_scaling)
        self.init: str = filled("init", init)
        self.init_gain: float = filled("init_gain", init_gain)
        self.decoder_layers = decoder_layers
        self.scale_edges = scale_edges
        self.prior_bias = prior_bias
        self.epochs: int = filled("epochs", epochs)
        self.patience = patience
        self.learning_rate: float = filled("learning_rate", learning_rate)
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.pooling = pooling
        self.random_state = random_state
        self.device = device
        self.on_epoch = on_epoch

    # ---- learning ----------------------------------------------------------------------------------------

    def fit(self, graph: Any, y: None = None, *, x: Any = None) -> TopoTER:
        """Pre-train on a graph: PyG `Data`, NetworkX, SciPy sparse or pandas edges (features by `x=`).

        At level "graph": on a list of such graphs, each with features of its own, or all without.
        """
        state, batches = self.start(read_at_level(self.level, graph, x))
        _note(self.cleaning_)
        pretrain(state, batches, self.settings(), on_epoch=self.on_epoch)
        return self.finish(state)

    def fit_snapshots(self, snapshots: Sequence[Any], *, x: Any = None) -> TopoTER:
        """Pre-train on what happened to a graph between one time and the next, two snapshots at least.

        Args:
            snapshots: the edges at each time, edge_index [2, E_t], over the same nodes.
            x: features [N, C], the same at all times; without them every node gets the number 1, as in the paper.
        """
        state, batches = self.start_snapshots(snapshots, x)
        _note(self.cleaning_)
        pretrain(state, batches, self.settings(), on_epoch=self.on_epoch)
        return self.finish(state)

    def start_snapshots(self, snapshots: Sequence[Any], x: Any = None) -> tuple[TrainingState, list[TransitionBatch]]:
        """As `start`, for a graph that was seen at several times."""
        graphs = aligned(snapshots, x)
        state, _ = self.start(graphs[0])
        batches, cleanings = zip(*(self._batch(graph) for graph in graphs))
        self.cleaning_ = Cleaning(*map(sum, zip(*map(astuple, cleanings))))  # over all times
        self.num_edges_ = sum(adjacency.num_edges for _, adjacency in batches)
        return state, transitions(batches)

    def start(self, data: Data | list[Data]) -> tuple[TrainingState, Iterable[Batch]]:
        """A new training state and what to train on; `fit` is start, `pretrain`, `finish`."""
        settings = self.settings()
        settings.check()
        generator = torch.Generator().manual_seed(whole_number("random_state", self.random_state, 0))
        batches: Iterable[Batch]
        if isinstance(data, list):
            if self.pooling not in POOLINGS:
                raise unknown_name("pooling", self.pooling, POOLINGS)
            batch_size, device = whole_number("batch_size", self.batch_size, 1), usable_device(self.device)
            self._remember_features(data[0])
            graphs, self.cleaning_ = GraphSet.from_graphs(data, self.feature_scaling)
            check_transformable(graphs.adjacency, settings.perturbation_rate)
            batches = ShuffledBatches(graphs, batch_size, generator, device)
            batch = graphs.example(batch_size, device)
            whole = graphs.adjacency
        else:
            self._remember_features(data)
            batch, self.cleaning_ = self._batch(data)
            batches, whole = [batch], batch[1]
        self.num_nodes_, self.num_edges_ = whole.num_nodes, whole.num_edges
        model = build_model(self.get_params(deep=False), self.n_features_in_, generator, batch)
        model = model.to(usable_device(self.device))
        return TrainingState.start(model, settings, generator), batches

    def finish(self, state: TrainingState) -> TopoTER:
        """Take over a trained state."""
        self.model_ = state.model
        self.history_ = state.history
        return self

    def check_parameters(self) -> None:
        """Raise where a parameter is wrong whatever the graph: `fit` would find out only after reading it."""
        self.settings().check()
        usable_device(self.device)
        if isinstance(self.encoder, str):
            build_model(self.get_params(deep=False), 1, torch.Generator())

    def settings(self) -> TrainingSettings:
        """Those of the parameters that the training loop knows."""
        return TrainingSettings(**{field.name: getattr(self, field.name) for field in fields(TrainingSettings)})

    # ---- embedding ---------------------------------------------------------------------------------------

    def transform(self, graph: Any, *, x: Any = None) -> np.ndarray:
        """Embeddings [N, F] of any graph with the same features: other nodes and edges are welcome.

        At level "graph": one row for each graph of a list, [G, F].
        """
        if not hasattr(self, "model_"):
            raise UsageError("This TopoTER is not fitted yet: call fit(graph) first, or load a saved one.")
        data = read_at_level(self.level, graph, x)
        known = getattr(self, "feature_names_in_", None)
        if isinstance(data, list):
            matched = [match_features(item, known, self.n_features_in_) for item in data]
            graphs, cleaning = GraphSet.from_graphs(matched, self.feature_scaling)
            self._note_new(cleaning)
            batch_size = whole_number("batch_size", self.batch_size, 1)
            device = usable_device(self.device)
            pooled: np.ndarray = graphs.embed(self.model_.embed, batch_size, self.pooling, device).numpy()
            return pooled
        (features, adjacency), cleaning = self._batch(match_features(data, known, self.n_features_in_))
        self._note_new(cleaning)
        embedding: np.ndarray = self.model_.embed(features, adjacency).cpu().numpy()
        return embedding

    def fit_transform(self, graph: Any, y: None = None, *, x: Any = None) -> np.ndarray:
        """Pre-train on a graph and return its embeddings [N, F], or on a list of graphs and return theirs [G, F]."""
        return self.fit(graph, x=x).transform(graph, x=x)

    # ---- saving ------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file (safetensors with a JSON header)."""
        if not hasattr(self, "model_"):
            raise UsageError("This TopoTER is not fitted yet: there is nothing to save.")
        if not isinstance(self.encoder, str):
            raise UsageError(
                "A model with an encoder of your own cannot be saved to a .topoter file, which holds no code: "
                "save model.model_.state_dict() instead."
            )
        content = {
            "parameters": self._plain_parameters(),
            "num_features": self.n_features_in_,
            "feature_names": list(getattr(self, "feature_names_in_", [])) or None,
            "history": [[r.epoch, r.loss, r.prior_entropy, list(r.accuracy)] for r in self.history_],
        }
        save_checkpoint(path, "model", self.model_.state_dict(), content)

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu") -> TopoTER:
        """Read a model that `save` wrote."""
        tensors, content = load_checkpoint(path, "model")
        try:
            estimator = cls(**{**content["parameters"], "device": device})
            estimator.n_features_in_ = int(content["num_features"])
            names = content["feature_names"]
            history = [EpochRecord(e, loss, prior, tuple(a)) for e, loss, prior, a in content["history"]]
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path} does not describe a model completely ({error}). Fit the model again.") from error
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        generator = torch.Generator().manual_seed(0)  # what it draws is put over by the saved weights
        model = build_model(estimator.get_params(deep=False), estimator.n_features_in_, generator)
        load_weights(model, tensors, path)
        estimator.model_ = model.to(usable_device(device))
        estimator.history_ = history
        return estimator

    def fingerprint(self, data: Data | list[Data]) -> str:
        """What a resumed training must agree on: the parameters and the graph or graphs."""
        return fingerprint(self._plain_parameters(), data if isinstance(data, list) else [data])

    # ---- pieces ------------------------------------------------------------------------------------------

    def _plain_parameters(self) -> dict[str, Any]:
        skipped = {"on_epoch", "device"}
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in skipped}
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}

    def _batch(self, data: Data) -> tuple[Batch, Cleaning]:
        dense = not isinstance(self.encoder, str)
        return whole_graph(data, self.feature_scaling, usable_device(self.device), dense=dense)

    def _note_new(self, cleaning: Cleaning) -> None:
        """Note what had to be changed, unless it is what `fit` has told already."""
        if cleaning != getattr(self, "cleaning_", None):
            _note(cleaning)

    def _remember_features(self, data: Data) -> None:
        self.n_features_in_ = int(data.x.size(1))
        names = data.get("feature_names")
        if names is not None:
            self.feature_names_in_ = np.array(list(names), dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def _note(cleaning: Cleaning) -> None:
    """Say what had to be changed to make the edges an undirected simple graph."""
    if str(cleaning):
        _logger.info("Edges: %s.", cleaning)
