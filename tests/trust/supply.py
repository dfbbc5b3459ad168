"""What is installed is what was asked for: `python tests/trust/supply.py`, which is `make audit`. It needs no network.

It follows the requirements of topoter and its extras to every package they bring, and says which is not pinned in
constraints.txt, which is installed in another version, and which file is not as its package delivered it (by the
hashes in RECORD). It knows nothing of published weaknesses: for those, give constraints.txt to pip-audit where there
is a network.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
EXTRAS = ("dev", "demo", "baselines", "search", "cluster", "scale", "molecules")  # as `make install`


def declared(text: str, extras: tuple[str, ...] = EXTRAS) -> list[Requirement]:
    """The requirements of pyproject.toml."""
    lists = [re.search(rf"^{name} = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL) for name in ("dependencies", *extras)]
    quoted = [word for found in lists if found for word in re.findall(r'"([^"]+)"', found[1])]
    return [Requirement(word) for word in quoted]


def pinned(text: str) -> dict[str, Requirement]:
    found = [Requirement(line) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


@cache
def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def everything(wanted: list[Requirement]) -> Iterator[Distribution]:
    """The installed packages that these requirements bring, each once."""
    seen: set[tuple[str, frozenset[str]]] = set()
    given: set[str] = set()
    waiting = list(wanted)
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in seen or (
            requirement.marker and not requirement.marker.evaluate(dict(default_environment()))
        ):
            continue
        seen.add((name, extras))
        found = _installed(name)
        if found is None:
            continue  # pip would have said so: an extra of another package that is not asked for
        if name not in given:
            given.add(name)
            yield found
        for line in found.requires or ():
            needed = Requirement(line)
            where = [{**default_environment(), "extra": extra} for extra in ("", *extras)]
            if needed.marker is None or any(needed.marker.evaluate(dict(each)) for each in where):
                needed.marker = None
                waiting.append(needed)


def versions_that_differ(packages: list[Distribution], pins: dict[str, Requirement]) -> list[str]:
    problems = []
    for package in packages:
        pin = pins.get(canonicalize_name(package.metadata["Name"]))
        if pin is None or (pin.marker and not pin.marker.evaluate()):
            problems.append(f"{package.metadata['Name']} {package.version} is not pinned in constraints.txt")
        elif not pin.specifier.contains(package.version, prereleases=True):
            problems.append(f"{package.metadata['Name']} {package.version} is installed, {pin} is pinned")
    return sorted(problems)


def files_that_differ(package: Distribution) -> list[str]:
    """Files of a package whose content is not that of its RECORD."""
    problems = []
    for file in package.files or ():
        if file.hash is None:
            continue
        path = Path(str(file.locate()))
        if not path.is_file():
            problems.append(f"{package.metadata['Name']}: {file} is missing")
            continue
        with path.open("rb") as stream:
            digest = hashlib.new(file.hash.mode, stream.read()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value:
            problems.append(f"{package.metadata['Name']}: {file} was changed")
    return problems


def main() -> None:
    pins = pinned((ROOT / "constraints.txt").read_text())
    packages = sorted(everything(declared((ROOT / "pyproject.toml").read_text())), key=lambda one: one.metadata["Name"])
    problems = versions_that_differ(packages, pins)
    problems += [problem for package in packages for problem in files_that_differ(package)]
    for problem in problems:
        print(problem)
    print(f"{len(packages)} packages, {len(problems)} problems. Published weaknesses are not looked at.")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
