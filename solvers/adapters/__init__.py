"""Public schedulers ask ronda: adapters with the face of their own policies.

Each is on the façade of `ronda.solvers.embedding`, and imports nothing of its host.
"""

from ronda.solvers.adapters.blox import Blox
from ronda.solvers.adapters.gavel import Gavel
from ronda.solvers.adapters.pollux import Pollux
from ronda.solvers.adapters.rubick import Rubick
from ronda.solvers.adapters.sia import Sia

__all__ = [
    "Blox",
    "Gavel",
    "Pollux",
    "Rubick",
    "Sia",
]
