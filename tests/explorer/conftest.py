"""The browser of the report's tests, for the explorer's page."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))

from browsing import browser  # noqa: F401  # a fixture
