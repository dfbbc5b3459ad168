"""Tables made into features: every kind of column, gaps, what stays as it is, and a model that keeps the way."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import torch

from topoter.errors import DataError, UsageError
from topoter.graphs.preparation import Preparation, TableOptions, plain_preparation, read_preparation

COUNT = 400


def mixed(seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 12, COUNT)
    age[::7] = np.nan
    city = rng.choice(["Oslo", "Rome", "Bern"], COUNT).tolist()
    start = np.datetime64("2020-01-01") + rng.integers(0, 900, COUNT)
    return pa.table(
        {
            "age": pa.array(age, from_pandas=True),
            "income": rng.lognormal(10, 1.2, COUNT),
            "member": pa.array([None, True, False, True] * (COUNT // 4)),
            "city": city,
            "joined": pa.array(start.astype("datetime64[D]")),
        }
    )


def test_every_kind_of_column() -> None:
    preparation = Preparation.fit(mixed())
    x, notes = preparation.transform(mixed())
    columns = dict(zip(preparation.feature_names, x.to_dense().numpy().T))
    assert notes == []
    assert list(columns) == [
        *("age", "joined year", "joined month", "joined weekday", "joined age", "income", "member"),
        *("age is missing", "member is missing", "city=Bern", "city=Oslo", "city=Rome"),
    ]
    for name in ("age", "income", "joined age"):
        assert abs(columns[name].mean()) < 0.05, name
        assert columns[name].std() == pytest.approx(1, abs=0.01), name
    assert np.abs(columns["income"]).max() < 2, "a heavy tail is scaled by rank"
    assert columns["age is missing"].sum() == len(range(0, COUNT, 7))
    assert len(np.unique(columns["age"][::7])) == 1, "gaps get one value"
    assert set(columns["member"]) == {0, 1}
    assert columns["member is missing"].sum() == COUNT / 4
    assert np.array_equal(columns["city=Bern"] + columns["city=Oslo"] + columns["city=Rome"], np.ones(COUNT))
    described = {row[0]: row[2] for row in preparation.described()}
    assert described["income"] == "scaled by rank (heavy tail)"
    assert described["age"] == "standardised; gaps get the median, and a column says where"
    assert described["city"] == "one-hot: 3 categories"


def test_what_was_learned_is_plain_and_gives_the_same_bits_again() -> None:
    table = mixed().append_column("bio", pa.array([f"some words {i}" for i in range(COUNT)]))
    preparation = Preparation.fit(table, TableOptions(text="hash"))
    again = read_preparation(json.loads(json.dumps(plain_preparation(preparation))))
    assert again is not None
    assert again.feature_names == preparation.feature_names
    other = mixed(1).append_column("bio", table["bio"])
    assert torch.equal(again.transform(other)[0].to_dense(), preparation.transform(other)[0].to_dense())


def test_new_rows_are_prepared_as_the_old_ones_were() -> None:
    preparation = Preparation.fit(mixed())
    new = mixed().slice(0, 3).set_column(3, "city", pa.array(["Oslo", "Lima", None]))
    new = new.append_column("extra", pa.array([1, 2, 3]))
    x, notes = preparation.transform(new)
    assert notes == ["column 'city': 1 rows have categories that were not there at fit ('Lima'): zeros."]
    assert x.to_dense()[:, -3:].tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert torch.equal(x.to_dense()[0, :7], preparation.transform(mixed())[0].to_dense()[0, :7])
    with pytest.raises(DataError, match="not those the model was fitted on: missing 'age'"):
        preparation.transform(new.drop_columns(["age"]))


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).poisson(0.1, (50, 20)),  # a bag of words
        (np.random.default_rng(0).random((50, 20)) < 0.5).astype(int),
        np.random.default_rng(0).normal(0.1, 0.5, (50, 8)).astype(np.float32),  # vectors of another model
        np.random.default_rng(0).dirichlet([0.02] * 20, 50).round(3),  # rows of sum one
    ],
)
def test_counts_flags_and_even_columns_stay_as_they_are(values: np.ndarray) -> None:
    table = pa.table({f"w{place}": column for place, column in enumerate(values.T)})
    x, _ = Preparation.fit(table).transform(table)
    assert np.array_equal(x.to_dense().numpy(), values.astype(np.float32))


def test_rare_categories_share_a_column_and_numbers_can_be_categories() -> None:
    often = ["north"] * 300 + ["south"] * 85
    table = pa.table({"zip": [*range(10, 25), *[10] * 385], "region": [*(f"r{i}" for i in range(15)), *often]})
    preparation = Preparation.fit(table, TableOptions(as_category=["zip"]))
    assert preparation.feature_names == ["zip=10", "zip=(rare)", "region=north", "region=south", "region=(rare)"]
    x, _ = preparation.transform(table)
    assert x.to_dense().sum(0).tolist() == [386, 14, 300, 85, 15]
    chosen = Preparation.fit(table, TableOptions(columns=["zip"]))
    assert chosen.feature_names == ["zip", "constant"]
    assert chosen.left_out == {"region": "not chosen"}
    with pytest.raises(UsageError, match="No column is left"):
        Preparation.fit(table, TableOptions(exclude=["zip", "region"]))


@pytest.mark.parametrize("written", ["%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d %H:%M:%S"])
def test_dates_in_words(written: str) -> None:
    days = [np.datetime64("2021-03-14") + 17 * day for day in range(30)]
    table = pa.table({"born": [None, *(day.item().strftime(written) for day in days)]})
    preparation = Preparation.fit(table)
    assert preparation.feature_names[:4] == ["born year", "born month", "born weekday", "born age"]
    (column,) = preparation.columns
    read = column.read(table["born"]).values
    assert read[1].tolist() == [2021, 3, 6, 17 * 29]
    assert np.isnan(read[0]).all()


def test_decimal_commas_and_words_among_numbers() -> None:
    table = pa.table({"v": ["1,5", "2", "1.200,25", "unknown", "-3,0"]})
    (column,) = Preparation.fit(table).columns
    read = column.read(table["v"])
    assert read.values[[0, 1, 2, 4], 0].tolist() == [1.5, 2, 1200.25, -3]
    assert read.notes == ["column 'v': 1 values are no finite numbers and are taken as missing."]
