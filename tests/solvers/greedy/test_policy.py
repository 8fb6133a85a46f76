"""What a policy answers in time: its own plan, though it was cut, or what runs and what fits."""

import pytest

import ronda
from ronda.instances import generate
from ronda.instances.clock import OutOfTimeError
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import TimelyPolicy

ROUND = generate.round(12, severity="loose", seed=1)


@pytest.mark.parametrize(("objective", "kept"), [(96, True), (94, False)])
def test_a_plan_that_stops_all_is_kept_if_it_is_known_to_be_good(objective, kept):
    """Within 4 % of the best it is; of one that may be 6 % worse what runs is kept instead."""
    cut = ronda.Plan(
        policy="cut",
        objective=objective,
        bound=100,
        stop=StopReason.TIME_LIMIT,
        status=SolutionStatus.FEASIBLE,
    )

    class Cut(TimelyPolicy):
        name = "cut"
        capabilities = Capability.NONE

        def decide(self, round, *, deadline, seed, initial):
            return cut

    plan = Cut().plan(ROUND, deadline=60.0)
    assert ROUND.held
    assert (plan.allocations == {}) is kept
    assert kept or ROUND.held.items() <= plan.allocations.items()


def test_what_fits_starts_beside_what_runs_where_time_is_over():
    """A rule that is cut before it has a plan: eight jobs are tried, and some find room."""

    class Late(TimelyPolicy):
        name = "late"
        capabilities = Capability.NONE

        def decide(self, round, *, deadline, seed, initial):
            raise OutOfTimeError

    plan = Late().plan(ROUND, deadline=60.0)
    assert plan.status is SolutionStatus.FALLBACK
    assert plan.allocations.items() > ROUND.held.items()
    assert f"{len(plan.allocations) - len(ROUND.held)} jobs start" in plan.record.message
