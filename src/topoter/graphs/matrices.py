"""Arrays of features as torch tensors: dense float32, or sparse CSR where they were given sparse."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from topoter.errors import DataError

_BLOCK = 65_536  # rows looked at together: a mask of the whole of x could cost a quarter of its memory


def as_matrix(values: Any, name: str) -> Tensor:
    """Features of any array type as a float32 tensor [N, C]; `name` says in messages what they are."""
    import scipy.sparse

    if scipy.sparse.issparse(values):
        _check_numbers(values.dtype, name)
        return sparse_tensor(values.tocsr())
    if isinstance(values, Tensor):
        values = values.detach()
        if values.layout == torch.sparse_coo:
            values = values.coalesce()
            parts = (values.values().numpy(), values.indices().numpy())
            return sparse_tensor(scipy.sparse.csr_matrix(parts, shape=tuple(values.shape)))
    else:
        array = np.asarray(values)
        _check_numbers(array.dtype, name)
        # torch shares memory with NumPy only where it may write; a read-only array is copied.
        with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and refused as such
            values = torch.from_numpy(np.require(array, dtype=np.float32, requirements=["C", "W"]))
    if values.dim() != 2:
        raise DataError(f"{name} must have the shape [num_nodes, num_features]. Got {list(values.shape)} instead.")
    return values.to(torch.float32)


def _check_numbers(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind not in "fiub":
        raise DataError(f"{name} holds values of dtype {dtype}, not numbers.")


def sparse_tensor(matrix: Any) -> Tensor:
    """A SciPy CSR matrix as a torch sparse CSR tensor of float32."""
    matrix.sum_duplicates()
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        # torch says once per process that its CSR layout is beta: nothing a user could act on.
        warnings.filterwarnings("ignore", message=".*(Sparse CSR|sparse CSR|invariant).*")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            size=matrix.shape,
        )


def select_rows(x: Tensor, keep: np.ndarray) -> Tensor:
    """The rows of a dense or sparse CSR tensor where `keep` is True."""
    if keep.all():
        return x
    if x.layout == torch.sparse_csr:
        import scipy.sparse

        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        return sparse_tensor(scipy.sparse.csr_matrix(parts, shape=tuple(x.shape))[keep])
    return x[torch.from_numpy(keep)]


def finite_rows(x: Tensor) -> Tensor:
    """[N] True where a row of x, dense or sparse CSR, holds finite numbers only."""
    if x.layout == torch.sparse_csr:
        rows = torch.repeat_interleave(torch.arange(x.size(0), device=x.device), x.crow_indices().diff())
        good = torch.ones(x.size(0), dtype=torch.bool, device=x.device)
        good[rows[~x.values().isfinite()]] = False
        return good
    good = x.sum(dim=1).isfinite()  # a sum may be too large where no value is
    doubtful = (~good).nonzero().view(-1)
    good[doubtful] = torch.cat([x[rows].isfinite().all(dim=1) for rows in doubtful.split(_BLOCK)])
    return good


def first_bad_value(x: Tensor, row: int) -> tuple[int, float]:
    """Column and value of the first NaN or infinity in a row."""
    values = x[row].to_dense()
    column = int((~values.isfinite()).nonzero()[0])
    return column, float(values[column])
