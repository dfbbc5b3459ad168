"""Embeddings as scikit-learn's `set_output` asks for them: NumPy, pandas or polars, a row per node under its id."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._set_output import _get_output_config

from topoter.errors import UsageError, unknown_name

CONTAINERS = ("default", "pandas", "polars")


def set_output(self: Any, *, transform: str | None = None) -> Any:
    """Choose what `transform` returns: "default" (NumPy), "pandas" or "polars"."""
    if transform is not None:
        if transform not in CONTAINERS:
            raise unknown_name("container", transform, CONTAINERS)
        self._sklearn_output_config = {"transform": transform}
    return self


def as_configured(estimator: Any, z: np.ndarray, ids: Any) -> Any:
    """The embeddings in the container that was asked for; pandas has the ids as its index, polars as a column."""
    chosen = _get_output_config("transform", estimator)["dense"]
    if chosen == "default":
        return z
    names = list(estimator.get_feature_names_out())
    rows = np.arange(len(z)) if ids is None else np.asarray(ids)
    try:
        if chosen == "pandas":
            import pandas

            return pandas.DataFrame(z, index=pandas.Index(rows, name="id"), columns=names)
        import polars

        return polars.DataFrame({"id": rows, **{name: z[:, place] for place, name in enumerate(names)}})
    except ImportError as error:
        raise UsageError(f"The output {chosen!r} needs the package {chosen}: pip install {chosen}.") from error
