"""What a run is judged by, and what it says of itself."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from msgspec.structs import replace

from ronda.bench.runs.single import measure
from ronda.instances.files.catalogue import load
from ronda.instances.instance import Cadence
from ronda.instances.job import Costs
from ronda.instances.plan import Plan
from ronda.solvers.contract import Capability
from ronda.solvers.horizon.driver import run
from ronda.solvers.solve import solve


@dataclass(frozen=True)
class Alternates:
    """Stops what runs for whoever waits first."""

    name: ClassVar[str] = "fifo"  # one that is known
    capabilities: ClassVar[Capability] = Capability.PREEMPTS

    def plan(self, round, *, deadline, seed, initial=None):
        """Let somebody else run."""
        if not round.waiting:
            return Plan(policy=self.name, allocations=round.held)
        return replace(solve(replace(round, running=()), "fifo"), policy=self.name)


@pytest.mark.parametrize(("restart_s", "told"), [(0.0, 0), (5.0, 1)])
def test_a_run_says_that_its_restarts_ate_its_time(restart_s, told):
    """Turns of 10 s begin with 5 s of restart: far more than a tenth of the time is in vain."""
    instance = replace(load("one-gpu"), costs=Costs(restart_s=restart_s))
    schedule = run(instance, Alternates(), cadence=Cadence(period_s=10.0))
    notes = measure(instance, schedule, wall_s=0.0).metrics.get("notes", [])
    assert len([n for n in notes if n.startswith("fifo: restarts took ")]) == told
