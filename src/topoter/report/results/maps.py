"""Maps of embeddings before and after training, kept as JSON, so that a page can be made again without training."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from topoter.datasets.planetoid import CLASS_NAMES
from topoter.estimator import TopoTER
from topoter.experiments.recipes import load_recipe
from topoter.experiments.runs import save_text, versions
from topoter.report.charts import scatter_map
from topoter.report.embedding_map import project_2d
from topoter.report.markup import Html
from topoter.report.results.stored import read_json, written_by_topoter
from topoter.training import EpochRecord

MAPPED = ("cora",)  # one picture is enough to see what training does
SEED = 0


def map_path(folder: Path, dataset: str) -> Path:
    return folder / "maps" / f"{dataset}.json"


def parameters_of(dataset: str) -> dict[str, Any]:
    return load_recipe("node-classification", "topoter", dataset, "best").parameters


def has_map(folder: Path, dataset: str) -> bool:
    """Whether there is a map made with today's recipe."""
    path = map_path(folder, dataset)
    if not path.is_file():
        return False
    with written_by_topoter(path):
        return bool(read_json(path)["parameters"] == parameters_of(dataset))


def make_map(folder: Path, dataset: str, data: Any, on_epoch: Callable[[EpochRecord], None] | None = None) -> None:
    """Embed a labelled graph with the encoder as it starts and as training leaves it, and keep both on a plane."""
    start = time.perf_counter()
    parameters = parameters_of(dataset)
    # `on_epoch` sees the losses only; labels colour the dots and place none.
    trained = TopoTER(**parameters, random_state=SEED, on_epoch=on_epoch)
    untrained = TopoTER(**{**parameters, "epochs": 0}, random_state=SEED)
    content = {
        "dataset": dataset,
        "method": "topoter",
        "recipe": "best",
        "parameters": parameters,
        "seed": SEED,
        "maps": {
            "before training": _plane(untrained.fit_transform(data)),
            "after training": _plane(trained.fit_transform(data)),
        },
        "labels": data.y.tolist(),
        "label_names": list(CLASS_NAMES.get(dataset, [])),
        "seconds": time.perf_counter() - start,
        "versions": versions(),
    }
    save_text(map_path(folder, dataset), json.dumps(content) + "\n")


def _plane(z: Any) -> list[list[float]]:
    return [[round(float(x), 3), round(float(y), 3)] for x, y in project_2d(z, seed=SEED)]


def draw_maps(folder: Path) -> list[tuple[str, Html]]:
    """(dataset, drawing) of every map that is kept."""
    drawn = []
    for path in sorted((folder / "maps").glob("*.json")):
        with written_by_topoter(path):
            content = read_json(path)
            current = content["parameters"] == parameters_of(content["dataset"])
            drawing = scatter_map(
                content["maps"],
                content["labels"],
                label_names=content["label_names"] or None,
                title=f"{content['dataset']}: embeddings on a plane, coloured by class",
                caption=f"t-SNE of the embeddings of recipe “{content['recipe']}”, seed {content['seed']}. Point at a "
                "dot to find the same node in both panels; click a class to hide it."
                + ("" if current else " Made with other parameters than today's recipe."),
            )
            drawn.append((str(content["dataset"]), drawing))
    return drawn
