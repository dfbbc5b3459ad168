"""check_graph: each defect has its own sentence."""

from __future__ import annotations

import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from topoter.errors import DataError
from topoter.graphs import check_graph
from topoter.graphs.matrices import as_matrix


def graph(**changes) -> Data:
    values = {"x": torch.ones(3, 2), "edge_index": torch.tensor([[0, 1], [1, 2]]), **changes}
    return Data(**{name: value for name, value in values.items() if value is not None})


def with_nan(row: int, column: int) -> torch.Tensor:
    x = torch.ones(3, 2)
    x[row, column] = float("nan")
    return x


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": with_nan(2, 1)}, "Feature 1 of node 2 is nan: it must be a finite number."),
        ({"x": with_nan(2, 1), "feature_names": ["a", "b"]}, "Feature 1 ('b') of node 2 is nan: it must be"),
        ({"x": with_nan(0, 0) * float("inf")}, "Feature 0 of node 0 is nan"),
        ({"x": torch.full((3, 2), float("inf"))}, "Feature 0 of node 0 is inf"),
        (
            {"x": as_matrix(scipy.sparse.csr_matrix(with_nan(1, 0).numpy()), "x")},
            "Feature 0 of node 1 is nan",
        ),
        ({"num_nodes": 4}, "data.x has 3 rows for 4 nodes."),
        (
            {"edge_index": torch.tensor([[0, 1], [1, 3]])},
            "Edge 1 (1 -> 3): node 3 does not exist, the graph has 3",
        ),
        ({"edge_index": torch.tensor([[-1], [0]])}, "Edge 0 (-1 -> 0): node -1 does not exist"),
        (
            {"edge_index": torch.tensor([[0.0], [1.0]])},
            "data.edge_index must be of dtype torch.int64. Got torch.float",
        ),
        (
            {"edge_index": torch.tensor([0, 1])},
            "data.edge_index must have the shape [2, E]. Got [2] instead.",
        ),
        ({"edge_index": None}, "data.edge_index is missing"),
        ({"x": None}, "data.x is missing"),
        ({"x": torch.ones(3)}, "data.x must be a tensor [num_nodes, num_features]. Got [3] instead."),
        ({"x": torch.ones(3, 2).long()}, "data.x must hold floating-point numbers. Got torch.int64 instead."),
        ({"x": torch.ones(3, 0)}, "data.x has no columns"),
        (
            {"x": torch.ones(3, 2).to_sparse()},
            "data.x must be dense or sparse CSR. Got torch.sparse_coo instead.",
        ),
        (
            {"x": torch.ones(0, 2), "edge_index": torch.zeros(2, 0).long()},
            "The graph is empty: it has no nodes.",
        ),
        (
            {"edge_weight": torch.tensor([1.0, -2.0])},
            "Edge 1 has the weight -2: it must be a finite number >= 0.",
        ),
        ({"edge_weight": torch.ones(3)}, "data.edge_weight must have the shape [2]. Got [3] instead."),
        ({"time": torch.ones(3)}, "data.time must have the shape [2]. Got [3] instead."),
        ({"node_ids": ["a"]}, "data.node_ids has 1 ids for 3 nodes."),
    ],
)
def test_each_defect_is_said(changes, message):
    with pytest.raises(DataError) as caught:
        check_graph(graph(**changes))
    assert message in str(caught.value)


def test_good_graphs_pass():
    check_graph(graph())
    check_graph(graph(edge_weight=torch.tensor([0.0, 1.0]), time=torch.tensor([1, 2]), node_ids=["a", "b", "c"]))
    check_graph(graph(x=as_matrix(scipy.sparse.csr_array(torch.eye(3).numpy()), "x"), num_nodes=3))
    check_graph(graph(edge_index=torch.zeros(2, 0, dtype=torch.long)))
