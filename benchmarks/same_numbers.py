"""Does the code of today find the numbers of the store? One seed of every row is run again and compared.

python -m benchmarks.same_numbers                                  # all tables and studies: hours
python -m benchmarks.same_numbers --most-seconds 60 --seed 1       # only rows whose run took no longer than that
"""

from __future__ import annotations

import argparse
from pathlib import Path

from topoter.experiments import EXPERIMENTS, experiment
from topoter.experiments.runner import make
from topoter.experiments.store import Record, Store


def largest_difference(stored: Record, found: Record) -> float:
    """Between the scores of two records of one run, in points."""
    pairs = [pair for name, values in stored.scores.items() for pair in zip(values, found.scores[name], strict=True)]
    return max(abs(a - b) for a, b in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", nargs="*", default=list(EXPERIMENTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-seconds", type=float, default=float("inf"))
    parser.add_argument("--results", type=Path, default=Path("results"))
    asked = parser.parse_args()

    store, counts = Store.read(asked.results), {"equal": 0, "within 0.1": 0, "further apart": 0, "left out": 0}
    for name in asked.experiments:
        for run in experiment(name).plan(None, None, asked.seed + 1):
            stored = store.find(run) if run.seed == asked.seed else None
            if stored is None or stored.made_for or stored.stopped:
                continue
            if stored.seconds > asked.most_seconds:
                counts["left out"] += 1
                continue
            apart = largest_difference(stored, make(run, None).record)
            verdict = "equal" if apart == 0 else "within 0.1" if apart <= 0.1 + 1e-9 else "further apart"
            counts[verdict] += 1
            print(f"{name} {run.label} {run.protocol}: {verdict} ({apart:.3g})", flush=True)
    print(counts)


if __name__ == "__main__":
    main()
