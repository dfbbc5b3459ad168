"""Methods of packages that are not installed: one line that names the package and the command to get it."""

from __future__ import annotations

import sys

import pytest

from topoter.datasets import block_model, load_graphs
from topoter.errors import TopoterError
from topoter.methods import build

NEEDED = [
    ("grakel", "wl", "graph"),
    ("grakel", "rw", "graph"),
    ("grakel", "mlg", "graph"),
    ("gensim", "dgk", "graph"),
    ("gensim", "node2vec", "graph"),
    ("gensim", "sub2vec", "graph"),
    ("gensim", "graph2vec", "graph"),
    ("gensim", "deepwalk", "link"),
    ("gensim", "deepwalk", "node"),
    ("gensim", "deepwalk+features", "node"),
    ("gensim", "node2vec", "node"),
]


@pytest.mark.parametrize(("package", "name", "task"), NEEDED)
def test_a_package_that_is_missing_is_told_with_the_command_that_installs_it(monkeypatch, package, name, task):
    for module in [known for known in sys.modules if known.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)  # what Python does for a package that is not there
    data = load_graphs("mutag")[:4] if task == "graph" else block_model(30, 2, 4.0, 3, seed=0)
    with pytest.raises(TopoterError, match=r"needs \w+: pip install .topoter\[baselines\].\.") as caught:
        build(name, task, {}).fit(data, 0)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 1
