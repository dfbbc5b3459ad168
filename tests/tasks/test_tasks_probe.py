"""The probe: its two scalings, what validation chooses, and what it says of nodes it was not fitted on."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from topoter.errors import DataError
from topoter.tasks import probe
from topoter.tasks.probe import Split, choose_probe, fit_probe

PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def embeddings(width: int, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray, Split]:
    """Four classes of 60 around four places, far from the origin."""
    rng = np.random.default_rng(0)
    y = np.arange(240) % 4
    z = spread * rng.normal(size=(240, width)) + np.eye(4)[y] @ rng.normal(size=(4, width)) + 5
    order = rng.permutation(240)
    return z, y, Split(order[:40], order[40:120], order[120:])


def slowly(name: str, z: np.ndarray) -> np.ndarray:
    centred = z - z.mean(axis=0)
    if name == "center":
        return centred / np.sqrt((np.linalg.norm(centred, axis=1) ** 2).mean())
    return np.stack([row / np.linalg.norm(row) for row in centred])


@pytest.mark.parametrize(("width", "dimensions"), [(40, 40), (41, 40), (100, 40)])
def test_it_works_in_no_more_dimensions_than_training_nodes(width, dimensions):
    z, _, split = embeddings(width)
    scale = probe.SCALINGS["center"](z)
    assert (probe._then_in_span_of(scale, z, split.train) is scale) == (width == 40)
    assert probe._then_in_span_of(scale, z, split.train)(z).shape == (240, dimensions)


def test_splits_and_what_they_give_are_not_changed_afterwards():
    z, y, split = embeddings(5)
    chosen = choose_probe(z, y, split.train, split.val)
    for frozen, name in ((split, "test"), (chosen, "val"), (fit_probe(z, y, split), "test")):
        with pytest.raises(FrozenInstanceError):
            setattr(frozen, name, None)


@pytest.mark.parametrize("name", ["center", "unit"])
def test_a_scaling_is_fitted_on_some_rows_and_holds_for_others(name):
    z, *_ = embeddings(5)
    scale = probe.SCALINGS[name](z)
    np.testing.assert_allclose(scale(z), slowly(name, z))
    np.testing.assert_allclose(scale(z[:3]), slowly(name, z)[:3])  # by the mean of all, not of these three
    assert list(probe.SCALINGS) == ["center", "unit"]


@pytest.mark.parametrize("name", ["center", "unit"])
def test_what_is_all_equal_becomes_zero(name):
    z = np.full((4, 3), 0.25)
    np.testing.assert_array_equal(probe.SCALINGS[name](z)(z), np.zeros((4, 3)))
    beside = {"center": 0.5, "unit": 3**-0.5}[name]  # one is no length to divide by; a row has its own
    np.testing.assert_allclose(probe.SCALINGS[name](z)(z + 0.5), np.full((4, 3), beside))


@pytest.mark.parametrize("width", [6, 40, 90])
def test_the_choice_is_that_of_an_exhaustive_search(width):
    """Narrower than the training nodes are many, as wide, and wider: then only their span is looked at."""
    z, y, split = embeddings(width, 2.0)
    scores = []
    for name in ("center", "unit"):
        scaled = slowly(name, z)
        found = [
            LogisticRegression(C=penalty, max_iter=2000).fit(scaled[split.train], y[split.train]).predict(scaled)
            for penalty in PENALTIES
        ]
        val = [(labels[split.val] == y[split.val]).mean() for labels in found]
        for place, penalty in enumerate(PENALTIES):
            around = np.mean(val[max(0, place - 1) : place + 2])  # with its neighbours: a lone peak is luck
            scores.append((around, val[place], (found[place][split.test] == y[split.test]).mean(), name, penalty))
    _, val, test, scaling, penalty = max(scores, key=lambda item: item[0])  # the first of equals
    result = fit_probe(z, y, split)
    assert (result.scaling, result.penalty) == (scaling, penalty)
    assert result.val == pytest.approx(100 * val)
    assert result.test == pytest.approx(100 * test, abs=1.0)


@pytest.mark.parametrize("width", [6, 90])
def test_nodes_are_classified_as_they_were_and_new_ones_likewise(width):
    z, y, split = embeddings(width)
    chosen = choose_probe(z.astype(np.float32), y, split.train, split.val)
    np.testing.assert_array_equal(chosen.predict(z.astype(np.float32)), chosen.predicted)
    np.testing.assert_array_equal(chosen.predict(z[7:9].astype(np.float32)), chosen.predicted[7:9])
    assert chosen.val == pytest.approx(100 * (chosen.predicted[split.val] == y[split.val]).mean())


def test_equals_go_to_the_strongest_penalty_and_the_first_scaling():
    z, y, split = embeddings(6, 0.01)
    result = fit_probe(z, y, split)
    assert result == probe.ProbeResult(val=100.0, test=100.0, scaling="center", penalty=0.1)
    for kept in (result, split, choose_probe(z, y, split.train, split.val)):
        with pytest.raises(AttributeError):  # nobody changes a result
            kept.val = 0.0


def test_steps_and_penalties_of_the_protocol():
    assert probe.PENALTIES == PENALTIES
    z, y, _ = embeddings(6)
    made = probe._classifier(z, y, 0.3)
    assert (made.C, made.max_iter) == (0.3, 300)
    assert probe._classifier(1e6 * z, y, 1e6).n_iter_.max() <= 300  # and no warning that it has not converged


def test_a_lone_peak_counts_less_than_a_plateau():
    np.testing.assert_allclose(probe._with_neighbours(np.array([0.3, 0.9, 0.6, 0.0])), [0.6, 0.6, 0.5, 0.3])


def test_constant_embeddings_score_as_guessing_does():
    _, y, split = embeddings(3)
    assert fit_probe(np.ones((240, 3)), y, split).test < 40


def test_one_class_is_nothing_to_learn():
    with pytest.raises(DataError, match="single class"):
        fit_probe(np.eye(4), np.zeros(4, dtype=int), Split(np.array([0, 1]), np.array([2]), np.array([3])))
    two = np.array([0, 1, 0, 1])
    assert fit_probe(np.eye(4)[:, :2] + np.eye(4)[:, 2:], two, Split(*np.array([[0, 1], [2, 3], [2, 3]]))).test == 100
