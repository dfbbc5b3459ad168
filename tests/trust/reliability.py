"""results/reliability.jsonl, and docs/reliability.md made from it.

A line is either what a case came to, or a defect that the campaign found:

    {"line": "kills", "case": "kill -9: import", "tried": 100, "failed": {}}
    {"line": "kills", "defect": "what went wrong", "times": 3, "mended": "how", "test": "where"}
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATH = ROOT / "results" / "reliability.jsonl"
PAGE = ROOT / "docs" / "reliability.md"
TITLES = {
    "kills": "`kill -9` at a random moment; then the same command (`--resume`) ends with the identical result",
    "stops": "SIGTERM, SIGINT, SIGINT ignored at start, Ctrl-C twice, at a random moment; then likewise",
    "resources": "Full disk, read-only folder, no home folder, a memory limit, two writers at once",
    "bad input": "Generated and damaged files: no traceback, no hang, what is accepted equals a slow reader's graph",
    "hostile input": "Files made to do harm, a test each",
    "numbers": "Extreme values and extreme graphs: finite embeddings, or one line; kernels against their plain twins",
    "same bits": "The same seed in interpreters of their own, under load, half with 1 thread, half with 2: equal bits",
    "supply": "Core tests with the lowest versions declared on Python 3.10, and with the pinned ones on Python 3.13",
    "order": "Tests in random order (`make test-shuffled`), under load",
    "tests": "Mutants of the code, drawn at random: what fails now are those that no test noticed",
}


def read_rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in PATH.read_text().splitlines()] if PATH.exists() else []


def write_rows(rows: Iterable[dict[str, Any]]) -> None:
    order = list(TITLES)
    sorted_ = sorted(rows, key=lambda row: (order.index(row["line"]), "defect" in row, row.get("case", "")))
    PATH.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in sorted_))


def page(rows: list[dict[str, Any]]) -> str:
    """The figures, line by line."""
    text = (ROOT / "tests" / "trust" / "reliability.head.md").read_text()
    text += "| what | tried | failed at first | fail now |\n|---|---:|---:|---:|\n"
    for line, title in TITLES.items():
        cases = [row for row in rows if row["line"] == line and "case" in row]
        first = sum(row["times"] for row in rows if row["line"] == line and "defect" in row)
        tried, now = sum(row["tried"] for row in cases), sum(len(row["failed"]) for row in cases)
        if cases or first:
            text += f"| {title} | {tried:,} | {first} | {now} |\n"
    for line in TITLES:
        cases = [row for row in rows if row["line"] == line and "case" in row]
        defects = [row for row in rows if row["line"] == line and "defect" in row]
        if not cases and not defects:
            continue
        text += f"\n## {line.capitalize()}\n"
        if cases:
            text += "\n| case | tried | fail now |\n|---|---:|---:|\n"
        for row in cases:
            places = f" ({row['of']} places)" if "of" in row else ""
            text += f"| {row['case']}{places} | {row['tried']:,} | {len(row['failed'])} |\n"
        if defects:
            text += "\nFound and mended:\n\n"
        for row in defects:
            text += f"- {row['defect']} ({row['times']} at first). {row['mended']} Held by `{row['test']}`.\n"
        for row in cases:
            for number, why in row["failed"].items():
                what = "Survived" if "of" in row else "Open"
                text += f"\n{what}: {row['case']}, attempt {number}: {why}\n"
    return text


def write_page() -> Path:
    PAGE.write_text(page(read_rows()))
    return PAGE
