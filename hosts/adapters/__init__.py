"""Adapters that let public schedulers ask ronda through the interface of their own policies.

Each adapter uses the façade of `ronda.hosts.embedding` and imports nothing from its host.
"""

from ronda.hosts.adapters.blox import Blox
from ronda.hosts.adapters.gavel import Gavel
from ronda.hosts.adapters.pollux import Pollux
from ronda.hosts.adapters.rubick import Rubick
from ronda.hosts.adapters.sia import Sia

__all__ = ["Blox", "Gavel", "Pollux", "Rubick", "Sia"]
