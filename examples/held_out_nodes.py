"""How good are embeddings of nodes that the training never saw?

A fifth of the nodes is taken out of the graph, with their edges. One model is trained on what is left, another one
on the whole graph; both embed the whole graph, and the same classifier, which knows labels of the remaining nodes
only, is tested on the nodes that were taken out. `propagated` needs no training and so is the same either way.

    python examples/held_out_nodes.py                                   # the bundled Cora, half a minute
    python examples/held_out_nodes.py --dataset pubmed --seeds 3 --out results/held-out-nodes/pubmed.json
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from topoter import TopoTER
from topoter.datasets import load, random_split
from topoter.graphs import atomic_write
from topoter.methods import build
from topoter.tasks.probe import Split, fit_probe

SHARE = 0.2  # of the nodes, held out
ROWS = ("propagated", "held out", "in training")


def compare(graph: Data, seed: int, **parameters: object) -> dict[str, float]:
    """Test accuracy in percent on the held-out nodes, by what the model had seen of them."""
    held_out = torch.rand(graph.num_nodes, generator=torch.Generator().manual_seed(seed)) < SHARE
    seen = (~held_out).nonzero().flatten()
    edge_index, _ = subgraph(seen, graph.edge_index, relabel_nodes=True, num_nodes=graph.num_nodes)
    rest = Data(x=graph.x[seen], edge_index=edge_index, node_ids=seen.numpy())  # ids: who is who in both graphs
    whole = Data(x=graph.x, edge_index=graph.edge_index, node_ids=np.arange(graph.num_nodes))

    def model() -> TopoTER:
        return TopoTER(**parameters, random_state=seed)

    used = model().effective_params()
    shared = {name: used[name] for name in ("feature_scaling", "order")}
    embeddings = {
        "propagated": build("propagated", "node", shared).fit(whole, seed).embed(whole),
        "held out": model().fit(rest).transform(whole),
        "in training": model().fit_transform(whole),
    }
    train, val, _ = random_split(graph.y[seen], seed=seed)
    split = Split(seen[train].numpy(), seen[val].numpy(), held_out.nonzero().flatten().numpy())
    return {row: fit_probe(z, graph.y.numpy(), split).test for row, z in embeddings.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="embedded-cora", help="a dataset of `topoter datasets`")
    parser.add_argument("--seeds", type=int, default=1, help="other nodes held out, other labels, other weights")
    defaults = TopoTER().effective_params()
    parser.add_argument("--channels", type=int, default=defaults["out_channels"])
    parser.add_argument("--epochs", type=int, default=defaults["epochs"])
    parser.add_argument("--out", type=Path, help="keep the runs as JSON")
    asked = parser.parse_args()

    graph = load(asked.dataset)
    runs = [compare(graph, seed, out_channels=asked.channels, epochs=asked.epochs) for seed in range(asked.seeds)]
    print(f"Accuracy on held-out nodes of {asked.dataset}, {asked.seeds} seed(s)")
    for row in ROWS:
        values = [run[row] for run in runs]
        spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
        print(f"  {row:12} {np.mean(values):.1f}{spread}")
    if asked.out is not None:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        content = {"dataset": asked.dataset, "channels": asked.channels, "epochs": asked.epochs, "runs": runs}
        with atomic_write(asked.out) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
