"""Molecules as graphs, read by RDKit: atoms are nodes, bonds are edges, and their types become features."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from topoter.errors import DataError, UsageError, unknown_name
from topoter.graphs.archives import read_unpacked
from topoter.graphs.arrow import pa
from topoter.graphs.features import table_features
from topoter.graphs.headers import open_table
from topoter.graphs.ids import NodeIds, arrow_ids, user_ids
from topoter.graphs.preparation import Preparation
from topoter.graphs.problems import explained, first_line, keep_good
from topoter.graphs.raw_sets import RawSet
from topoter.graphs.text import open_binary

SUFFIXES = (".sdf", ".sd")
BONDS = ("single", "double", "triple", "aromatic")  # kinds that are counted at each atom


def is_sdf(path: Path) -> bool:
    """Whether it is a file of molecules by its name, gzipped or not."""
    return Path(path.name.lower().removesuffix(".gz")).suffix in SUFFIXES


def read_smiles(
    path: Path,
    column: str,
    *,
    preparation: Preparation | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    drop_bad: bool = False,
) -> RawSet:
    """A table with a row for each molecule; its ids are those in `id_column`, or in the first column if they differ."""
    chem = _rdkit()
    table = open_table(path, asked_columns=[column, id_column, label_column], drop_bad=drop_bad, single=True)
    arrow = table.read(table.names, as_text=[column])
    written = [text or "" for text in arrow[column].to_pylist()]
    read = [_sanitized(chem, chem.MolFromSmiles(text.strip(), sanitize=False)) for text in written]
    keep = table.keep_good(
        np.array([isinstance(mol, str) for mol in read]),
        lambda row: f"{written[row]!r} is no molecule: {read[row]}",
        "rows that hold no molecule",
    )
    rows = np.flatnonzero(keep)
    named = id_column or table.names[0]
    (ids,) = table.ids(arrow, [named])
    values = user_ids(ids.take(rows).combine_chunks())
    labels = None if label_column is None else arrow[label_column].take(rows).to_pylist()
    unused = [name for name in table.names if name not in (column, named, label_column)]
    notes = table.notes + ([f"{path}: ignored the columns {', '.join(unused)}."] if unused else [])
    ids_found = _ids(values, id_column, f"the column {named!r}", path, notes)
    return molecule_set([read[row] for row in rows], str(path), ids_found, preparation, labels, notes)


def read_sdf(
    path: Path,
    *,
    preparation: Preparation | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    drop_bad: bool = False,
) -> RawSet:
    """An SDF file; its ids are the titles, if they differ, or those of the property `id_column`."""
    if not is_sdf(path):
        raise UsageError(
            f"{path} is no set of graphs by itself: name its column of graph ids (--graph-column) or of SMILES "
            "(--smiles-column)."
        )
    chem = _rdkit()
    with explained(f"{path} is not an SDF file"), closing(open_binary(path)) as file:
        content = read_unpacked(file, path)
    supplier = chem.ForwardSDMolSupplier(io.BytesIO(content), sanitize=False, removeHs=False)
    read = [_sanitized(chem, mol) for mol in supplier]
    notes: list[str] = []
    if not read:
        raise DataError(f"{path} is empty: it holds no molecule.")
    keep = keep_good(
        np.array([isinstance(mol, str) for mol in read]),
        lambda row: f"{path}, molecule {row + 1}: {read[row]}.",
        drop_bad,
        notes,
        "records that hold no molecule",
    )
    mols: list[Any] = [mol for mol, good in zip(read, keep) if good]
    values = [_property(mol, id_column or "_Name") for mol in mols]
    for name in (id_column, label_column):
        if name is not None and not any(mol.HasProp(name) for mol in mols):
            raise unknown_name("property", name, sorted({key for mol in mols for key in mol.GetPropNames()}))
    labels = None if label_column is None else [_property(mol, label_column) for mol in mols]
    ids = _ids(values, id_column, f"the property {id_column!r}" if id_column else "the titles", path, notes)
    return molecule_set(mols, str(path), ids, preparation, labels, notes)


def molecule_set(
    mols: Sequence[Any],
    name: str,
    ids: NodeIds,
    preparation: Preparation | None = None,
    labels: list[Any] | None = None,
    notes: Sequence[str] = (),
) -> RawSet:
    """RDKit's molecules; a row for every atom: its element, charge and hydrogens, and its bonds of each kind."""
    if not len(mols):
        raise DataError(f"{name} is empty: it holds no molecule.")
    sizes = np.array([mol.GetNumAtoms() for mol in mols])
    if (sizes == 0).any():
        raise DataError(f"{name}: molecule {ids[int((sizes == 0).argmax())]!r} has no atoms.")
    starts = np.cumsum(sizes) - sizes
    bonds = [
        (start + bond.GetBeginAtomIdx(), start + bond.GetEndAtomIdx(), str(bond.GetBondType()).lower())
        for start, mol in zip(starts.tolist(), mols)
        for bond in mol.GetBonds()
    ]
    edge_index = np.array([bond[:2] for bond in bonds], dtype=np.int64).reshape(-1, 2).T
    kinds = np.array([bond[2] for bond in bonds])
    atoms = [atom for mol in mols for atom in mol.GetAtoms()]
    columns: dict[str, Any] = {
        "atom": [atom.GetSymbol() for atom in atoms],
        "charge": [atom.GetFormalCharge() for atom in atoms],
        "hydrogens": [atom.GetTotalNumHs() for atom in atoms],
    }
    for kind in BONDS:
        columns[f"{kind} bonds"] = np.bincount(edge_index[:, kinds == kind].ravel(), minlength=len(atoms))
    raw = RawSet(name, ids, sizes, edge_index, labels=labels, notes=list(notes))
    return raw.with_features(table_features(pa.table(columns), f"{name}, atoms", preparation=preparation))


def _rdkit() -> Any:
    """RDKit's Chem, which says nothing on stderr: what is wrong is said by us, once."""
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        raise UsageError('Molecules need RDKit: pip install "topoter[molecules]".') from None
    rdBase.DisableLog("rdApp.*")
    return Chem


def _sanitized(chem: Any, mol: Any) -> Any:
    """The molecule without its hydrogens, or what is wrong with it."""
    if mol is None:
        return "RDKit cannot read it"
    try:
        chem.SanitizeMol(mol)
        mol = chem.RemoveHs(mol)
    except Exception as error:  # RDKit's own kinds, each a ValueError or a RuntimeError
        return first_line(error)
    return mol if mol.GetNumAtoms() else "it has no atoms"


def _property(mol: Any, name: str) -> str | None:
    return mol.GetProp(name).strip() or None if mol.HasProp(name) else None


def _ids(values: Any, asked: str | None, where: str, path: Path, notes: list[str]) -> NodeIds:
    """Ids that differ; others are an error if they were asked for, else molecules are numbered, and it is said."""
    listed = list(values)
    if None not in listed and "" not in listed and len(set(listed)) == len(listed):
        return user_ids(arrow_ids(listed))
    if asked is not None:
        raise DataError(f"{path}: {where} does not name each molecule: a value is missing or stands twice.")
    notes.append(f"{path}: {where} do not name each molecule, so they are numbered from 0 (or give --id-column).")
    return np.arange(len(listed))
