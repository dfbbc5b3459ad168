"""The fast path of propagation and decoder; every kernel here has a plain-PyTorch twin it is tested against.

`TOPOTER_KERNELS=plain` turns all of them off: then only PyTorch operations run.
"""

from __future__ import annotations

import os

import torch

from topoter.errors import UsageError

MODES = ("fast", "plain")


def mode() -> str:
    """`fast` unless the environment variable TOPOTER_KERNELS says `plain`; read at every call."""
    chosen = os.environ.get("TOPOTER_KERNELS") or "fast"
    if chosen not in MODES:
        raise UsageError(f"TOPOTER_KERNELS must be one of {', '.join(MODES)}. Got {chosen!r} instead.")
    return chosen


def use_compiled(tensor: torch.Tensor) -> bool:
    """Whether the compiled CPU kernels serve this tensor: float32 on a CPU, and not switched off."""
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and mode() == "fast"


def active() -> dict[str, str]:
    """Which path serves each stage, by device; what `topoter env` prints."""
    if mode() == "plain":
        return dict.fromkeys(("sampler", "propagation", "decoder"), "plain PyTorch (TOPOTER_KERNELS=plain)")
    return {
        "sampler": "compiled walks over sorted pairs (random numbers by NumPy, seeded by PyTorch)",
        "propagation": "cpu: compiled (one SGC layer: both graphs at once); cuda: torch CSR; mps: PyTorch scatter",
        "decoder": "cpu: compiled fused kernel; cuda, mps and other decoders: chunks of pairs in PyTorch",
    }
