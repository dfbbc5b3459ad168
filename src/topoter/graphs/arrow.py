"""pyarrow, imported at its first use: that takes a while, and most of topoter reads no table."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any


class _Lazy:
    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq
else:
    pa, pc = _Lazy("pyarrow"), _Lazy("pyarrow.compute")
    pacsv, pq = _Lazy("pyarrow.csv"), _Lazy("pyarrow.parquet")

__all__ = ["pa", "pacsv", "pc", "pq"]
