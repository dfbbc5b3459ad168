"""The campaign's modules find their neighbours, and the tests of commands theirs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))

from browsing import browser  # noqa: F401  # a fixture
