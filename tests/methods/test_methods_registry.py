"""One registry for all tasks: every method says what it serves, and methods of one's own are found like ours."""

from __future__ import annotations

import sys

import pytest

from topoter.errors import UsageError
from topoter.methods import TASKS, Method, build, method, methods_of

OWN = '''
import numpy as np
from topoter.methods import Fitted, Method

class Degrees(Method):
    """How many edges a node has."""
    tasks = ("node",)

    def fit(self, graph, seed, callbacks=()):
        return Fitted(embedding=lambda g: np.bincount(g.edge_index[0], minlength=g.num_nodes)[:, None].astype(float))

not_a_method = 3
'''


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "degree_method.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield "degree_method"
    sys.modules.pop("degree_method", None)


def test_every_task_has_methods_and_topoter_serves_them_all():
    for task in TASKS:
        assert "topoter" in methods_of(task)
    assert {"raw", "propagated", "dgi", "gae"} <= set(methods_of("node"))
    assert "wl" in methods_of("graph")
    assert "wl" not in methods_of("node")


def test_a_method_of_ones_own_is_named_by_its_import_path(own_module):
    name = f"{own_module}:Degrees"
    assert issubclass(method(name, "node"), Method)


@pytest.mark.parametrize(
    ("name", "task", "message"),
    [
        ("gaee", "node", r"Unknown method 'gaee'\. Did you mean 'gae'\?"),
        ("wl", "node", r"The method 'wl' serves graph, not node\. For node there are: "),
        ("gae", "nodes", r"Unknown task 'nodes'\. Did you mean 'node'\?"),
        ("no_such_module:Mine", "node", r"The method 'no_such_module:Mine' cannot be imported: No module named"),
        ("degree_method:Mine", "node", r"cannot be imported: module 'degree_method' has no attribute 'Mine'"),
        ("degree_method:not_a_method", "node", r"must be a class with fit\(graph, seed, callbacks\)\. Got 3"),
        ("degree_method:Degrees", "link", r"The method 'degree_method:Degrees' serves node, not link\."),
    ],
)
def test_what_cannot_be_had_is_said_in_one_line(own_module, name, task, message):
    with pytest.raises(UsageError, match=message) as caught:
        method(name, task)
    assert "\n" not in str(caught.value)


def test_a_parameter_that_a_method_does_not_have_is_named():
    with pytest.raises(UsageError, match=r"The method 'dgi' cannot be made with these parameters: .*colour"):
        build("dgi", "node", {"colour": "red"})
