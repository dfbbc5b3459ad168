"""Do the tests notice when the code is wrong? `python tests/trust/mutants.py store` changes a place at a time.

cosmic-ray finds the places and makes the changes; one of those it offers is drawn for each place, so that an operator
with eleven replacements counts once. A mutant lives in a process of its own, forked from one that has imported PyTorch
and its like: nothing on the disk is changed. It is killed if a test fails or needs many times the processor time.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.util
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reliability import ROOT, read_rows, write_rows

_ABOUT_FOLDS = (
    "test_the_protocol_is_scikit_learns_pipeline",
    "test_labels_of_a_test_fold_change_its_score_and_nothing_else",
    "test_embeddings_of_a_test_fold_do_not_move_the_training_ones",
    "test_separable_classes_are_found_and_noise_is_not",
    "test_the_seed_shuffles_the_folds",
    "test_folds_are_counted_for_progress",
    "test_scores_of_a_method_on_real_graphs",
    "test_a_class_with_fewer_members_than_folds_is_named",
)
# What is changed, the tests of it, and further tests for those mutants that live through them.
TARGETS: dict[str, tuple[str, list[str], list[str]]] = {
    "transformation": (
        "topoter.pretext.transformation",
        ["pretext/test_pretext_transformation.py"],
        ["pretext/test_pretext_objectives.py", "structure/test_structure_history.py"],
    ),
    "decoders": ("topoter.pretext.decoders", ["pretext/test_pretext_decoders.py"], ["pretext", "test_kernels.py"]),
    "pair decoders": (
        "topoter.pretext.pair_decoders",
        ["pretext/test_pretext_pair_decoders.py"],
        ["methods/test_methods_links.py"],
    ),
    "probe": ("topoter.tasks.probe", ["tasks/test_tasks_probe.py"], []),
    "splits of nodes": (
        "topoter.datasets.splits",
        ["datasets/test_datasets_synthetic.py"],
        ["tasks/test_tasks_node_classification.py"],
    ),
    "splits of graphs": (
        "topoter.tasks.support_vectors",
        [f"tasks/test_tasks_graph_classification.py::{name}" for name in _ABOUT_FOLDS],
        [],
    ),
    "splits of links": ("topoter.tasks.link_split", ["tasks/test_tasks_link_split.py"], []),
    "store": (
        "topoter.experiments.store",
        ["experiments/test_experiments_store.py"],
        ["experiments/test_experiments_runner.py"],
    ),
}
LOG = Path(tempfile.gettempdir(), "mutant.log")
_LOADED = (
    "torch", "torch_geometric.data", "torch_geometric.utils", "sklearn.linear_model", "sklearn.model_selection",
    "scipy.sparse.linalg", "scipy.stats", "pyarrow.parquet", "pyarrow.csv", "numba", "msgspec", "filelock", "typer",
    "hypothesis", "pandas", "networkx", "rich.console",
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    line: int
    was: str
    now: str
    source: str

    def __str__(self) -> str:
        return f"line {self.line}: `{self.was}` became `{self.now}`"


def places(source: str) -> list[list[tuple[Any, int]]]:
    """What cosmic-ray offers, place by place: the operator and which of its occurrences this is."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes, idle, lines = list(ast_nodes(get_ast(source))), _what_does_not_run(source), source.splitlines()
    offered: dict[tuple[tuple[int, int], str], list[tuple[Any, int]]] = {}
    for name in sorted(operator_names()):
        kind = get_operator(name)
        if not name.startswith("core/") or kind.arguments():
            continue
        found = [place for node in nodes for place in kind().mutation_positions(node)]
        for occurrence, (start, _) in enumerate(found):
            named_only = lines[start[0] - 1].startswith("*,", start[1])  # a mark among parameters, no product
            if not named_only and not any(first <= start < last for first, last in idle):
                family = name.partition("_")[0]  # Add_Sub, Add_Mul, ... are one family
                offered.setdefault((start, family), []).append((kind(), occurrence))
    return [offered[key] for key in sorted(offered)]


def mutant(source: str, choices: list[tuple[Any, int]], number: int) -> Mutant | None:
    """One of the changes at a place, or none if cosmic-ray cannot make any that is Python."""
    from cosmic_ray.mutating import mutate_code

    for operator, occurrence in random.Random(number).sample(choices, len(choices)):
        try:
            changed = mutate_code(source, operator, occurrence)
            if changed is not None and ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)):
                return Mutant(*_difference(source, changed), changed)
        except (SyntaxError, AttributeError):  # the latter by cosmic-ray, over `except a.b:`
            continue
    return None


def _what_does_not_run(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations stand, which `from __future__ import annotations` keeps from running."""
    found: list[ast.AST | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            found.append(node.annotation)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found.append(node)
    return [((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in found if n is not None]


def _difference(before: str, after: str) -> tuple[int, str, str]:
    pairs = enumerate(zip(before.splitlines(), after.splitlines()), 1)
    return next(((line, a.strip(), b.strip()) for line, (a, b) in pairs if a != b), (0, "a line", "none"))


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Imports one module from a changed source."""

    def __init__(self, module: str, path: Path, source: str) -> None:
        self.module, self.path, self.source = module, path, source

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        return importlib.util.spec_from_loader(name, self, origin=str(self.path)) if name == self.module else None

    def get_filename(self, name: str) -> str:
        return str(self.path)

    def get_data(self, path: Any) -> bytes:
        return self.source.encode()


def survives(module: str, path: Path, source: str, tests: Sequence[str], seconds: int) -> tuple[bool, float]:
    """Whether all tests pass in a process with that source, and the processor time it took."""
    started, pid = time.monotonic(), os.fork()
    if pid == 0:
        os.setsid()
        descriptor = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        sys.meta_path.insert(0, _Changed(module, path, source))
        code: int = 1
        try:
            import pytest

            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header"]
            options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
            code = int(pytest.main([*options, *(str(ROOT / "tests" / test) for test in tests)]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    while True:
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() - started > 20 * seconds:  # it waits for something
            os.killpg(pid, signal.SIGKILL)
        time.sleep(0.02)
    return status == 0, used.ru_utime + used.ru_stime


def try_mutants(name: str, row: dict[str, Any], at_most: int, until: float) -> None:
    """Go on with the mutants of a part, in a random order that is the same every time."""
    module, tests, more = TARGETS[name]
    path = _path(module)
    source = path.read_text()
    found = places(source)
    row["of"] = len(found)
    order = random.Random(0).sample(range(len(found)), len(found))
    done = row["tried"] + row.get("nothing", 0)
    if done >= min(at_most, len(order)):
        return
    passed, used = survives(module, path, source, tests, 600)
    if not passed:
        sys.exit(f"{name}: the tests fail on the code as it is: {LOG.read_text()[-2000:]}")
    print(f"{name}: {len(found)} places; the tests take {used:.1f} s", flush=True)
    for number in order[done:at_most]:
        if time.monotonic() > until:
            break
        made = mutant(source, found[number], number)
        if made is None:  # nothing that is Python came of it
            row["nothing"] = row.get("nothing", 0) + 1
            continue
        if _lives(module, path, made, tests, more, int(4 * used) + 15):
            row["failed"][str(number)] = str(made)
            print(f"  {number} survived, {made}", flush=True)
        row["tried"] += 1
        _keep(row)
    print(f"{name}: {row['tried'] - len(row['failed'])} of {row['tried']} killed", flush=True)


def _lives(module: str, path: Path, made: Mutant, tests: Sequence[str], more: Sequence[str], seconds: int) -> bool:
    alive, _ = survives(module, path, made.source, tests, seconds)
    return alive and (not more or survives(module, path, made.source, more, 600)[0])


def _keep(row: dict[str, Any]) -> None:
    write_rows([*(other for other in read_rows() if other.get("case") != row["case"]), row])


def survivors(name: str, row: dict[str, Any]) -> None:
    """Try those again that survived, with the tests as they are now."""
    module, tests, more = TARGETS[name]
    path = _path(module)
    source = path.read_text()
    found = places(source)
    assert row["of"] == len(found), f"{path} was changed since: begin again"
    for number in map(int, list(row["failed"])):
        made = mutant(source, found[number], number)
        if made is None or not _lives(module, path, made, tests, more, 600):
            print(f"{name}: {number} is killed now", flush=True)
            del row["failed"][str(number)]


def _path(module: str) -> Path:
    return ROOT / "src" / Path(*module.split(".")).with_suffix(".py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", choices=[[], *TARGETS], help="only these")
    parser.add_argument("--at-most", type=int, default=10**9, help="mutants of a part, drawn at random")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop then; the next call goes on")
    parser.add_argument("--survivors", action="store_true", help="only those again that survived")
    parser.add_argument("--again", action="store_true", help="forget what was found before")
    asked = parser.parse_args()
    until = time.monotonic() + asked.seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for loaded in _LOADED:
            importlib.import_module(loaded)
    for name in asked.part or TARGETS:
        case = f"mutants of {_path(TARGETS[name][0]).relative_to(ROOT)}"
        kept = [] if asked.again else [row for row in read_rows() if row.get("case") == case]
        row = kept[0] if kept else {"line": "tests", "case": case, "tried": 0, "failed": {}}
        if asked.survivors:
            survivors(name, row)
        elif time.monotonic() < until:
            try_mutants(name, row, asked.at_most, until)
        _keep(row)


if __name__ == "__main__":
    main()
