"""Embeddings of any width on a plane, to look at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topoter.errors import DataError, unknown_name
from topoter.tasks.neighbors import nearest

MOST_FOR_TREES = 3000  # nodes up to which scikit-learn's t-SNE, on trees, is as fast as openTSNE's, on a grid
_PCA_WIDTH = 50  # what t-SNE starts from: the directions beyond are mostly noise, and cost time
_ITERATIONS = 500  # the picture no longer changes to the eye after these; Cora takes about 8 s of one core
_PERPLEXITY = 30.0
MAP_NEIGHBOURS = (
    30  # that draw a node on the grid; a map as good as by perplexity 30, which takes 90 and three times as long
)
_FEW_AXES = 3  # up to which angles tell too little: there the nearest by distance draw
_GRID_STEPS = ((100, 12.0), (250, 1.0))  # openTSNE's: how many, and how much similar nodes are drawn together


MAPS = ("tsne", "pca")


def project_2d(
    z: npt.ArrayLike, seed: int = 0, method: str = "tsne", similar: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.float64]:
    """Lay embeddings [N, F] out on a plane [N, 2] by t-SNE, or (`method` "pca") by their principal components.

    Near nodes stay near; with t-SNE, distances between far groups mean nothing. The same `seed` gives the
    same map. `similar` [N, k] are the nodes most like each, if they are known already (`tasks.neighbors.nearest`).
    """
    if method not in MAPS:
        raise unknown_name("map", method, MAPS)
    array = np.asarray(z, dtype=np.float64)
    if array.ndim != 2:
        raise DataError(f"An embedding must be a matrix [N, F]. Got the shape {array.shape}.")
    if not np.isfinite(array).all():
        raise DataError("The embedding has values that are not finite.")
    num_nodes = len(array)
    if num_nodes == 0 or array.shape[1] == 0 or not np.ptp(array, axis=0).any():
        return np.zeros((num_nodes, 2))  # nothing to tell nodes apart
    if num_nodes < 4 or method == "pca":
        return _pca(array, 2, seed)
    if num_nodes <= MOST_FOR_TREES:
        return _tree_tsne(_pca(array, _PCA_WIDTH, seed), seed)
    if array.shape[1] <= _FEW_AXES:
        from sklearn.neighbors import NearestNeighbors

        similar = NearestNeighbors(n_neighbors=MAP_NEIGHBOURS).fit(array).kneighbors(return_distance=False)
    elif similar is None or similar.shape[1] < MAP_NEIGHBOURS:
        similar, _ = nearest(array, MAP_NEIGHBOURS, exact=False)
    return _grid_tsne(_pca(array, 2, seed), similar[:, :MAP_NEIGHBOURS], seed)


def _pca(array: npt.NDArray[np.float64], width: int, seed: int) -> npt.NDArray[np.float64]:
    """The leading components, with columns of zeros where there are fewer than two."""
    from sklearn.decomposition import PCA

    components = min(width, *array.shape)
    reduced = PCA(components, random_state=seed).fit_transform(array)
    return np.pad(reduced, ((0, 0), (0, max(0, 2 - components))))


def _grid_tsne(start: npt.NDArray[np.float64], similar: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.float64]:
    """By interpolation on a grid, from a start [N, 2]: 100,000 nodes take a quarter of a minute of one core."""
    from openTSNE import TSNEEmbedding, affinity, initialization
    from openTSNE.nearest_neighbors import PrecomputedNeighbors

    # One job: several add the forces up in an order that varies, and the map with it.
    one = {"n_jobs": 1, "random_state": seed}
    near = affinity.Uniform(knn_index=PrecomputedNeighbors(similar, np.ones(similar.shape)), **one)
    places = initialization.pca(start, random_state=seed)  # small, and no two nodes at one place
    points = TSNEEmbedding(places, near, negative_gradient_method="fft", **one)
    for steps, exaggeration in _GRID_STEPS:
        momentum = 0.5 if exaggeration > 1 else 0.8
        points.optimize(steps, exaggeration=exaggeration, momentum=momentum, inplace=True)
    return np.asarray(points, dtype=np.float64)


def _tree_tsne(array: npt.NDArray[np.float64], seed: int) -> npt.NDArray[np.float64]:
    from inspect import signature

    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    # scikit-learn 1.5 renamed the argument.
    iterations = "max_iter" if "max_iter" in signature(TSNE).parameters else "n_iter"
    # A fifth of the nodes at most as neighbours, so that small graphs keep some structure.
    perplexity = min(_PERPLEXITY, max(1.0, (len(array) - 1) / 5))
    tsne = TSNE(2, perplexity=perplexity, init="pca", random_state=seed, **{iterations: _ITERATIONS})
    # Threads add the forces up in an order that varies, and the map with it.
    with threadpool_limits(1):
        return np.asarray(tsne.fit_transform(array), dtype=np.float64)
