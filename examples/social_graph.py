"""A made-up social network to try things on: 5,000 people in eight circles, with what one knows of them in a table.

    python examples/social_graph.py

writes edges.csv, nodes.csv (numbers, categories, dates, flags, gaps) and labels.csv (what every tenth of them does).
`everyone.csv` holds what the others do: for you to compare with, not for any command.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

PEOPLE, CIRCLES, DEGREE = 5_000, 8, 8
JOBS = ("baker", "carpenter", "doctor", "farmer", "teacher")
CITIES = ("Bern", "Genoa", "Lima", "Oslo", "Quito", "Riga")


def write(folder: Path, people: int = PEOPLE, seed: int = 0) -> None:
    """Write the four files. A circle decides who knows whom, and in part who does, earns and lives what and where."""
    rng = np.random.default_rng(seed)
    circle = rng.integers(0, CIRCLES, people)
    job = np.where(rng.random(people) < 0.85, circle % len(JOBS), rng.integers(0, len(JOBS), people))
    ids = [f"p{number:05d}" for number in rng.permutation(people) * 3]

    members = [np.flatnonzero(circle == one) for one in range(CIRCLES)]
    first = rng.integers(0, people, people * DEGREE // 2)
    near = np.array([rng.choice(members[one]) for one in circle[first]])
    second = np.where(rng.random(len(first)) < 0.75, near, rng.integers(0, people, len(first)))
    edges = {(min(pair), max(pair)) for pair in zip(first.tolist(), second.tolist()) if pair[0] != pair[1]}

    age = np.clip(rng.normal(35 + 3 * (circle % 4), 11, people), 16, 95).round().astype(int)
    income = np.exp(rng.normal(10 + 0.25 * (job == 2), 0.9, people)).round(2)
    city = np.where(rng.random(people) < 0.4, circle % len(CITIES), rng.integers(0, len(CITIES), people))
    joined = np.datetime64("2015-01-01") + (rng.integers(0, 2500, people) + 150 * (circle % 3))
    gap = rng.random((people, 2)) < (0.08, 0.06)

    with (folder / "edges.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("source", "target"), *((ids[a], ids[b]) for a, b in sorted(edges))])
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "age", "income", "city", "joined", "newsletter"])
        for i in range(people):
            known = ("" if gap[i, 0] else age[i], "" if gap[i, 1] else income[i])
            writer.writerow([ids[i], *known, CITIES[city[i]], joined[i], bool(rng.random() < 0.3 + 0.05 * circle[i])])
    labelled = np.sort(rng.permutation(people)[: people // 10])
    for name, rows in (("labels.csv", labelled), ("everyone.csv", np.arange(people))):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows([("person", "job"), *((ids[i], JOBS[job[i]]) for i in rows)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="where the files go (else here)")
    target = parser.parse_args().folder
    target.mkdir(parents=True, exist_ok=True)
    write(target)
    print("\n".join(str(target / name) for name in ("edges.csv", "nodes.csv", "labels.csv", "everyone.csv")))
