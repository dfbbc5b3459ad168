"""Worlds in which a dataset is not there."""

from pathlib import Path

import pytest


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No TOPOTER_DATA and a user cache with nothing in it."""
    monkeypatch.delenv("TOPOTER_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "topoter" / "data"


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if neither graphdatascience nor grakel were installed."""
    monkeypatch.setattr("topoter.datasets.embedded.find_spec", lambda package: None)
