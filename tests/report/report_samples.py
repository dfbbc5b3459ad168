"""A demo run, small, with names that try to break out of the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from topoter.training import EpochRecord

TYPES = ("accuracy_add", "accuracy_delete", "accuracy_keep_disconnected", "accuracy_keep_connected")
HOSTILE = "<script>alert(1)</script>"


def demo_arguments(**changed: Any) -> dict[str, Any]:
    """What `write_demo_report` takes, small; every text a user could supply holds `HOSTILE`."""
    generator = np.random.default_rng(0)
    labels = np.arange(90) % 3
    before = generator.normal(size=(90, 2))
    keys = ("method", "val_mean", "val_std", "test_mean", "test_std", "paper_mean", "paper_std")
    rows = [
        dict(zip(keys, values))
        for values in (
            ("propagated", 79.8, 0.0, 82.5, 0.0, None, None),
            ("raw" + HOSTILE, 57.2, 0.0, 58.1, 0.0, 47.9, 0.4),
            ("topoter", 81.9, 0.3, 83.3, 0.4, 83.7, 0.3),
            ("gae", 77.1, 0.8, 78.2, 0.9, 80.9, 0.4),
        )
    ]
    history = [
        EpochRecord(e, 1.5 - e / 40, {"prior_entropy": 1.304, **dict(zip(TYPES, (0.1, e / 20, None, 0.5)))})
        for e in range(1, 21)
    ]
    arguments = {
        "dataset": "Cora" + HOSTILE,
        "rows": rows,
        "history": history,
        "z2d": {"before training" + HOSTILE: before, "after": before + labels[:, None] * 5},
        "labels": labels,
        "label_names": ["Theory", "Neural networks", HOSTILE],
        "parameters": {"order": 2, "patience": None, HOSTILE: HOSTILE},
        "seconds": 74.2,
        "commands": ["topoter demo --seeds 5", f"echo '{HOSTILE}'"],
    }
    return {**arguments, **changed}
