"""What all tests share: PyG imported quietly, and where the published data are."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

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


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Tiny graphs: starting a second thread for each operation would cost more than the work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
