"""Rows of features scaled by themselves, however large or small their values are."""

from __future__ import annotations

import pytest
import torch

from topoter.structure.features import FEATURE_SCALINGS


@pytest.mark.parametrize("scaling", ["sum", "unit"])
@pytest.mark.parametrize("size", [1e30, 1e-30, 5e37, 1e-44])
def test_rows_of_extreme_values_keep_their_direction(scaling, size):
    row = torch.tensor([[3.0, 0.0, 4.0]])
    scaled = FEATURE_SCALINGS[scaling](torch.cat([row, row * size, torch.zeros(1, 3)]))
    tolerance = 0.1 if size < 1e-40 else 1e-6  # a subnormal number has few digits itself
    torch.testing.assert_close(scaled[1], scaled[0], atol=tolerance, rtol=0)
    assert (scaled[2] == 0).all()
