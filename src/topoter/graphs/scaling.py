"""On which scale the numbers of a table become features: as they are, standardised, or by rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from topoter.graphs.arrow import pa
from topoter.graphs.columns import Column, Date, Flag, Number, Numbers

UNEVEN = 10.0  # columns whose deviations differ by less are of one scale
OFF_CENTRE = 2.0  # deviations that a mean may be away from zero, for columns that are left as they are
SPARSE = 0.5  # a table of so many zeros and no negative number counts something
FAR = 5.0  # robust deviations: a column with one value in a hundred beyond them has a heavy tail
QUANTILES = 100
_SCALED = (Number, Numbers)


def way_of(column: Column) -> str:
    """How a column is brought to its scale: none, standard or quantile."""
    if isinstance(column, (Number, Numbers)):
        return column.scaling
    return "standard" if isinstance(column, Date) else "none"


def scaled(columns: Sequence[Any], table: pa.Table) -> list[Any]:
    """The columns with it decided how numbers are scaled: all left as they are, or each brought to one scale."""
    numbers = {column.name: column.read(table[column.name]).values for column in columns if isinstance(column, _SCALED)}
    if not numbers:
        return list(columns)
    alone = all(isinstance(column, (Number, Numbers, Flag)) for column in columns)
    flags = [column.read(table[column.name]).values for column in columns if isinstance(column, Flag)]
    vectors = all(isinstance(column, Numbers) for column in columns)  # whose lengths mean something
    if vectors or (alone and _one_scale(np.hstack([*numbers.values(), *flags]))):
        return list(columns)
    return [
        msgspec.structs.replace(column, scaling="quantile" if _heavy_tailed(numbers[column.name]) else "standard")
        if column.name in numbers
        else column
        for column in columns
    ]


def tells_nothing(column: Column, table: pa.Table) -> bool:
    """Whether standardising a number leaves zeros only. A gap tells something, and counts are left as they are."""
    if not isinstance(column, Number) or column.scaling == "none":
        return False
    values = column.read(table[column.name]).values
    return bool((values == values[0]).all())


def _one_scale(values: np.ndarray) -> bool:
    """Whether columns count things, or have deviations and means of one size, and are more than one."""
    known = values[~np.isnan(values)]
    if values.shape[1] > 1 and known.min() >= 0 and (known == 0).mean() >= SPARSE:
        return True
    mean, deviation = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    varied = deviation > 0
    if varied.sum() < 2:
        return False
    mean, deviation = mean[varied], deviation[varied]
    even = deviation.max() < UNEVEN * deviation.min()
    return bool(even and (np.abs(mean) <= OFF_CENTRE * deviation).all())


def _heavy_tailed(values: np.ndarray) -> bool:
    """Whether one value in a hundred is far off, measured by the middle half of them; of few values none is."""
    if np.count_nonzero(~np.isnan(values)) < QUANTILES:
        return False
    low, middle, high = np.nanquantile(values, (0.25, 0.5, 0.75))
    distance = np.abs(values[~np.isnan(values)] - middle)
    usual = (high - low) / 1.349 or np.nanstd(values)  # 1.349: of a normal distribution, as many deviations
    return bool(usual > 0 and np.quantile(distance, 0.99) > FAR * usual)
