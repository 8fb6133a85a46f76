"""The passage of time: the driver that calls a policy round after round over an instance.

This package has the event clock, live jobs, energy, the pacing of budgets, fallback plans, slowing
when a cap drops, and the journal from which a killed run resumes. Decisions are the policy's.
"""

from ronda.horizon.driver import run

__all__ = [
    "run",
]
