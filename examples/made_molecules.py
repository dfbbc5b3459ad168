"""Writes molecules.csv: chains and rings with a side group, and an acid or an ester of the very same atoms.

python examples/made_molecules.py molecules.csv
topoter fit molecules.csv --smiles-column smiles -o model.topoter
topoter evaluate graph --graph molecules.csv --smiles-column smiles --label-column acid
"""

from __future__ import annotations

import sys
from pathlib import Path

BODIES = ("CC{}C", "CCC{}C", "CC(C){}CC", "CCCC{}CC", "C1{}CCC1", "c1{}ccc1", "C1{}CC1", "CC{}CCCC")
SIDES = ("C", "N", "O", "F", "Cl", "Br", "CC", "C#N", "OC", "S")
# An acid, or the ester in which a carbon has moved from the body behind the oxygen.
ENDS = {"yes": "(C(=O)O)C", "no": "(C(=O)OC)"}


def molecules() -> list[tuple[str, str, str]]:
    """Name, SMILES, and whether it is an acid: 160 of them."""
    found = []
    for body in BODIES:
        for side in SIDES:
            for acid, end in ENDS.items():
                middle = f"C({side})C{end}"
                if body[0] == "c":  # an atom of an aromatic ring has room for one bond only
                    middle = f"c({side})c(C{end})"
                found.append((f"m{len(found):03d}", body.format(middle), acid))
    return found


def write(path: Path) -> None:
    rows = "".join(f"{name},{smiles},{acid}\n" for name, smiles, acid in molecules())
    path.write_text("name,smiles,acid\n" + rows, encoding="utf-8")


if __name__ == "__main__":
    made = Path(*sys.argv[1:2] or ["molecules.csv"])
    write(made)
    print(made)
