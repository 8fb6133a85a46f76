"""Why not there: what it would cost, against the best plan that a rule of one's own forces."""

import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.generate.structure import Structure
from ronda.questions.not_there import place_of, why_not_there
from ronda.solvers.rules import with_rules

EXACT = "milp(gap=1e-9)"


def there(job, gpu_type=None, gpus=None):
    """Return a rule that a job runs on a GPU type, or a number of GPUs."""

    def rule(round, table):
        own = np.array([state.job.id == job for state in table.jobs])[table.job]
        kinds = np.array([pool.gpu_type.name for pool in table.pools])[table.pool]
        may = own & (True if gpu_type is None else kinds == gpu_type)
        return ronda.Limit(may & (True if gpus is None else table.gpus == gpus), ">=", 1)

    return rule


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("place", [{"gpu_type": "V100"}, {"gpus": 2}])
def test_as_a_rule_that_forces_it(seed, place):
    """The cost is what the best plan under the rule is worth less, and the parts add up to it.

    Rules see all options, and of a number of GPUs those that others beat may cost a bit less.
    """
    round_ = generate.round(6, 16, "tight", seed, Structure(types=2))
    plan = ronda.solve(round_, EXACT)
    for state in round_.jobs[:2]:
        job = state.job.id
        found = why_not_there(round_, plan, job, policy=EXACT, **place)
        own = with_rules(ronda.policy(EXACT), [there(job, **place)], "extra")
        forced = ronda.solve(round_, own)
        if found.cost is None:
            assert found.why
            assert forced.status == "none"
            continue
        scale = 1e-6 * plan.objective
        cost = plan.objective - forced.objective
        assert found.cost >= cost - scale
        assert "gpus" in place or found.cost <= cost + scale
        parts = found.worth_here - found.worth_there + sum(found.losers.values()) - found.gained
        assert parts == pytest.approx(found.cost, abs=scale)
        pool = round_.cluster.topology.pools[found.option.option.pool]
        assert place.get("gpu_type") in (None, pool.gpu_type.name)
        assert place.get("gpus") in (None, found.option.option.gpus)
        assert all(name in plan.allocations for name in found.displaced)
        assert set(found.displaced) <= {*found.losers}
        assert all(each.price == plan.prices[each.row] for each in found.spent)


def test_reasons():
    """A type that the job may not use, a size that it has not, a job that may not be moved."""
    round_ = generate.round(10, 16, "tight", 1, Structure(types=2))
    first, *rest = round_.waiting
    bound = replace(first, job=replace(first.job, gpu_types=("V100",)))
    firm = replace(round_.running[0], job=replace(round_.running[0].job, preemptible=False))
    round_ = replace(round_, waiting=(bound, *rest), running=(firm, *round_.running[1:]))
    plan = ronda.solve(round_, "prices")
    found = why_not_there(round_, plan, bound.job.id, gpu_type="A100")
    assert (found.row, found.why) == ("gpu_types", "the job may use V100 alone")
    assert why_not_there(round_, plan, bound.job.id, gpus=16).row in ("sizes", "gpu_types")
    held = firm.allocation.option
    found = why_not_there(round_, plan, firm.job.id, gpus=held.gpus + 1)
    assert found.cost is None
    blocked = replace(bound, blocked="held by an admin")
    found = why_not_there(replace(round_, waiting=(blocked, *rest)), plan, bound.job.id, gpus=1)
    assert found.why == "held by an admin"


def test_another_partition():
    """A job is bound to its partition: it is asked what it would cost if it were not."""
    round_ = generate.round(12, 16, "tight", 2, Structure(partitions=2))
    plan = ronda.solve(round_, "prices")
    state = round_.jobs[0]
    (other,) = {s.job.partition for s in round_.jobs} - {state.job.partition}
    found = why_not_there(round_, plan, state.job.id, partition=other)
    pools = round_.cluster.topology.pools
    assert found.option is None or pools[found.option.option.pool].partition == other
    assert (found.cost is None) == (found.option is None)


def test_places():
    """A number, a type, both, or a partition; anything else is refused."""
    round_ = generate.round(4, 16, "tight", 1, Structure(types=2))
    assert place_of(round_, "a100:8") == {"gpu_type": "A100", "gpus": 8}
    assert place_of(round_, "8") == {"gpus": 8}
    assert place_of(round_, "Default") == {"partition": "default"}
    for wrong in ("h100", "a100:x", "a100:0"):
        with pytest.raises(InputError, match="--not"):
            place_of(round_, wrong)
    with pytest.raises(InputError, match="--explain"):
        why_not_there(round_, ronda.Plan(), "nobody", gpus=8)
