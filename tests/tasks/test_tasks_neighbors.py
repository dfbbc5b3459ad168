"""Nearest neighbours by cosine, against the dense matrix of cosines."""

from __future__ import annotations

import numpy as np
import pytest

from topoter.errors import DataError, UsageError
from topoter.tasks import neighbors
from topoter.tasks.neighbors import nearest, unit_rows

Z = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)


def test_neighbours_are_those_of_the_dense_cosines():
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -2)
    found, similarity = nearest(Z, 5)
    np.testing.assert_array_equal(found, np.argsort(-cosine, axis=1)[:, :5])
    np.testing.assert_allclose(similarity, -np.sort(-cosine, axis=1)[:, :5], atol=1e-5)


def test_some_rows_only_and_lengths_do_not_matter():
    found, _ = nearest(Z, 4)
    some, _ = nearest(Z * np.arange(1, 51)[:, None], 4, np.array([7, 3]))
    np.testing.assert_array_equal(some, found[[7, 3]])


def test_many_wide_embeddings_are_sought_along_leading_axes_and_hardly_any_is_missed(monkeypatch):
    generator = np.random.default_rng(1)
    wide = generator.normal(size=(400, 60)) @ generator.normal(size=(60, 200)) + 2 * generator.normal(size=(400, 200))
    wide[7] = 0
    found, similarity = nearest(wide, 10)
    monkeypatch.setattr(neighbors, "MANY", 100)
    quick, about = nearest(wide, 10, exact=False)
    shared = [len(set(a) & set(b)) for a, b in zip(found.tolist(), quick.tolist())]
    assert np.mean(shared) > 9
    assert not (quick == np.arange(400)[:, None]).any()
    assert (about <= similarity + 1e-6).all()
    assert (np.diff(about, axis=1) <= 0).all()


def test_equal_embeddings_never_give_a_node_itself():
    found, similarity = nearest(np.ones((8, 3)), 3)
    assert found.shape == (8, 3)
    assert not (found == np.arange(8)[:, None]).any()
    np.testing.assert_allclose(similarity, 1, atol=1e-6)


def test_few_nodes_have_few_neighbours():
    assert nearest(Z[:3], 10)[0].shape == (3, 2)
    assert nearest(Z[:1], 10)[0].shape == (1, 0)


def test_wrong_calls():
    with pytest.raises(UsageError, match=r"at least 1. Got 0"):
        nearest(Z, 0)
    with pytest.raises(DataError, match="at least one row"):
        unit_rows(np.empty((0, 4)))
    with pytest.raises(DataError, match=r"row 1 .* not finite"):
        unit_rows(np.array([[1.0, 2.0], [np.inf, 0.0]]))
