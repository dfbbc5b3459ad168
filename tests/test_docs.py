"""The documentation builds without a warning, and the commands it shows exist."""

from __future__ import annotations

import inspect
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import topoter
from topoter.cli import app

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
README = ROOT / "README.md"


def test_the_documentation_builds_strictly_and_loads_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path / "site")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    built = {path.stem if path.stem != "index" else path.parent.name for path in tmp_path.rglob("*.html")}
    assert {page.stem for page in PAGES} - {"index"} <= built
    reference = (tmp_path / "site" / "api" / "index.html").read_text(encoding="utf-8")
    assert 'id="topoter.TopoTER.fit_transform"' in reference
    own = (tmp_path / "site" / "your-own-graph" / "index.html").read_text(encoding="utf-8")
    assert "GridSearchCV" in own, "an example is on the page"
    sources = re.findall(r'(?:<script[^>]*src|<link[^>]*stylesheet[^>]*href)="([^"]+)"', own)
    assert sources
    assert not any(source.startswith("http") for source in sources)


def test_examples_in_the_pages_are_the_files() -> None:
    """Pages hold them as they are, so that they read well where nothing is built."""
    held = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert "--8<--" not in text
        for block in re.findall(r"^```python\n(\"\"\".*?)^```", text, re.MULTILINE | re.DOTALL):
            held[block] = page.name
    files = {path.read_text(encoding="utf-8"): path.name for path in (ROOT / "examples").glob("*.py")}
    assert {files.get(block) for block in held} >= {
        "grid_search.py",
        "own_method.py",
        "own_dataset.py",
        "own_decoder.py",
    }
    assert all(block in files for block in held), "an example was changed in one place only"


def test_the_reference_tells_what_each_name_does_where_nothing_is_built() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    names = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert names
    for name in names:
        found = pkgutil.resolve_name(name)
        first = " ".join((inspect.getdoc(found) or "").split("\n\n")[0].split())
        file = Path(inspect.getsourcefile(found) or "").relative_to(Path(topoter.__file__).parents[1])
        assert f"| `{name}` | `src/{file}` | {first} |" in text


def shown_commands() -> list[str]:
    """Every line of a page's code blocks that calls topoter."""
    lines, inside = set(), False
    for page in (*PAGES, README):
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith("```"):
                inside = not inside
            elif inside and line.startswith("topoter "):
                lines.add(line)
    return sorted(lines)


@pytest.mark.parametrize("line", shown_commands())
def test_a_command_in_the_documentation_exists_with_its_options(line: str) -> None:
    words = shlex.split(line)
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert words[1] in commands
    known = {
        option for parameter in commands[words[1]].params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    assert {word for word in words[2:] if word.startswith("-")} <= known
