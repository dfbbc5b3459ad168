"""The lowest versions that pyproject.toml allows, as requirements of pip: `make test-lowest` installs them."""

from __future__ import annotations

import re
from pathlib import Path

text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
for listed in ("dependencies", "scale", "molecules"):
    found = re.search(rf"^{listed} = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    for name, lowest, rest in re.findall(r'"([\w-]+)>=([\d.]+)([^"]*)"', found[1]):
        marker = rest.partition(";")[2]
        print(f"{name}=={lowest}{';' + marker if marker else ''}")
