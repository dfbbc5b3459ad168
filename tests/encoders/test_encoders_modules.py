"""Encoders of one's own: saved by import path and arguments, never pickled, and refused where that cannot work."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from own_modules import Forgets, ForgetsSlope, Keeps, Outer, TakesFunction
from torch_geometric import nn as pyg

from topoter import TopoTER
from topoter.datasets import block_model
from topoter.encoders import import_module_class
from topoter.errors import UsageError
from topoter.training.checkpoint import load_checkpoint, save_checkpoint

pytestmark = pytest.mark.usefixtures("one_thread")

GRAPH, OTHER = block_model(40, 4, 4, 8, 0), block_model(28, 4, 3, 8, 1)
HERE = Path(__file__).parent


def small(encoder=None, **options) -> TopoTER:
    return TopoTER(encoder, **{"out_channels": 6, "epochs": 3, **options})


def made(make):
    """A module whose first weights are always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make()


def refusal(call, *arguments, **options) -> str:
    with pytest.raises(UsageError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def crafted(tmp_path: Path, encoder: str, parameters=None) -> Path:
    """A model file that says its encoder is something."""
    path = tmp_path / "crafted.topoter"
    small().fit(GRAPH).save(path)
    tensors, content = load_checkpoint(path, "model")
    content["parameters"] |= {"encoder": encoder, "encoder_parameters": parameters or {}}
    save_checkpoint(path, "model", tensors, content)
    return path


# ---- saved and loaded --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: pyg.GCNConv(8, 7),
        lambda: pyg.SAGEConv(8, 5, aggr="max"),
        lambda: pyg.GATConv(8, 3, heads=2),
        lambda: pyg.GCN(8, 6, num_layers=2, out_channels=5),
        lambda: Keeps(8, (6, 4), slope=0.3),
        lambda: TakesFunction(8),
    ],
    ids=["GCNConv", "SAGEConv", "GATConv", "GCN", "own", "own with a function"],
)
def test_a_module_is_found_again_by_its_class_and_attributes(tmp_path, make):
    model = small(made(make)).fit(GRAPH)
    path = tmp_path / "m.topoter"
    model.save(path)
    loaded = TopoTER.load(path)
    for graph in (GRAPH, OTHER):
        np.testing.assert_array_equal(loaded.transform(graph), model.transform(graph))
    kind = type(model.model_.encoder.module)
    assert loaded.encoder == f"{kind.__module__}:{kind.__qualname__}"
    loaded.save(tmp_path / "again.topoter")
    again = TopoTER.load(tmp_path / "again.topoter")
    np.testing.assert_array_equal(again.transform(GRAPH), model.transform(GRAPH))
    assert loaded.fit(GRAPH).transform(GRAPH).shape == model.transform(GRAPH).shape, "it can be fitted again"


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("own_modules:Keeps", {"sizes": [6, 4], "slope": 0.3}),
        ("own_modules:Forgets", {"width": 5}),
        ("own_modules:ForgetsSlope", {"power": 3.0}),
        ("torch_geometric.nn:GCN", {"hidden_channels": 6, "num_layers": 2, "dropout": 0.5, "act": "tanh"}),
        ("torch_geometric.nn:GCNConv", {"out_channels": 7, "improved": True}),
    ],
)
def test_an_import_path_with_arguments_is_an_encoder(tmp_path, path, parameters):
    model = small(path, encoder_parameters=parameters)
    with torch.random.fork_rng(devices=[]):
        before = torch.get_rng_state()
        model.check_parameters()
        z = model.fit_transform(GRAPH)
        if "dropout" not in parameters:  # PyG's dropout draws from the global generator, as a module of one's own may
            assert torch.equal(torch.get_rng_state(), before), "a constructor's draws do not show outside"
            assert (small(path, encoder_parameters=parameters).fit_transform(GRAPH) == z).all()
    other = small(path, encoder_parameters=parameters, random_state=1, epochs=0).fit_transform(GRAPH)
    assert not np.allclose(other, small(path, encoder_parameters=parameters, epochs=0).fit_transform(GRAPH))
    model.save(tmp_path / "m.topoter")
    loaded = TopoTER.load(tmp_path / "m.topoter")
    np.testing.assert_array_equal(loaded.transform(OTHER), model.transform(OTHER))
    assert (loaded.encoder, loaded.encoder_parameters) == (path, parameters)


def test_a_named_encoder_with_arguments_of_its_own(tmp_path):
    model = small("sgc", encoder_parameters={"order": 1, "negative_slope": 0.1}).fit(GRAPH)
    expected = small("sgc", order=1, negative_slope=0.1).fit_transform(GRAPH)
    np.testing.assert_array_equal(model.transform(GRAPH), expected)
    model.save(tmp_path / "m.topoter")
    np.testing.assert_array_equal(TopoTER.load(tmp_path / "m.topoter").transform(GRAPH), expected)
    assert refusal(small("sgc", encoder_parameters={"depth": 1}).fit, GRAPH).startswith(
        "The encoder 'sgc' has no parameter 'depth'."
    )


def test_the_file_holds_no_code(tmp_path):
    small(made(lambda: Keeps(8))).fit(GRAPH).save(tmp_path / "m.topoter")
    content = load_checkpoint(tmp_path / "m.topoter", "model")[1]
    assert content["parameters"]["encoder"] == "own_modules:Keeps"
    assert content["parameters"]["encoder_parameters"] == {"in_channels": 8, "sizes": [5], "slope": 0.0}
    assert b"pickle" not in (tmp_path / "m.topoter").read_bytes()


def test_saving_leaves_the_model_and_the_random_state_as_they_were(tmp_path):
    model = small(made(lambda: pyg.GCN(8, 6, num_layers=2, norm="BatchNorm"))).fit(GRAPH)
    before = {name: tensor.clone() for name, tensor in model.model_.state_dict().items()}
    state = torch.get_rng_state()
    model.save(tmp_path / "m.topoter")
    assert all(torch.equal(before[name], tensor) for name, tensor in model.model_.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


# ---- refused where that cannot work ------------------------------------------------------------------------


def test_a_class_that_no_other_program_finds(tmp_path):
    class Local(Keeps):
        pass

    message = refusal(small(Local(8)).fit(GRAPH).save, tmp_path / "m.topoter")
    assert "cannot be saved: the class is defined in a script or a function" in message
    assert "cannot be imported" in refusal(small(Outer.Inner(8)).fit(GRAPH).save, tmp_path / "m.topoter")
    assert list(tmp_path.iterdir()) == []


def test_a_class_of_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import warnings; warnings.simplefilter('ignore')\n"
        "from own_modules import Keeps\nfrom topoter import TopoTER\nfrom topoter.datasets import block_model\n"
        "class Mine(Keeps):\n    pass\n"
        "TopoTER(Mine(8), epochs=1).fit(block_model(40, 4, 4, 8, 0)).save('m.topoter')\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "A model with the encoder Mine cannot be saved: the class is defined in a script" in done.stderr
    assert not (tmp_path / "m.topoter").exists()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (lambda: Forgets(8, 4), "its argument 'width' is not kept as an attribute"),
        (lambda: ForgetsSlope(8, 3.0), "its attributes do not tell how it was made"),
        (lambda: TakesFunction(8, torch.sigmoid), "its attributes do not tell how it was made"),
        (lambda: pyg.GCN(8, 6, 2, act="tanh"), "its attributes do not tell how it was made"),
        (lambda: pyg.GCN(8, 6, 2, dropout=0.5), "its attributes do not tell how it was made"),
    ],
    ids=["width", "power", "function", "PyG act", "PyG dropout"],
)
def test_a_module_that_would_come_back_different(tmp_path, module, reason):
    message = refusal(small(made(module)).fit(GRAPH).save, tmp_path / "m.topoter")
    assert reason in message
    assert "with encoder_parameters={...} instead of the module itself." in message
    assert list(tmp_path.iterdir()) == []


def test_a_module_that_tells_its_arguments_only_by_an_equal_result_is_kept(tmp_path):
    model = small(made(lambda: ForgetsSlope(8))).fit(GRAPH)  # made with its defaults
    model.save(tmp_path / "m.topoter")
    np.testing.assert_array_equal(TopoTER.load(tmp_path / "m.topoter").transform(GRAPH), model.transform(GRAPH))


def test_arguments_that_a_file_cannot_hold(tmp_path):
    model = small("own_modules:TakesFunction", encoder_parameters={"act": torch.sigmoid}).fit(GRAPH)
    assert refusal(model.save, tmp_path / "m.topoter").startswith(
        "A model whose encoder_parameters are not plain numbers, names and lists of them cannot be saved. Got {'act':"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_module:Encoder", "The encoder 'no_such_module:Encoder' cannot be imported: No module named"),
        ("own_modules:Nothing", "The encoder 'own_modules:Nothing' cannot be imported: module 'own_modules' has no"),
        ("own_modules:", "The encoder 'own_modules:' cannot be imported: "),
        (":Keeps", "The encoder ':Keeps' cannot be imported: "),
        (".own_modules:Keeps", "The encoder '.own_modules:Keeps' cannot be imported: "),
        ("own_modules:a_function", "must be a torch module's class. It is a function."),
        ("own_modules:an_object", "must be a torch module's class. It is a Keeps."),
        ("os:system", "The encoder 'os:system' must be a torch module's class. It is a builtin_function_or_method."),
    ],
)
def test_a_path_that_leads_to_no_module_class(path, message):
    assert message in refusal(small(path).fit, GRAPH)


def test_arguments_that_a_class_does_not_take():
    message = refusal(small("own_modules:Keeps", encoder_parameters={"depth": 3}).fit, GRAPH)
    assert message.startswith("The encoder own_modules:Keeps does not take these arguments: ")
    message = refusal(small("own_modules:Refuses", encoder_parameters={"width": 0}).fit, GRAPH)
    assert message == "The encoder own_modules:Refuses does not take these arguments: width must be positive."


# ---- a file of somebody else -------------------------------------------------------------------------------


@pytest.fixture
def trap(tmp_path, monkeypatch) -> str:
    """The name of a module that can be imported and would leave a trace."""
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "trap_module.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('ran').touch()\nfrom own_modules import Keeps\n"
    )
    monkeypatch.syspath_prepend(folder)
    yield "trap_module"
    sys.modules.pop("trap_module", None)


def test_a_module_that_was_not_imported_yet_is_not_imported_by_a_file(tmp_path, trap):
    ran = tmp_path / "library" / "ran"
    path = crafted(tmp_path, f"{trap}:Keeps", {"in_channels": 8})
    message = refusal(TopoTER.load, path)
    assert message == (
        "The model's encoder is trap_module:Keeps, and importing trap_module would run its code. If you trust it, "
        "import it first or pass trust_encoder=True (on the command line: --trust-encoder)."
    )
    assert not ran.exists()
    assert trap not in sys.modules
    assert import_module_class(f"{trap}:Keeps", trusted=True) is Keeps
    assert ran.exists()
    assert import_module_class(f"{trap}:Keeps", trusted=False) is Keeps, "imported by now, so nothing new is run"


def test_with_trust_a_model_is_loaded_in_another_process(tmp_path):
    model = small(made(lambda: Keeps(8, (4,)))).fit(GRAPH)
    model.save(tmp_path / "m.topoter")
    np.save(tmp_path / "z.npy", model.transform(OTHER))
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "import sys, numpy as np, torch\ntorch.set_num_threads(1)\n"
        "from topoter import TopoTER, UsageError\nfrom topoter.datasets import block_model\n"
        "try:\n    TopoTER.load('m.topoter')\nexcept UsageError as error:\n    print(error)\n"
        "assert 'own_modules' not in sys.modules\n"
        "model = TopoTER.load('m.topoter', trust_encoder=True)\n"
        "assert (model.transform(block_model(28, 4, 3, 8, 1)) == np.load('z.npy')).all()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The model's encoder is own_modules:Keeps, and importing own_modules would run")


NO_MODULE = {
    "os:system": {"command": "touch ran"},
    "builtins:eval": {},
    "subprocess:Popen": {"args": ["touch", "ran"]},
    "own_modules:a_function": {},
    "torch.hub:load": {"repo_or_dir": "somebody/something"},
}
NOT_HARMLESS = {
    # PyG evaluates this argument as code. Up to 2.5 it is a function, and so refused even with trust.
    "torch_geometric.nn:Sequential": {"input_args": "x -> open('ran', 'w')", "modules": []},
    "torch_geometric.nn.sequential:Sequential": {"input_args": "x: open('ran', 'w')", "modules": []},
    "torch.nn:Linear": {"in_features": 8, "out_features": 1},
}


@pytest.mark.parametrize("encoder", NO_MODULE)
@pytest.mark.parametrize("trusted", [False, True])
def test_what_is_no_module_is_never_called(tmp_path, monkeypatch, encoder, trusted):
    path = crafted(tmp_path, encoder, NO_MODULE[encoder])
    monkeypatch.chdir(tmp_path)
    refusal(TopoTER.load, path, trust_encoder=trusted)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("encoder", NOT_HARMLESS)
def test_a_class_that_may_run_what_the_file_says_needs_trust(tmp_path, monkeypatch, encoder):
    path = crafted(tmp_path, encoder, NOT_HARMLESS[encoder])
    monkeypatch.chdir(tmp_path)
    function = encoder.endswith(":Sequential") and inspect.isfunction(pyg.Sequential)
    reason = "must be a torch module's class. It is a function." if function else "pass trust_encoder=True"
    assert reason in refusal(TopoTER.load, path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("encoder", ["torch_geometric.nn:GCNConv", "torch_geometric.nn:GraphSAGE"])
def test_the_layers_of_pyg_need_no_trust(encoder):
    assert issubclass(import_module_class(encoder, trusted=False), torch.nn.Module)
