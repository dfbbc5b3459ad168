"""An imported graph by its path, where a dataset's name is taken."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from topoter.datasets import dataset_kind, known_as, load
from topoter.errors import DataError
from topoter.experiments.node_classification import load_labelled
from topoter.graphs.importing import import_graph


def test_an_imported_graph_is_a_dataset_without_labels(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    path = str(tmp_path / "Mine.topo")
    import_graph([tmp_path / "edges.csv"], path)
    assert dataset_kind(path) == "node"
    assert known_as(path) == path, "as it is written, not in lower case"
    data = load(path)
    assert data.node_ids == ["a", "b", "c"]
    assert torch.equal(data.edge_index, torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    with pytest.raises(DataError, match="has no labels to classify by"):
        load_labelled(path, None)
