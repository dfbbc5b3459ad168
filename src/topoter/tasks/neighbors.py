"""Which nodes have the most similar embeddings: nearest neighbours by cosine."""

from __future__ import annotations

import numpy as np

from topoter.errors import DataError, UsageError

MANY = 20_000  # nodes above which a search need not be exact
_AXES = 64  # along which it then looks first
_BLOCK = 1 << 22  # numbers of candidates' rows compared at a time


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


def nearest(
    z: np.ndarray, count: int, rows: np.ndarray | None = None, *, exact: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The `count` most similar other nodes of each node (or of those in `rows`): numbers and cosines, [n, count].

    Best first; of equals the one with the lower number is not promised. A graph of few nodes gives fewer columns.
    Not `exact`, many nodes of wide embeddings are sought along the leading axes, and twice as many as asked
    for compared in full: hardly any is missed, in a fraction of the time.
    """
    if count < 1:
        raise UsageError(f"The number of neighbours must be at least 1. Got {count} instead.")
    unit = unit_rows(z)
    zero = np.asarray(~unit.any(axis=1))
    unit = np.hstack([unit, zero[:, None]]).astype(unit.dtype) if zero.any() else unit  # at a right angle to all others
    asked = np.arange(len(unit)) if rows is None else np.asarray(rows)
    count = min(count, len(unit) - 1)
    if not count:
        return np.empty((len(asked), 0), dtype=np.int64), np.empty((len(asked), 0), dtype=np.float32)
    if exact or len(unit) <= MANY or unit.shape[1] <= _AXES:
        found, distance = _others(unit, asked, count)
        return found, (1.0 - distance / 2).astype(np.float32)
    found, _ = _others(_leading(unit), asked, min(2 * count, len(unit) - 1))
    cosine = np.empty(found.shape, dtype=np.float32)
    block = max(1, _BLOCK // (found.shape[1] * unit.shape[1]))
    for first in range(0, len(asked), block):
        part = slice(first, first + block)
        cosine[part] = (unit[found[part]] @ unit[asked[part], :, None])[:, :, 0]
    best = np.argsort(-cosine, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(found, best, 1), np.take_along_axis(cosine, best, 1)


def _others(rows: np.ndarray, asked: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The nearest other rows of those asked for, and their squared distances, [n, count] each."""
    from sklearn.neighbors import NearestNeighbors

    # One more than asked for, because a node is (nearly always) its own nearest. Between rows of length one the squared
    # distance is 2 - 2 cosine, and scikit-learn finds the least of them four times as fast as the largest cosines.
    search = NearestNeighbors(n_neighbors=count + 1, metric="sqeuclidean", algorithm="brute").fit(rows)
    distance, found = search.kneighbors(rows[asked])
    other = found != asked[:, None]
    other[other.all(axis=1), -1] = False  # with many equal rows a node need not be among its own nearest
    shape = (len(asked), count)
    return found[other].reshape(shape), distance[other].reshape(shape)


def _leading(rows: np.ndarray) -> np.ndarray:
    """Rows [N, F] on the axes [N, 64] along which they are longest."""
    _, directions = np.linalg.eigh((rows.T @ rows).astype(np.float64))
    turned: np.ndarray = rows @ directions[:, -_AXES:].astype(rows.dtype)
    return turned
