"""Any PyG module as an encoder, and where it is found again when a saved model is loaded."""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from topoter.encoders.base import Encoder
from topoter.errors import UsageError, invalid_parameter
from topoter.kernels.sparse import SparseOperator
from topoter.structure.adjacency import Adjacency
from topoter.structure.features import Features

# PyG's classes whose constructors only set numbers and names. Others evaluate strings (Sequential) or download models.
_HARMLESS = ("torch_geometric.nn.conv.", "torch_geometric.nn.models.basic_gnn")


class ModuleEncoder(Encoder):
    """Any PyG module `module(x, edge_index) -> [N, F]` as an encoder; nothing is shared between A and A~."""

    def __init__(self, module: nn.Module, out_channels: int) -> None:
        super().__init__()
        self.module = module
        self.out_channels = out_channels

    @classmethod
    def around(cls, module: nn.Module, x: Features, adjacency: Adjacency) -> ModuleEncoder:
        """A copy of the user's module, whose width is found by running it once; the original stays untrained."""
        if not isinstance(module, nn.Module):
            raise invalid_parameter("encoder", "TopoTER", "a name or a torch module", module)
        module = _copied(module)
        probe = cls(module, 0).to(adjacency.device).eval()
        with torch.no_grad():
            h = probe(x, adjacency)
        if h.dim() != 2 or h.size(0) != adjacency.num_nodes:
            raise UsageError(
                f"The encoder must map (x, edge_index) to [{adjacency.num_nodes}, F]. Got {list(h.shape)} instead."
            )
        return cls(module, h.size(1))

    def project(self, x: Features) -> Tensor:
        if isinstance(x, SparseOperator):
            raise UsageError("A PyG module as encoder takes dense features: pass features='dense'.")
        return x

    def propagate(self, signal: Tensor, adjacency: Adjacency) -> Tensor:
        if adjacency.weight is None:
            h: Tensor = self.module(signal, adjacency.edge_index)
        elif "edge_weight" in inspect.signature(self.module.forward).parameters:
            h = self.module(signal, adjacency.edge_index, edge_weight=adjacency.edge_weight)
        else:
            raise UsageError(
                f"The graph has edge weights, but {type(self.module).__name__}.forward takes no edge_weight: "
                "drop the weights or pass an encoder that uses them."
            )
        return h


def import_module_class(path: str, *, trusted: bool = True) -> type[nn.Module]:
    """The class behind "package.module:Class". Importing runs code, so a path out of a file has to be trusted first.

    What this process has imported already runs nothing new, and neither do PyG's layers. The rest of torch and PyG is
    imported anyway, so there that says nothing of trust.
    """
    module_name, _, class_name = path.partition(":")
    package = module_name.partition(".")[0]
    if not trusted and package != "torch_geometric" and (package == "torch" or module_name not in sys.modules):
        raise _not_trusted(path, f"importing {module_name} would run its code", "import it first or ")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise UsageError(f"The encoder {path!r} cannot be imported: {error}.") from error
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise UsageError(f"The encoder {path!r} must be a torch module's class. It is a {type(found).__name__}.")
    if not trusted and package == "torch_geometric" and not found.__module__.startswith(_HARMLESS):
        raise _not_trusted(path, "making one may run code that the file brings along")
    return found


def _not_trusted(path: str, why: str, otherwise: str = "") -> UsageError:
    return UsageError(
        f"The model's encoder is {path}, and {why}. If you trust it, {otherwise}pass trust_encoder=True (on the "
        "command line: --trust-encoder)."
    )


def build_module(
    path: str, arguments: Mapping[str, Any], *, in_channels: int | None = None, seed: int = 0, trusted: bool = True
) -> nn.Module:
    """The module of an import path and its arguments; `in_channels` is put in where the class asks for it."""
    kind = import_module_class(path, trusted=trusted)
    arguments = dict(arguments)
    if in_channels is not None and "in_channels" in inspect.signature(kind).parameters:
        arguments.setdefault("in_channels", in_channels)
    try:
        with torch.random.fork_rng(devices=[]):  # a module's constructor draws from PyTorch's global generator
            torch.random.default_generator.manual_seed(seed)
            return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise UsageError(f"The encoder {path} does not take these arguments: {error}.") from error


def describe_module(module: nn.Module, in_channels: int) -> tuple[str, dict[str, Any]]:
    """The import path and the constructor's arguments that make this module again, or why there are none.

    Arguments are read off the attributes of the same names, as PyG's own modules keep them. The module that they make
    must then compute the same from the same weights.
    """
    kind = type(module)
    path = f"{kind.__module__}:{kind.__qualname__}"
    instead = f"Pass encoder={path!r} with encoder_parameters={{...}} instead of the module itself."
    if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
        raise UsageError(
            f"A model with the encoder {kind.__qualname__} cannot be saved: the class is defined in a script or a "
            "function, where no other program finds it. Move it to a module that can be imported."
        )
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = getattr(module, name, parameter.empty)
        if is_plain_value(value):
            arguments[name] = value
        elif parameter.default is parameter.empty:
            raise UsageError(
                f"A model with the encoder {path} cannot be saved: its argument {name!r} is not kept as an attribute. "
                f"{instead}"
            )
    arguments = json.loads(json.dumps(arguments))  # as a file will give them back
    if not _computes_the_same(module, build_module(path, arguments), in_channels):
        raise UsageError(
            f"A model with the encoder {path} cannot be saved: its attributes do not tell how it was made. {instead}"
        )
    return path, arguments


def is_plain_value(value: Any) -> bool:
    """Whether a file can hold a value."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _copied(module: nn.Module) -> nn.Module:
    with torch.random.fork_rng(devices=[]):  # up to PyG 2.5, copying a linear layer draws new weights first
        return copy.deepcopy(module)


def _computes_the_same(module: nn.Module, again: nn.Module, in_channels: int) -> bool:
    """Whether two modules give the same from the same weights, in training (dropout) and in evaluation."""
    modules = _copied(module).cpu(), again
    nodes = torch.arange(8)
    ring = torch.stack([torch.cat([nodes, nodes.roll(1)]), torch.cat([nodes.roll(1), nodes])])
    x = torch.rand(8, in_channels, generator=torch.Generator().manual_seed(0))
    try:
        again.load_state_dict(module.state_dict())
        for training in (True, False):
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                found = []
                for each in modules:
                    torch.random.default_generator.manual_seed(0)
                    found.append(each.train(training)(x, ring))
            if not torch.equal(*found):
                return False
    except Exception:  # whatever a user's own code raises: it was not made the same way
        return False
    return True
