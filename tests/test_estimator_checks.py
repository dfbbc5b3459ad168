"""scikit-learn's own checks of an estimator, all that it has for TopoTER, and why some are left out."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from topoter import TopoTER

pytest.importorskip("sklearn", "1.6", reason="scikit-learn lists its checks since 1.6")
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import validate_data

pytestmark = pytest.mark.usefixtures("one_thread")


def ring(x: np.ndarray) -> Data:
    """A table as a graph: its rows are nodes, each connected with the next."""
    nodes = torch.arange(len(x))
    return Data(x=torch.tensor(x, dtype=torch.float32), edge_index=torch.stack([nodes, nodes.roll(1)]))


class OnTables(TopoTER):
    """TopoTER for those checks that pass a table where it takes a graph; nothing else is changed."""

    def fit(self, X: Any, y: Any = None) -> OnTables:
        return super().fit(ring(validate_data(self, X, ensure_min_samples=2)))

    def transform(self, X: Any) -> Any:
        return super().transform(ring(validate_data(self, X, reset=False)) if hasattr(self, "model_") else X)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return self.fit(X).transform(X)


# Those that pass no data: TopoTER itself goes through them.
WITHOUT_DATA = {
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_estimators_unfitted",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_transformers_unfitted",
    "check_transformer_n_iter",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
}
LEFT_OUT = {
    "check_methods_sample_order_invariance": "a node's row depends on its neighbours, and so on the order of a ring",
    "check_methods_subset_invariance": "a node's row depends on its neighbours: nodes cut out of a graph lose theirs",
    "check_transformer_preserve_dtypes": "embeddings are float32, whatever the features are",
    "check_array_api_input": "scikit-learn itself skips it unless SCIPY_ARRAY_API is set; graphs are torch tensors",
}


def name_of(check: Any) -> str:
    return check.func.__name__ if isinstance(check, partial) else check.__name__


ALL = [(name_of(check), check) for _, check in estimator_checks_generator(OnTables(epochs=1, out_channels=3))]


@pytest.mark.filterwarnings("ignore")  # the checks' own, about what they pass
@pytest.mark.parametrize(
    ("name", "check"), [pytest.param(name, check, id=name) for name, check in ALL if name not in LEFT_OUT]
)
def test_a_check_of_scikit_learn(name, check):
    check((TopoTER if name in WITHOUT_DATA else OnTables)(epochs=1, out_channels=3))


def test_every_check_named_here_exists_and_each_left_out_has_a_reason():
    names = {name for name, _ in ALL}
    assert names >= WITHOUT_DATA
    assert set(LEFT_OUT) <= names | {"check_array_api_input"}
    assert all(len(reason) > 20 for reason in LEFT_OUT.values())
