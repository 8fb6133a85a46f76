"""Time passes: the driver of rounds over an instance.

Here stand the clock of events, live jobs, energy, pacing of budgets, fallback, slowing when a cap
drops, and the journal that lets a killed run go on. What is decided is the policy's.
"""

from ronda.horizon.driver import run

__all__ = [
    "run",
]
