"""ronda: each scheduling round of a GPU cluster as an optimisation problem.

The names below are loaded when they are first used, so that ``import ronda`` is quick.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Instance": "ronda.instances.instance",
    "Round": "ronda.instances.round",
    "Plan": "ronda.instances.plan",
    "Schedule": "ronda.instances.schedule",
    "read": "ronda.instances.files.json",
    "write": "ronda.instances.files.json",
    "load": "ronda.instances.files.catalogue",
    "check": "ronda.instances.check.answer",
    "summarise": "ronda.instances.metrics",
    "policy": "ronda.solvers.registry",
    "solve": "ronda.solvers.solve",
    "run": "ronda.solvers.horizon.driver",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module 'ronda' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
