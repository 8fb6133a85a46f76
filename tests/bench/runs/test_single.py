"""What a run is judged by, and what it says of itself."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from msgspec.structs import replace

from ronda.bench.runs.single import eaten, measure
from ronda.horizon.driver import run
from ronda.horizon.solve import solve
from ronda.instances.files.packaged import load
from ronda.instances.instance import Cadence
from ronda.instances.job import Costs
from ronda.instances.plan import Plan
from ronda.solvers.contract import Capability


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
    share = measure(instance, schedule, wall_s=0.0).metrics["restart_share"]
    assert len(eaten({"fifo": [share]})) == told


def test_a_line_has_all_policies_whose_restarts_ate_their_time():
    """From the least to the largest share above a tenth; who is below is not named."""
    shares = {"a": [0.05, 0.104, 0.251], "b": [0.1], "c": [0.17]}
    what = "restarts took more than 10% of the GPU time that jobs had"
    assert eaten(shares) == [f"{what}: a 10%-25%, c 17%"]
