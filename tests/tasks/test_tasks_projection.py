"""Two dimensions from many: groups stay groups, the same seed gives the same map."""

import numpy as np
import pytest

from topoter.errors import DataError
from topoter.tasks import projection
from topoter.tasks.neighbors import nearest
from topoter.tasks.projection import project_2d


def blobs(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    return generator.normal(size=(3, 64))[labels] * 4 + generator.normal(size=(count, 64)), labels


def nearest_agrees(points: np.ndarray, labels: np.ndarray) -> float:
    distance = np.linalg.norm(points[:, None] - points[None], axis=-1) + np.eye(len(points)) * 1e9
    return float((labels[distance.argmin(axis=1)] == labels).mean())


def test_groups_stay_groups_and_the_seed_decides() -> None:
    z, labels = blobs(150)
    first = project_2d(z, 0)
    assert first.shape == (150, 2)
    assert nearest_agrees(first, labels) == 1.0
    assert np.array_equal(first, project_2d(z, 0))


def test_many_nodes_are_drawn_on_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "MOST_FOR_TREES", 100)
    monkeypatch.setattr(projection, "_GRID_STEPS", ((40, 12.0), (60, 1.0)))
    z, labels = blobs(150)
    points = project_2d(z, 3)
    assert nearest_agrees(points, labels) == 1.0
    assert np.array_equal(points, project_2d(z, 3))
    assert not np.allclose(points, project_2d(z, 3, "pca"))
    assert np.array_equal(points, project_2d(z, 3, similar=nearest(z, 40)[0]))
    ring = project_2d(z[:, :2], 3)  # of two columns the distance counts, not the angle
    assert nearest_agrees(ring, np.round(z[:, 0] / 8)) > 0.9


@pytest.mark.parametrize("shape", [(0, 5), (1, 5), (3, 1), (5, 1), (20, 2), (4, 0)])
def test_small_embeddings_have_a_map(shape: tuple[int, int]) -> None:
    points = project_2d(np.random.default_rng(0).normal(size=shape))
    assert points.shape == (shape[0], 2)
    assert np.isfinite(points).all()


def test_equal_rows_share_a_place() -> None:
    assert not project_2d(np.ones((30, 8))).any()


def test_what_cannot_be_placed_is_refused() -> None:
    with pytest.raises(DataError, match="not finite"):
        project_2d([[np.nan, 1.0]])
    with pytest.raises(DataError, match="must be a matrix"):
        project_2d([1.0, 2.0])
