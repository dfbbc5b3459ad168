"""The lowest versions that pyproject.toml allows, as requirements of pip: `make test-lowest` installs them."""

from __future__ import annotations

import re
from pathlib import Path

text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
listed = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
assert listed is not None
for name, lowest, rest in re.findall(r'"([\w-]+)>=([\d.]+)([^"]*)"', listed[1]):
    marker = rest.partition(";")[2]
    print(f"{name}=={lowest}{';' + marker if marker else ''}")
