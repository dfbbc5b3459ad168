"""The campaign, long: `python tests/trust/soak.py`, which is `make soak`.

What came of it is kept in results/reliability.jsonl, a line per case, after every few attempts: a soak that was stopped
goes on where it was, and one that is done does nothing. At the end docs/reliability.md is written from that file.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch_geometric  # noqa: F401

import bad_input  # noqa: F401
import crowding  # noqa: F401
import kills  # noqa: F401
import numbers_and_bits  # noqa: F401
from campaign import CASES, Case, attempts
from reliability import PATH, read_rows, write_page, write_rows

ALL = CASES
_KEEP_EVERY = 20.0  # seconds

__all__ = ["ALL", "Case", "attempts"]


def soak(wanted: list[str], again: bool = False, at_most: int = 10**9) -> None:
    """A tenth of each case, then the next tenth: one that is stopped has tried all of them about as often."""
    chosen = [case for case in ALL if not wanted or any(part in str(case) for part in wanted)]
    rows = {case: _row_of(case, again) for case in chosen}
    for tenth in range(1, 11):
        for case in chosen:
            _go_on(case, rows[case], min(-(-case.long * tenth // 10), at_most))
    for case in chosen:
        print(f"{case}: {rows[case]['tried']:,} tried, {len(rows[case]['failed'])} failed", flush=True)


def _go_on(case: Case, row: dict[str, Any], last: int) -> None:
    kept = time.monotonic()
    for number, why in attempts(case, row["tried"] // case.each, last):
        row["tried"] = (number + 1) * case.each
        if why:
            row["failed"][str(number)] = why
            print(f"{case}, attempt {number}: {why}", flush=True)
        if time.monotonic() - kept > _KEEP_EVERY or number + 1 == last:
            _keep(row)
            kept = time.monotonic()


def _row_of(chosen: Case, again: bool) -> dict[str, Any]:
    found = [row for row in read_rows() if (row["line"], row.get("case")) == (chosen.line, chosen.name)]
    if found and not again:
        return found[0]
    return {"line": chosen.line, "case": chosen.name, "tried": 0, "failed": {}}


def _keep(row: dict[str, Any]) -> None:
    others = [other for other in read_rows() if (other["line"], other.get("case")) != (row["line"], row["case"])]
    write_rows([*others, row])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", help="only cases with one of these in their names")
    parser.add_argument("--again", action="store_true", help="forget what was found before")
    parser.add_argument("--at-most", type=int, default=10**9, help="attempts of a case")
    asked = parser.parse_args()
    soak(asked.part, asked.again, asked.at_most)
    print(write_page(), "from", PATH)
    print(json.dumps({"tried": sum(row.get("tried", 0) for row in read_rows())}))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
