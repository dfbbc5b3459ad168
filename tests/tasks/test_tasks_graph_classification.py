"""Graph classification: the protocol is right, test folds influence nothing but their score, methods are themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch_geometric.data import Data

from topoter.datasets import load_graphs
from topoter.encoders import GIN
from topoter.errors import DataError, UsageError
from topoter.methods import build, methods_of
from topoter.methods.infograph import InfoGraph
from topoter.structure.graph_sets import GraphSet
from topoter.tasks import graph_classification, support_vectors
from topoter.tasks.support_vectors import cross_validate

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = {
    "topoter": {"hidden_channels": 8, "epochs": 3},
    "random-init": {"hidden_channels": 8},
    "infograph": {"hidden_channels": 8, "epochs": 3},
    "degree-histogram": {"bins": 6},
    "wl": {"iterations": 2},
    "sp": {},
    "gk": {"samples": 20},
    "rw": {},
    "mlg": {"levels": 1, "rank": 3, "sampled_nodes": 10},
    "dgk": {"epochs": 1},
    "node2vec": {"walks": 1, "length": 5},
    "sub2vec": {"epochs": 2, "length": 5},
    "graph2vec": {"epochs": 2},
    "graphcl": {"hidden_channels": 8, "epochs": 2},
    "graphmae": {"hidden_channels": 8, "epochs": 2},
}


@pytest.fixture(scope="module")
def mutag():
    return load_graphs("mutag")


def fit(graphs, method, seed=0, parameters=None):
    unlabelled = graph_classification.without_labels(graphs)
    return build(method, "graph", SMALL[method] if parameters is None else parameters).fit(unlabelled, seed)


def embed(graphs, method, seed=0, parameters=None):
    """The embeddings, or the kernel of a method that has one."""
    fitted = fit(graphs, method, seed, parameters)
    return fitted.embed(graph_classification.without_labels(graphs)) if fitted.kernel is None else fitted.kernel


# ---- protocol ----------------------------------------------------------------------------------------------


def clusters(count: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], count // 3)
    return (rng.normal(size=(count, 5)) + 1.2 * np.eye(5)[y]) * [1, 10, 100, 1, 0.1], y


def test_the_protocol_is_scikit_learns_pipeline():
    """A kernel computed once for a fold gives what scaler and RBF machine would, for every C."""
    z, y = clusters()
    for fold, (train, test) in enumerate(StratifiedKFold(10, shuffle=True, random_state=3).split(z, y)):
        kernel = support_vectors._rbf(z, train)
        for penalty in support_vectors.PENALTIES:
            machine = make_pipeline(StandardScaler(), SVC(C=penalty)).fit(z[train], y[train])
            ours = SVC(C=penalty, kernel="precomputed").fit(kernel[np.ix_(train, train)], y[train])
            assert (machine.predict(z[test]) == ours.predict(kernel[np.ix_(test, train)])).all()
        scored = cross_validate(y, 3, z=z)[fold]
        inner = StratifiedKFold(3, shuffle=True, random_state=3)
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": [scored.penalty]}, cv=inner)
        search.fit(kernel[np.ix_(train, train)], y[train])
        assert scored.inner == pytest.approx(100 * search.best_score_)
        assert scored.test == pytest.approx(100 * search.score(kernel[np.ix_(test, train)], y[test]))
        if fold == 1:
            break


def test_labels_of_a_test_fold_change_its_score_and_nothing_else():
    z, y = clusters()
    train, test = next(StratifiedKFold(10, shuffle=True, random_state=0).split(z, y))
    kernel = support_vectors._rbf(z, train)
    changed = y.copy()
    changed[test] = (y[test] + 1) % 3
    before, after = (support_vectors._score_fold(kernel, labels, train, test, 0) for labels in (y, changed))
    assert (before.inner, before.penalty) == (after.inner, after.penalty)
    assert before.test != after.test


def test_embeddings_of_a_test_fold_do_not_move_the_training_ones():
    z, _ = clusters()
    train = np.arange(60)
    moved = z.copy()
    moved[60:] += 1e3
    inside = np.ix_(train, train)
    np.testing.assert_array_equal(support_vectors._rbf(z, train)[inside], support_vectors._rbf(moved, train)[inside])


def test_separable_classes_are_found_and_noise_is_not():
    z, y = clusters()
    apart = cross_validate(y, 0, z=z + 8 * np.eye(5)[y] * [1, 10, 100, 1, 0.1])
    assert np.mean([fold.test for fold in apart]) > 97
    noise = cross_validate(y, 0, z=np.random.default_rng(1).normal(size=(90, 5)))
    assert np.mean([fold.test for fold in noise]) < 55
    constant = cross_validate(y, 0, z=np.ones((90, 2)))
    assert np.mean([fold.test for fold in constant]) == pytest.approx(100 / 3)


def test_the_seed_shuffles_the_folds():
    z, y = clusters()
    first, again, other = ([fold.test for fold in cross_validate(y, seed, z=z)] for seed in (0, 0, 1))
    assert first == again != other


def test_folds_are_counted_for_progress():
    z, y = clusters()
    seen = []
    cross_validate(y, 0, z=z, on_fold=lambda done, folds: seen.append((done, folds)))
    assert seen == [(fold, 10) for fold in range(1, 11)]


# ---- methods -----------------------------------------------------------------------------------------------


WITHOUT_LABELS = [name for name in methods_of("graph") if name in SMALL]


def test_all_but_those_that_need_labels_are_here():
    others = set(methods_of("graph")) - set(WITHOUT_LABELS)
    assert others == {"gcn", "graphsage", "gin-0", "gin-eps", "ngn"}
    assert all(build(name, "graph", {}).needs_labels for name in others)


@pytest.mark.parametrize("method", WITHOUT_LABELS)
def test_methods_see_no_labels(mutag, method):
    relabelled = [Data(x=g.x, edge_index=g.edge_index, y=1 - g.y) for g in mutag[:30]]
    one, other = embed(mutag[:30], method), embed(relabelled, method)
    np.testing.assert_array_equal(one, other)
    assert np.isfinite(one).all()


@pytest.mark.parametrize("method", ["topoter", "infograph"])  # the untrained default draws nothing
def test_a_seed_gives_the_same_embedding_and_another_seed_another(mutag, method):
    state = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = (embed(mutag[:40], method, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-4
    assert torch.equal(state[0], torch.random.get_rng_state())
    assert (state[1] == np.random.get_state()[1]).all()  # noqa: NPY002


def test_degrees_are_counted_and_the_last_bin_takes_the_rest():
    star = torch.tensor([[0, 0, 0, 0], [1, 2, 3, 4]])
    path = torch.tensor([[0, 1], [1, 2]])
    graphs = [Data(x=torch.ones(6, 1), edge_index=star), Data(x=torch.ones(3, 1), edge_index=path)]
    counts = embed(graphs, "degree-histogram", 0, {"bins": 3})
    assert counts.tolist() == [[1, 4, 1], [0, 2, 1]]


def test_the_wl_kernel_tells_a_star_from_a_path_and_not_a_graph_from_itself():
    def graph(edges):
        return Data(x=torch.ones(4, 1), edge_index=torch.tensor(edges).t())

    star, path, again = (
        graph([(0, 1), (0, 2), (0, 3)]),
        graph([(0, 1), (1, 2), (2, 3)]),
        graph([(3, 2), (2, 1), (1, 0)]),
    )
    kernel = embed([star, path, again], "wl", 0, {"iterations": 3})
    # Labels by hand: all alike; then leaves against inner nodes (star 3 + 1, path 2 + 2); then ever finer.
    assert kernel[1, 2] == pytest.approx(1)
    assert kernel[0, 1] < 0.9
    np.testing.assert_allclose(np.diag(kernel), 1)
    unlike = Data(x=torch.eye(4), edge_index=path.edge_index)
    same = Data(x=torch.eye(4)[[0, 0, 0, 0]], edge_index=path.edge_index)
    assert embed([unlike, same], "wl", 0, {"iterations": 1})[0, 1] < 0.9


def test_infographs_bound_is_the_naive_double_sum(mutag):
    graph_set, _ = GraphSet.from_graphs(mutag[:5])
    x, adjacency = graph_set.batch(torch.arange(5))
    module = InfoGraph(GIN(7, 4, 2), 0).eval()
    with torch.no_grad():
        h = module.encoder(x, adjacency)
        graph = torch.repeat_interleave(adjacency.ptr.diff()).tolist()
        g = torch.stack([h[adjacency.ptr[k] : adjacency.ptr[k + 1]].sum(0) for k in range(5)])
        score = (module.of_node(h) @ module.of_graph(g).t()).double()
        positive = negative = 0.0
        for i, own in enumerate(graph):
            for k in range(5):
                q = float(score[i, k])
                if k == own:
                    positive += math.log(2) - math.log1p(math.exp(-abs(q))) - max(-q, 0)
                else:
                    negative += math.log1p(math.exp(-abs(q))) + max(q, 0) - math.log(2)
        expected = negative / (len(graph) * 4) - positive / len(graph)
        assert float(module(x, adjacency)[0]) == pytest.approx(expected, rel=1e-4)


def test_infograph_learns(mutag):
    losses = fit(mutag, "infograph", 0, {"epochs": 8}).losses
    assert losses[-1] < losses[0] - 0.2


def test_scores_of_a_method_on_real_graphs(mutag):
    result = graph_classification.score(mutag, 0, z=embed(mutag, "degree-histogram"))
    assert len(result["folds"]) == len(result["penalties"]) == 10
    assert result["test"] == pytest.approx(np.mean(result["folds"]))
    assert result["test"] > 70  # guessing the larger class: 66.5


# ---- bad input ---------------------------------------------------------------------------------------------


def test_a_class_with_fewer_members_than_folds_is_named(mutag):
    rare = [g.clone() for g in mutag[:60]]
    for graph in rare[:4]:
        graph.y = torch.tensor([7])
    with pytest.raises(DataError, match="Class 7 has 4 graphs, fewer than the 10 folds"):
        graph_classification.labels_of(rare)
    with pytest.raises(DataError, match="All 20 graphs are of class 1"):
        graph_classification.labels_of([g for g in mutag if int(g.y) == 1][:20])
    del rare[5].y
    with pytest.raises(DataError, match=r"Graph 5 of the set .* has no label"):
        graph_classification.labels_of(rare)


def test_unknown_methods_are_told_with_the_nearest():
    with pytest.raises(UsageError, match=r"Unknown method 'infogrph'\. Did you mean 'infograph'\?"):
        build("infogrph", "graph", {})
