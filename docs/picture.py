"""Draw docs/cora.png, the README's picture, from the map that the runs left; it needs matplotlib."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).parent.parent
content = json.loads((ROOT / "results" / "maps" / "cora.json").read_text(encoding="utf-8"))
labels = np.array(content["labels"])
colors = plt.get_cmap("tab10").colors

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), facecolor="white")
for axis, (title, points) in zip(axes, content["maps"].items()):
    places = np.array(points)
    for number, name in enumerate(content["label_names"]):
        chosen = labels == number
        axis.scatter(*places[chosen].T, s=4, color=colors[number], linewidths=0, label=name.replace("_", " "))
    axis.set_title(title, fontsize=11)
    axis.axis("off")
handles, names = axes[0].get_legend_handles_labels()
figure.legend(handles, names, loc="lower center", ncol=4, frameon=False, fontsize=9, markerscale=3)
figure.tight_layout(rect=(0, 0.1, 1, 1))
figure.savefig(ROOT / "docs" / "cora.png", dpi=90)
