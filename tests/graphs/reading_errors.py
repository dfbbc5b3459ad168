"""What `read_graph` says of a file that it cannot use."""

from __future__ import annotations

from pathlib import Path

import pytest

from topoter.errors import DataError, UsageError
from topoter.graphs import read_graph


def error_of(path: Path, **options) -> str:
    """The one line, without the folder's name."""
    with pytest.raises((DataError, UsageError)) as caught:
        read_graph(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(f"{path.parent}/", "")
