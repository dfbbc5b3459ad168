"""TopoTER as a scikit-learn estimator: fit, transform, fit_transform, save, load."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from torch import nn

from topoter.encoders import ENCODERS, Hops
from topoter.errors import UsageError, invalid_parameter, unknown_name, whole_number
from topoter.graphs import GraphDirectory, aligned, match_features
from topoter.graphs.ids import keys_of, rows_of_nodes
from topoter.graphs.matching import feature_map
from topoter.graphs.sets import graph_ids
from topoter.levels import defaults, read_at_level
from topoter.output_frames import as_configured, set_output
from topoter.pretext.objectives import is_plain, named_terms
from topoter.pretext.transformation import check_transformable
from topoter.quality import warn_if_poor
from topoter.saved_models import load_fitted, save_fitted
from topoter.structure.adjacency import Adjacency, Cleaning
from topoter.structure.features import prepare_features
from topoter.structure.graph_sets import POOLINGS, Batch, GraphSet
from topoter.structure.large_graph import LargeGraph
from topoter.training import EpochRecord, TopoTERModel, TrainingSettings, TrainingState, as_callbacks, train
from topoter.training.batches import (
    KEEP,
    SUBGRAPHS,
    ShuffledBatches,
    adaptation,
    check_sampling,
    finish,
    parts_of,
    training_batches,
    transitions,
    usable_device,
    whole_graph,
)
from topoter.training.building import build_model
from topoter.training.checkpoint import fingerprint
from topoter.training.distributed import current_group

if TYPE_CHECKING:
    from torch_geometric.data import Data

_logger = logging.getLogger(__name__)


class NotFitted(UsageError, NotFittedError):
    """Something was asked of a TopoTER that only a fitted one knows."""


class TopoTER(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Learn embeddings of nodes or of whole graphs without labels, by predicting what was done to edges.

    A parameter that is None gets the value that `topoter.levels` has for the level and the encoder.

    Args:
        level: "node" embeds the nodes of one graph, "graph" the graphs of a list.
        encoder: "hops" (the default for nodes: several hops of the features and the graph itself, side by side),
            "profile" (the default for graphs: how nodes are placed and which neighbourhoods occur), "sgc", "gcn",
            "gin", any PyG module `module(x, edge_index) -> [N, F]`, or the import path of its class,
            "package.module:Class".
        encoder_parameters: keyword arguments for the encoder alone, e.g. those of the class behind an import path.
        structure: of "hops": how nodes are placed in the graph, "spectral" (the default), "walks" (quicker on a large
            graph), "degrees", or "none" for features alone.
        objective: what is learned: "mutual-information" (I(H; H~), the default of "hops"), "graph-recovery"
            (I(g; g~) of graphs, the default of "profile"), "paper" (types of change
            from dH, the default of other encoders), "full" (all terms of I(H, dA; H~)), a name in
            `topoter.pretext.objectives.OBJECTIVES`, any callable (h, h_t, transformation) -> (loss, metrics), or a list
            of such terms with weights: [("paper", 1.0), (my_objective, 0.1)].
        order: k, how many hops an SGC layer aggregates, or the trained part of "hops".
        out_channels: F, the width of the embedding; of "hops" the most it can be.
        num_layers, hidden_channels: depth of the encoder and its width before the last layer; "gin" concatenates
            its layers, so its embedding is num_layers * hidden_channels wide and `out_channels` is not used.
        negative_slope: of the LeakyReLU after every SGC layer; 1 is no activation, as in the paper's equations, 0.1
            what its experiments use.
        perturbation_rate: r, the share of connected pairs removed, and as many disconnected ones connected; or two, for
            adding and for deleting: (0.0, 0.5) deletes half of the edges and adds none.
        sampler: "exact" (the paper's text), "bernoulli" (every pair flipped with probability r) or "paired"
            (the authors' code).
        feature_scaling: "none", "sum" or "unit": rows as they are, of sum one, or of length one.
        init, init_gain: how weights start: "orthogonal", "glorot" or "default" (PyTorch's), the first layer's times
            the gain (1 in the paper). "spread": as "default", but each ReLU's threshold in "gin" is set to the value
            of a random node.
        decoder_layers: linear layers from e_ij to the four types; the paper uses one, and only one is fused.
        scale_edges, prior_bias: multiply e_ij by F, and start the decoder at the shares of the types. Neither
            is in the paper; without them the task is hardly learned (`history_` shows it).
        epochs, patience, learning_rate, weight_decay: of the training (see `TrainingSettings`); patience "auto" is the
            level's, None never stops early.
        batch_nodes: of level "node": train on parts of the graph of about so many nodes, for a graph larger than memory
            (see `GraphDirectory`); edges between parts are cut off. None trains on the whole graph.
        parts: how they are made: "clusters" of the graph, several joined at random, or sampled "neighbours".
        batch_size, pooling: of level "graph": how many graphs a training step takes, in an order drawn anew every
            epoch, and whether a graph is the "sum", "mean" or "max" of its nodes.
        random_state: seed of everything random; the same seed on the same machine gives the same bits. None draws one.
        device: where to train, e.g. "cpu", "cuda", "mps".
        on_epoch: called after every epoch with its `EpochRecord`; for more see the `callbacks` of `fit`.

    Attributes after `fit`: `model_` (the module), `history_` (a list of `EpochRecord`), `cleaning_` (what had to
    be changed to make the edges undirected and simple), `num_nodes_`, `num_edges_`, `num_graphs_` (level "graph"),
    `n_features_in_`, `feature_names_in_` if known, `node_ids_` (level "node"), `preparation_` (how tables become
    features; None where features were numbers already), `random_state_` (the seed that was used).
    """

    def __init__(
        self,
        encoder: str | nn.Module | None = None,
        *,
        level: str = "node",
        encoder_parameters: Mapping[str, Any] | None = None,
        structure: str | None = None,
        objective: Any = None,
        order: int = 2,
        out_channels: int | None = None,
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
        patience: int | str | None = "auto",
        learning_rate: float | None = None,
        weight_decay: float = 0.0,
        batch_nodes: int | None = None,
        parts: str = "clusters",
        batch_size: int = 64,
        pooling: str = "sum",
        random_state: int | np.random.RandomState | None = 0,
        device: str = "cpu",
        on_epoch: Callable[[EpochRecord], Any] | None = None,
    ) -> None:
        self.encoder = encoder
        self.level = level
        self.encoder_parameters = encoder_parameters
        self.structure = structure
        self.objective = objective
        self.order = order
        self.out_channels = out_channels
        self.num_layers = num_layers
        self.hidden_channels = hidden_channels
        self.negative_slope = negative_slope
        self.perturbation_rate = perturbation_rate
        self.sampler = sampler
        self.feature_scaling = feature_scaling
        self.init = init
        self.init_gain = init_gain
        self.decoder_layers = decoder_layers
        self.scale_edges = scale_edges
        self.prior_bias = prior_bias
        self.epochs = epochs
        self.patience = patience
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_nodes = batch_nodes
        self.parts = parts
        self.batch_size = batch_size
        self.pooling = pooling
        self.random_state = random_state
        self.device = device
        self.on_epoch = on_epoch

    # ---- learning ----------------------------------------------------------------------------------------

    def fit(self, graph: Any, y: None = None, *, x: Any = None, callbacks: Any = None) -> TopoTER:
        """Pre-train on a graph: PyG `Data`, NetworkX, SciPy sparse or a DataFrame of edges (features by `x=`).

        `x`: an array with rows in node order, or a DataFrame (pandas, polars), joined by its index or its column `id`.

        A `GraphDirectory` is read into memory, unless `batch_nodes` says how much of it at a time.

        At level "graph": on a list of such graphs, each with features of its own, or all without; on a PyG `Dataset` or
        `DataLoader`; or on a list of RDKit's molecules.

        `callbacks`: functions of an `EpochRecord`, or `topoter.training.Callback`s: progress, saving, stopping.
        """
        self.over_time_ = False
        on_disk = isinstance(graph, GraphDirectory) and self.level == "node" and self.batch_nodes is not None
        data = graph if on_disk else read_at_level(self.level, graph, x)
        self._train(*self._start(data), callbacks)
        if not on_disk:
            warn_if_poor(self, data, self.history_)
        return self

    def fit_snapshots(self, snapshots: Sequence[Any], *, x: Any = None, callbacks: Any = None) -> TopoTER:
        """Pre-train on what happened to a graph between one time and the next, two snapshots at least.

        Args:
            snapshots: the edges at each time, in order: PyG's edge_index, SciPy sparse or pandas, over the same nodes.
            x: node features [N, C], the same at all times, or a PyG `Data` that has them, with what is known of its
                table; without them every node gets the number 1, as in the paper.
        """
        described = x if hasattr(x, "edge_index") else None
        graphs = aligned(snapshots, x if described is None else described.x)
        self.over_time_ = True
        state, _ = self._start(graphs[0])
        if described is not None:
            self._remember_features(described)
        batches, cleanings = zip(*(self._batch(graph) for graph in graphs))
        self.cleaning_ = Cleaning(*map(sum, zip(*map(astuple, cleanings))))  # over all times
        self.num_edges_ = sum(adjacency.num_edges for _, adjacency in batches)
        state.fingerprint = fingerprint(self.plain_parameters(), graphs)
        return self._train(state, transitions(batches), callbacks)

    def fit_transitions(self, x: torch.Tensor, observed: Sequence[Any], *, callbacks: Any = None) -> TopoTER:
        """Pre-train on `Transition`s, for those who choose themselves which pairs may be looked at."""
        from torch_geometric.data import Data

        self.over_time_ = True
        state, batches = self._start(Data(x=x, edge_index=observed[0].before.edge_index))
        features = next(iter(batches))[0]
        seen = [graph for transition in observed for graph in (transition.before, transition.after)]
        graphs = [Data(x=x, edge_index=graph.edge_index, edge_weight=graph.edge_weight) for graph in seen]
        state.fingerprint = fingerprint(self.plain_parameters(), graphs)
        return self._train(state, [(features, transition) for transition in observed], callbacks)

    def _start(self, data: Data | list[Data] | GraphDirectory) -> tuple[TrainingState, Iterable[Any]]:
        """A new training state, and the batches (x, graph) to train on."""
        parameters = self.effective_params()
        self._check(parameters)
        group = current_group()
        if group.size > 1 and (self.batch_nodes is None or self.level != "node"):
            raise UsageError(
                "Several processes train on parts of one graph: give batch_nodes (--batch-nodes, --memory)."
            )
        self.random_state_ = self._seed()
        generator = torch.Generator().manual_seed(self.random_state_)
        device = usable_device(self.device)
        streams = {"generator": generator}
        batches: Iterable[Batch]
        whole: Adjacency | LargeGraph
        if isinstance(data, list):
            batch_size = whole_number("batch_size", self.batch_size, 1)
            self._remember_features(data[0])
            self.num_graphs_ = len(data)
            graphs, self.cleaning_ = GraphSet.from_graphs(data, parameters["feature_scaling"])
            check_transformable(graphs.adjacency, parameters["perturbation_rate"])
            batches = ShuffledBatches(graphs, batch_size, generator, device)
            batch = graphs.example(batch_size, device)
            if parameters["encoder"] == "profile":  # its start is taken from all graphs, and so are its moments
                batch = graphs.x, graphs.adjacency
                batches = [batch]
            whole = graphs.adjacency
        elif self.batch_nodes is not None:
            self._remember_features(data)
            prepare = partial(prepare_features, scaling=parameters["feature_scaling"], device=device, dense=self._dense)
            dealt = parameters["encoder"] == "hops"
            parts, self.cleaning_ = parts_of(
                data, self.parts, self.batch_nodes, self.random_state_, device, prepare, dealt
            )
            batches, batch, whole = parts, parts.example(), parts.graph
            streams["parts"] = parts.generator
        else:
            assert not isinstance(data, GraphDirectory)
            self._remember_features(data)
            batch, self.cleaning_ = self._batch(data)
            check_transformable(batch[1], parameters["perturbation_rate"])
            batches, whole = [batch], batch[1]
        self.num_nodes_, self.num_edges_ = whole.num_nodes, whole.num_edges
        adapt = adaptation(parameters["encoder"], batches)
        model = build_model(parameters, self.n_features_in_, generator, batch, adapt=adapt).to(device)
        settings = _settings(parameters)
        if self._is_judged(model):  # a loss that falls for ever says nothing of when to stop: hidden edges do
            trainable = any(parameter.numel() for parameter in model.parameters())  # not without features
            settings = replace(settings, keep=KEEP, epochs=settings.epochs if trainable else 0, fused=True)
        if group.rank > 0:  # the same start in all processes, but each draws its own transformations
            generator.manual_seed(self.random_state_ + (group.rank << 32))
        state = TrainingState.start(model, settings, streams)
        state.fingerprint = self.fingerprint(data)
        return state, batches

    def _train(self, state: TrainingState, batches: Iterable[Any], callbacks: Any) -> TopoTER:
        _note(self.cleaning_)
        parameters = self.effective_params()
        generator = state.streams["generator"]
        assert isinstance(generator, torch.Generator)
        model, rate = state.module, parameters["perturbation_rate"]
        assert isinstance(model, TopoTERModel)
        judged = self._is_judged(model)
        drawn, judges = training_batches(model, batches, rate, self.sampler, generator, judged)
        if judged:  # where neighbours have nothing in common, what deleting edges changes is not worth learning
            assert isinstance(model.encoder, Hops)
            state.settings = replace(state.settings, epochs=round(model.encoder.told.trust * state.settings.epochs))
        train(state, drawn, [*judges, *as_callbacks(self.on_epoch), *as_callbacks(callbacks)])
        finish(model.encoder, batches)
        self.model_ = model
        keys = self._keys(self.node_ids_)
        if keys is not None:
            model.encoder.remember(keys)
        self.kept_epoch_ = state.best_epoch or len(state.history)
        self.history_ = state.history
        return self

    def _is_judged(self, model: TopoTERModel) -> bool:
        """Whether hidden edges tell when to stop, and how much each part of the embedding counts."""
        return isinstance(model.encoder, Hops) and (model.is_linear or not self.over_time_)

    def effective_params(self) -> dict[str, Any]:
        """The parameters that `fit` uses: those given, and the defaults of level and encoder where one is not."""
        default = defaults(self.level, self.encoder, self.objective, getattr(self, "over_time_", False))
        given = self.get_params(deep=False)
        patience = default["patience"] if isinstance(self.patience, str) and self.patience == "auto" else self.patience
        missing = {name: default.get(name) for name, value in given.items() if value is None}
        if self.level == "graph" and isinstance(self.objective, str) and self.objective == "full":
            missing["objective"] = "full-graphs"
        return given | missing | {"patience": patience}

    def check_parameters(self) -> None:
        """Raise where a parameter is wrong whatever the graph: `fit` would find out only after reading it."""
        parameters = self.effective_params()
        self._check(parameters)
        usable_device(self.device)
        if parameters["encoder"] in ENCODERS:
            build_model(parameters, 1, torch.Generator())

    def _check(self, parameters: dict[str, Any]) -> None:
        check_sampling(parameters["perturbation_rate"], self.sampler)
        _settings(parameters).check()
        named_terms(parameters["objective"])
        encoder = parameters["encoder"]
        if not isinstance(encoder, (str, nn.Module)):
            raise invalid_parameter("encoder", "TopoTER", "a name or a torch module", encoder)
        if isinstance(encoder, str) and ":" not in encoder and encoder not in ENCODERS:
            raise unknown_name("encoder", encoder, [*ENCODERS, "package.module:Class"])
        profile, recovery = encoder == "profile", "graph-recovery" in named_terms(parameters["objective"])
        if profile != recovery or (profile and self.level != "graph"):
            raise UsageError("The encoder 'profile' and the objective 'graph-recovery' go together, at level 'graph'.")
        if self.structure is not None and encoder != "hops":
            raise UsageError(f"structure goes with the encoder 'hops', not with {encoder!r}.")
        if self.parts not in SUBGRAPHS:
            raise unknown_name("kind of parts", self.parts, SUBGRAPHS)
        if self.batch_nodes is not None:
            whole_number("batch_nodes", self.batch_nodes, 2)
        if self.pooling not in POOLINGS:
            raise unknown_name("pooling", self.pooling, POOLINGS)

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, np.random.RandomState):
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        return whole_number("random_state", self.random_state, 0)

    # ---- embedding ---------------------------------------------------------------------------------------

    def transform(self, graph: Any, *, x: Any = None, nodes: Any = None) -> Any:
        """Embeddings [N, F] of any graph with the same features: other nodes and edges are welcome.

        `nodes`: the ids of those to embed, e.g. new ones only; None embeds all.
        At level "graph": one row for each graph of a list, [G, F].
        """
        if not hasattr(self, "model_"):
            raise NotFitted("This TopoTER is not fitted yet: call fit(graph) first, or load a saved one.")
        data = read_at_level(self.level, graph, x, getattr(self, "preparation_", None))
        if nodes is not None and isinstance(data, list):
            raise UsageError("nodes= goes with one graph, not with a list of them.")
        known = getattr(self, "feature_names_in_", None)
        scaling = self.effective_params()["feature_scaling"]
        if isinstance(data, list):
            matched = [match_features(item, known, self.n_features_in_) for item in data]
            graphs, cleaning = GraphSet.from_graphs(matched, scaling)
            self._note_new(cleaning)
            batch_size = whole_number("batch_size", self.batch_size, 1)
            pooling = None if self.model_.encoder.pools else self.pooling
            pooled = graphs.embed(self.model_.embed, batch_size, pooling, usable_device(self.device))
            return as_configured(self, pooled.numpy(), graph_ids(data))
        (features, adjacency), cleaning = self._batch(match_features(data, known, self.n_features_in_))
        self._note_new(cleaning)
        ids = data.get("node_ids")
        embedding: np.ndarray = self.model_.embed(features, adjacency, self._keys(ids)).cpu().numpy()
        if nodes is not None:
            rows = rows_of_nodes(nodes, ids)
            embedding, ids = embedding[rows], [ids[row] for row in rows]
        return as_configured(self, embedding, ids)

    def fit_transform(self, graph: Any, y: None = None, *, x: Any = None, callbacks: Any = None) -> Any:
        """Pre-train on a graph and return its embeddings [N, F], or on a list of graphs and return theirs [G, F]."""
        return self.fit(graph, x=x, callbacks=callbacks).transform(graph, x=x)

    set_output = set_output

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """z0, z1, ...: the columns of the embedding, as files name them."""
        if not hasattr(self, "model_"):
            raise NotFitted("This TopoTER is not fitted yet: the width of its embedding is not known.")
        return np.array([f"z{column}" for column in range(self.model_.encoder.out_channels)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    # ---- saving ------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file (safetensors with a JSON header).

        An encoder of your own is kept as the import path of its class and its arguments, never as code.
        """
        if not hasattr(self, "model_"):
            raise NotFitted("This TopoTER is not fitted yet: there is nothing to save.")
        save_fitted(self, path)

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu", *, trust_encoder: bool = False) -> TopoTER:
        """Read a model that `save` wrote, also those of version 0.1.

        `trust_encoder`: import the encoder's class even from a module that was not imported yet.
        """
        return load_fitted(cls, path, device, trust_encoder)

    def plain_parameters(self) -> dict[str, Any]:
        """The parameters that make a difference to the result, the seed as it was drawn."""
        parameters = self.effective_params()
        parameters["random_state"] = getattr(self, "random_state_", self.random_state)
        for name in ("on_epoch", "device"):
            del parameters[name]
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}

    def fingerprint(self, data: Data | list[Data] | GraphDirectory) -> str:
        """What a resumed training must agree on: the parameters and the graph or graphs."""
        return fingerprint(self.plain_parameters(), data if isinstance(data, list) else [data])

    def is_reproducible(self) -> bool:
        """Whether parameters and graph alone decide what is learned: a seed, and no code of the user's own."""
        seeded = not (self.random_state is None or isinstance(self.random_state, np.random.RandomState))
        return (
            seeded
            and isinstance(self.effective_params()["encoder"], str)
            and is_plain(self.effective_params()["objective"])
        )

    # ---- pieces ------------------------------------------------------------------------------------------

    def _batch(self, data: Data) -> tuple[Batch, Cleaning]:
        scaling = self.effective_params()["feature_scaling"]
        return whole_graph(data, scaling, usable_device(self.device), dense=self._dense)

    @property
    def _dense(self) -> bool:
        """Whether features must not be sparse: a module of the user's own takes tensors only."""
        return self.effective_params()["encoder"] not in ENCODERS

    def _keys(self, node_ids: Any) -> torch.Tensor | None:
        """What the encoder knows nodes by, where it must know them again."""
        known = node_ids is not None and self.model_.encoder.remembers_nodes
        return torch.from_numpy(keys_of(node_ids)) if known else None

    def feature_map(self, names: Sequence[str]) -> Callable[[torch.Tensor], torch.Tensor]:
        """What takes rows of an imported graph's features, with these names, to those that the model knows."""
        known, preparation = getattr(self, "feature_names_in_", None), getattr(self, "preparation_", None)
        return feature_map(names, preparation, known, self.n_features_in_)

    def _note_new(self, cleaning: Cleaning) -> None:
        """Note what had to be changed, unless it is what `fit` has told already."""
        if cleaning != getattr(self, "cleaning_", None):
            _note(cleaning)

    def _remember_features(self, data: Data | GraphDirectory) -> None:
        self.preparation_ = self.node_ids_ = None
        if isinstance(data, GraphDirectory):
            self.n_features_in_, names = data.num_features, data.manifest.feature_names
        else:
            self.n_features_in_, names = int(data.x.size(1)), data.get("feature_names")
            table = data.get("table")
            self.preparation_ = None if table is None else table.preparation
            self.node_ids_ = data.get("node_ids")
        if names is not None:
            self.feature_names_in_ = np.array(list(names), dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def _settings(parameters: Mapping[str, Any]) -> TrainingSettings:
    """Those of the parameters that the training loop knows."""
    names = [item.name for item in fields(TrainingSettings) if item.name in parameters]
    return TrainingSettings(**{name: parameters[name] for name in names})


def _note(cleaning: Cleaning) -> None:
    """Say what had to be changed to make the edges an undirected simple graph."""
    if str(cleaning):
        _logger.info("Edges: %s.", cleaning)
