"""The palette: ten classes that all readers can tell apart, on paper and on a dark screen."""

import re

import numpy as np
import pytest

from topoter.report.page import asset

# What the three kinds of dichromats see of linear RGB (Machado, Oliveira, Fernandes 2009, severity 1).
VISION = {
    "all cones": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def variables(theme: str) -> dict[str, str]:
    """The custom properties of a theme: a name is defined first for light, then for dark."""
    found = re.findall(r"--(\w+): (#\w{6})", asset("report.css"))
    names = [name for name, _ in found]
    pick = (lambda at: names.index(names[at]) == at) if theme == "light" else (lambda at: names.index(names[at]) != at)
    return {name: value for at, (name, value) in enumerate(found) if pick(at)}


def linear(code: str) -> np.ndarray:
    rgb = np.array([int(code[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    light, dark = sorted((float(linear(code) @ [0.2126, 0.7152, 0.0722]) for code in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_graphics_stand_out(theme: str) -> None:
    colors = variables(theme)
    for name in ("ink", "soft", "accent", "better", "worse"):
        for ground in ("paper", "page"):
            assert contrast(colors[name], colors[ground]) >= 4.5, (name, ground)
    for index in range(10):
        # Lines use the first six; the rest fill dots, which are told apart from each other, too.
        assert contrast(colors[f"c{index}"], colors["paper"]) >= (3.0 if index < 6 else 1.95), index


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_classes_stay_apart_for_every_vision(theme: str, vision: str) -> None:
    colors = variables(theme)
    seen = np.clip(np.array([linear(colors[f"c{index}"]) for index in range(10)]) @ np.array(VISION[vision]).T, 0, 1)
    lab = np.cbrt(seen @ TO_LMS.T) @ TO_OKLAB.T
    distance = np.linalg.norm(lab[:, None] - lab[None], axis=-1) + np.eye(10)
    assert distance.min() >= 0.095  # five times what an eye can just tell, about 0.02
