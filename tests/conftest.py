"""What all tests share: PyG imported quietly, and where the published data are."""

import os
import warnings
from pathlib import Path

import pytest

with warnings.catch_warnings():
    # PyG's import uses what recent torch versions deprecate; not ours to mend.
    warnings.simplefilter("ignore")
    import torch_geometric  # noqa: F401


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the published files; tests that need it are skipped without."""
    root = os.environ.get("TOPOTER_DATA")
    if not root:
        pytest.skip("needs the published files: set TOPOTER_DATA")
    return Path(root)
