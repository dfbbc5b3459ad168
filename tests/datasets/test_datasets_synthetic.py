import time

import pytest
import torch

from topoter.datasets import block_model, load, random_split
from topoter.errors import UsageError


@pytest.mark.parametrize(("num_nodes", "num_blocks", "mean_degree"), [(60, 3, 8.0), (101, 7, 5.0), (40, 1, 4.0)])
def test_simple_undirected_with_the_exact_number_of_edges(num_nodes: int, num_blocks: int, mean_degree: float) -> None:
    graph = block_model(num_nodes, num_blocks, mean_degree, 8, seed=3)
    assert graph.num_edges == 2 * round(num_nodes * mean_degree / 2)
    assert not graph.has_self_loops()
    assert graph.is_undirected()
    assert torch.equal(graph.edge_index.unique(dim=1), graph.edge_index)
    assert graph.x.shape == (num_nodes, 8)
    sizes = graph.y.bincount()
    assert len(sizes) == num_blocks
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("within", [0.0, 0.8, 1.0])
def test_share_of_edges_inside_blocks(within: float) -> None:
    graph = block_model(20_000, 5, 10.0, 5, within=within)
    row, col = graph.edge_index
    assert float((graph.y[row] == graph.y[col]).float().mean()) == pytest.approx(within, abs=0.01)


def test_edges_are_spread_evenly() -> None:
    # Every node and every other block must be as likely as the next: the ends of ranges are easily lost.
    graph = block_model(400, 4, 20.0, 4, within=0.5, seed=1)
    row, col = graph.edge_index
    mean = torch.stack([graph.y[row].bincount(), graph.y[col].bincount()]).float() / 100
    assert torch.allclose(mean, torch.tensor(20.0), atol=2.0)
    blocks = torch.zeros(4, 4).index_put_((graph.y[row], graph.y[col]), torch.ones(row.numel()), accumulate=True)
    off_diagonal = blocks[~torch.eye(4, dtype=torch.bool)]
    assert off_diagonal.min() > 0.75 * off_diagonal.max()


def test_features_show_the_block() -> None:
    graph = block_model(4000, 4, 4.0, 6, noise=0.5)
    means = torch.stack([graph.x[graph.y == block].mean(dim=0) for block in range(4)])
    assert torch.allclose(means, torch.eye(4, 6), atol=0.1)
    exact = block_model(100, 4, 4.0, 6, noise=0.0)
    assert torch.equal(exact.x[:, :4].argmax(dim=1), exact.y)


def test_seed_decides_everything_and_global_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    a, b, c = (block_model(200, 4, 6.0, 8, seed) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(a.x, b.x)
    assert torch.equal(a.edge_index, b.edge_index)
    assert not torch.equal(a.edge_index, c.edge_index)


def test_large_graph_in_seconds() -> None:
    start = time.perf_counter()
    graph = block_model(200_000, 10, 10.0, 16)
    assert graph.num_edges == 2_000_000
    assert time.perf_counter() - start < 10  # takes 0.3 s; quadratic time would take minutes


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"num_blocks": 0}, "num_blocks"),
        ({"num_blocks": 30}, "num_blocks"),
        ({"num_features": 2}, "num_features"),
        ({"mean_degree": 10.0}, "mean_degree"),
        ({"mean_degree": -1.0}, "mean_degree"),
        ({"within": 1.5}, "within"),
    ],
)
def test_bad_parameters(changes: dict[str, float], parameter: str) -> None:
    good: dict[str, float] = {"num_nodes": 40, "num_blocks": 4, "mean_degree": 3.0, "num_features": 8}
    with pytest.raises(UsageError, match=f"{parameter!r} parameter of block_model"):
        block_model(**{**good, **changes})  # type: ignore[arg-type]


def test_load_sbm_has_a_split() -> None:
    data = load("SBM", seed=4)
    assert data.name == "sbm"
    assert data.y[data.train_mask].bincount().tolist() == [20] * 4
    assert data.y[data.val_mask].bincount().tolist() == [30] * 4
    assert torch.equal(data.x, load("sbm", seed=4).x)
    assert not torch.equal(data.x, load("sbm", seed=5).x)


def test_random_split_of_a_small_class() -> None:
    y = torch.tensor([0] * 25 + [1] * 100)
    train, val, test = random_split(y, seed=0)
    assert (y[train].bincount().tolist(), y[val].bincount().tolist()) == ([20, 20], [5, 30])
    assert y[test].bincount().tolist() == [0, 50]
