"""Embeddings of any width on a plane, to look at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topoter.errors import DataError, unknown_name

MOST_FOR_TSNE = 5000
_PCA_WIDTH = 50  # what t-SNE starts from: the directions beyond are mostly noise, and cost time
_ITERATIONS = 500  # the picture no longer changes to the eye after these; Cora takes about 8 s of one core
_PERPLEXITY = 30.0


MAPS = ("auto", "tsne", "pca")


def project_2d(z: npt.ArrayLike, seed: int = 0, method: str = "auto") -> npt.NDArray[np.float64]:
    """Lay embeddings [N, F] out on a plane [N, 2]: t-SNE up to 5000 nodes, the first two components beyond.

    `method` "tsne" or "pca" asks for one of them whatever the number of nodes.

    Near nodes stay near; with t-SNE, distances between far groups mean nothing. The same `seed` gives the
    same map.
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
    if num_nodes < 4 or map_for(num_nodes, method) == "pca":
        return _pca(array, 2, seed)
    return _tsne(_pca(array, _PCA_WIDTH, seed), seed)


def map_for(num_nodes: int, method: str = "auto") -> str:
    """Which map `project_2d` draws: the one asked for, or the one for this many nodes."""
    if method != "auto":
        return method
    return "tsne" if num_nodes <= MOST_FOR_TSNE else "pca"


def _pca(array: npt.NDArray[np.float64], width: int, seed: int) -> npt.NDArray[np.float64]:
    """The leading components, with columns of zeros where there are fewer than two."""
    from sklearn.decomposition import PCA

    components = min(width, *array.shape)
    reduced = PCA(components, random_state=seed).fit_transform(array)
    return np.pad(reduced, ((0, 0), (0, max(0, 2 - components))))


def _tsne(array: npt.NDArray[np.float64], seed: int) -> npt.NDArray[np.float64]:
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
