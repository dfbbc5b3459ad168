"""Every package that topoter brings is pinned, installed as pinned, and as its author delivered it."""

from __future__ import annotations

from pathlib import Path

import supply
from packaging.requirements import Requirement

TEXT = (supply.ROOT / "pyproject.toml").read_text()
PINS = supply.pinned((supply.ROOT / "constraints.txt").read_text())


def test_what_is_declared_is_pinned_within_its_bounds():
    for requirement in supply.declared(TEXT, (*supply.EXTRAS, "docs")):
        name = supply.canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate():
            continue
        (pin,) = PINS[name].specifier
        assert requirement.specifier.contains(pin.version), f"{PINS[name]} is not {requirement}"


def test_what_is_installed_is_what_is_pinned():
    packages = list(supply.everything(supply.declared(TEXT, ())))
    assert len(packages) > 15
    assert supply.versions_that_differ(packages, PINS) == []
    assert supply.versions_that_differ(packages, {**PINS, "numpy": Requirement("numpy==1.0")}) != []


def test_a_changed_file_is_noticed(tmp_path: Path, monkeypatch):
    (package,) = [one for one in supply.everything(supply.declared(TEXT, ())) if one.metadata["Name"] == "safetensors"]
    assert supply.files_that_differ(package) == []
    changed = next(file for file in package.files if str(file).endswith("__init__.py"))
    copy = tmp_path / "changed.py"
    copy.write_bytes(Path(str(changed.locate())).read_bytes() + b"#")
    real = type(changed).locate
    monkeypatch.setattr(type(changed), "locate", lambda file: copy if file == changed else real(file))
    assert supply.files_that_differ(package) == [f"safetensors: {changed} was changed"]
