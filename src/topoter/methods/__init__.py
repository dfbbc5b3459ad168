"""Every system of the paper's tables, one file per family; `base.py` has the interface and the registry."""

from topoter.methods.base import TASKS, UNKNOWN_LABEL, Fitted, Method, build, method, methods_of, register

__all__ = ["TASKS", "UNKNOWN_LABEL", "Fitted", "Method", "build", "method", "methods_of", "register"]
