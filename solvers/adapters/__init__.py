"""Public schedulers ask ronda: adapters with the face of their own policies.

Each is on the façade of `ronda.solvers.embedding`, and imports nothing of its host.
"""

from ronda.solvers.adapters.pollux import Pollux

__all__ = [
    "Pollux",
]
