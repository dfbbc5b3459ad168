"""Encoders H = E(X, A): SGC, GCN, GIN, several hops side by side, profiles of whole graphs, or any PyG module.

A new encoder is a file here and its name below. It is built with those of TopoTER's parameters that its constructor
names, and with what `encoder_parameters` says.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from topoter.encoders.base import Encoder
from topoter.encoders.gcn import GCN
from topoter.encoders.gin import GIN
from topoter.encoders.hops import Hops
from topoter.encoders.modules import (
    ModuleEncoder,
    build_module,
    describe_module,
    import_module_class,
    is_plain_value,
)
from topoter.encoders.profile import Profile
from topoter.encoders.sgc import SGC
from topoter.errors import UsageError, unknown_name, whole_number

ENCODERS: dict[str, type[Encoder]] = {"sgc": SGC, "gcn": GCN, "gin": GIN, "hops": Hops, "profile": Profile}

__all__ = [
    "ENCODERS",
    "GCN",
    "GIN",
    "SGC",
    "Encoder",
    "Hops",
    "ModuleEncoder",
    "Profile",
    "build_encoder",
    "build_module",
    "describe_module",
    "import_module_class",
    "is_plain_value",
]


def build_encoder(
    name: str, in_channels: int, parameters: Mapping[str, Any], extra: Mapping[str, Any] | None = None
) -> Encoder:
    """A known encoder by its name.

    Args:
        parameters: of these it takes those its constructor has.
        extra: keyword arguments for this encoder alone; each must be one it has.
    """
    if name not in ENCODERS:
        raise unknown_name("encoder", name, [*ENCODERS, "package.module:Class"])
    kind = ENCODERS[name]
    taken = inspect.signature(kind).parameters
    known = list(taken)[1:]  # all but in_channels
    for key in extra or ():
        if key not in known:
            raise UsageError(f"The encoder {name!r} has no parameter {key!r}. It has: {', '.join(known)}.")
    given = {**parameters, **(extra or {})}
    for key in ("out_channels", "order", "num_layers", "hidden_channels"):
        if key in given:
            given[key] = whole_number(key, given[key], 1)
    return kind(in_channels, **{key: value for key, value in given.items() if key in known})
