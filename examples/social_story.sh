#!/bin/sh
# The story of docs/your-own-labels.md with all 5,000 people: its commands in their order (but for the search, which takes
# long), and how many of the labels are right. Run it in an empty folder; what it printed last is in that page.
set -e
python "$(dirname "$0")/social_graph.py"
topoter fit edges.csv --features nodes.csv --dry-run
topoter evaluate node --graph edges.csv --features nodes.csv --labels labels.csv --page evaluation.html
topoter label edges.csv --features nodes.csv --labels labels.csv -o all.csv
python -c '
import csv
truth = {row["person"]: row["job"] for row in csv.DictReader(open("everyone.csv"))}
rest = [row for row in csv.DictReader(open("all.csv")) if row["given"] == "false"]
right = sum(row["label"] == truth[row["id"]] for row in rest) / len(rest)
print(f"Right: {right:.1%} of {len(rest):,}")'
topoter fit edges.csv --features nodes.csv -o model.topoter
topoter anomalies model.topoter edges.csv --features nodes.csv
topoter embed model.topoter edges.csv --features nodes.csv -o z.parquet
topoter cluster z.parquet --graph edges.csv -o clusters.csv
topoter explore z.parquet --labels labels.csv --graph edges.csv -o map.html
