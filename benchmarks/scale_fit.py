"""A training whose laps are told: `python -m benchmarks.scale_fit GRAPH BATCH_NODES ENCODER CHANNELS EPOCHS MODEL`.

Alone or under torchrun; 0 nodes are the whole graph. The last line is JSON, by the first process.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from itertools import pairwise
from typing import Any

from topoter import TopoTER
from topoter.graphs import GraphDirectory
from topoter.training import Callback
from topoter.training.distributed import process_group


class Laps(Callback):
    """Wall and CPU seconds at the start, before the first epoch and after each."""

    def __init__(self) -> None:
        self.wall, self.cpu = [time.perf_counter()], [time.process_time()]

    def on_start(self, state: Any) -> None:
        self.on_epoch(state, None)

    def on_epoch(self, state: Any, record: Any) -> None:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())


def main() -> None:
    warnings.simplefilter("ignore")
    graph, nodes, encoder, channels, epochs, out = sys.argv[1:]
    with process_group() as group:
        laps = Laps()
        sizes = {"out_channels": int(channels), "batch_nodes": int(nodes) or None}
        if encoder == "hops":  # as on parts, where likely neighbours are left out; few epochs cost nothing
            model = TopoTER(encoder, **sizes, encoder_parameters={"completion": 0})
        else:
            model = TopoTER(encoder, **sizes, epochs=int(epochs), patience=None)
        model.fit(GraphDirectory.open(graph), callbacks=[laps])
        laps.on_epoch(None, None)
        if group.writes:
            model.save(out)
            steps = {
                key: [end - start for start, end in pairwise(seen)]
                for key, seen in (("wall", laps.wall), ("cpu", laps.cpu))
            }
            told = {
                "start_s": steps["wall"][0],
                "start_cpu_s": steps["cpu"][0],
                "epoch_s": min(steps["wall"][1:-1]),
                "epoch_cpu_s": min(steps["cpu"][1:-1]),
                "end_s": steps["wall"][-1],
                "end_cpu_s": steps["cpu"][-1],
                "losses": [record.loss for record in model.history_],
            }
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
