"""Which nodes have the most similar embeddings: nearest neighbours by cosine."""

from __future__ import annotations

import numpy as np

from topoter.errors import DataError, UsageError


def unit_rows(z: np.ndarray) -> np.ndarray:
    """Embeddings [N, F] with every row of length one; a row of zeros stays as it is."""
    from sklearn.preprocessing import normalize

    array = np.asarray(z)
    if array.ndim != 2 or not len(array):
        raise DataError(f"Embeddings must be a matrix [N, F] with at least one row. Got the shape {list(array.shape)}.")
    good = np.isfinite(array).all(axis=1)
    if not good.all():
        raise DataError(f"The embedding in row {int(good.argmin())} (from 0) holds a value that is not finite.")
    rows: np.ndarray = normalize(array)
    return rows


def compact(z: np.ndarray, kept: float = 1 - 1e-6) -> np.ndarray:
    """Rows [N, F] turned into as few dimensions as hold nearly all of them: lengths and angles stay what they are."""
    _, values, directions = np.linalg.svd((z.T @ z).astype(np.float64), hermitian=True)
    count = int(np.searchsorted(np.cumsum(values) / max(values.sum(), 1e-30), kept)) + 1
    turned: np.ndarray = z @ directions[:count].T.astype(z.dtype)
    return turned


def nearest(z: np.ndarray, count: int, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The `count` most similar other nodes of each node (or of those in `rows`): numbers and cosines, [n, count].

    Best first; of equals the one with the lower number is not promised. A graph of few nodes gives fewer columns.
    """
    from sklearn.neighbors import NearestNeighbors

    if count < 1:
        raise UsageError(f"The number of neighbours must be at least 1. Got {count} instead.")
    unit = unit_rows(z)
    zero = np.asarray(~unit.any(axis=1))
    unit = np.hstack([unit, zero[:, None]]).astype(unit.dtype) if zero.any() else unit  # at a right angle to all others
    asked = np.arange(len(unit)) if rows is None else np.asarray(rows)
    count = min(count, len(unit) - 1)
    if not count:
        return np.empty((len(asked), 0), dtype=np.int64), np.empty((len(asked), 0), dtype=np.float32)
    # One more than asked for, because a node is (nearly always) its own nearest. Between rows of length one the squared
    # distance is 2 - 2 cosine, and scikit-learn finds the least of them four times as fast as the largest cosines.
    search = NearestNeighbors(n_neighbors=count + 1, metric="sqeuclidean", algorithm="brute").fit(unit)
    distance, found = search.kneighbors(unit[asked])
    other = found != asked[:, None]
    other[other.all(axis=1), -1] = False  # with many equal rows a node need not be among its own nearest
    shape = (len(asked), count)
    return found[other].reshape(shape), (1.0 - distance[other] / 2).astype(np.float32).reshape(shape)
