"""Limits hold from 0 s on, and while no job is live: nodes sleep before the first job comes."""

import msgspec
import pytest

from ronda.horizon.driver import run
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.check.checker import check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.errors import InputError
from ronda.instances.rules.validate import validate

# 4 nodes of 100 W a host and 4 x 10 W of idle GPUs draw 560 W awake and 20 W asleep; a job on one
# node adds 130 W to what sleeps beside it, its 4 GPUs 50 W each at most: 355 W in all.
CLUSTER = Cluster(
    gpu_types=(GpuType(name="G", memory_gib=16.0, idle_w=10.0),),
    node_groups=(
        NodeGroup(
            name="n",
            count=4,
            gpus_per_node=4,
            gpu_type="G",
            host_idle_w=100.0,
            sleep_w=5.0,
            rack="r",
        ),
    ),
    racks=(Rack(name="r"),),
)
LIMITS = {
    "rack": (Rack(name="r", power_cap_w=400.0), Budget()),
    "cap": (None, Budget(power_cap_w=StepSeries(times_s=(0.0,), values=(400.0,)))),
    "cap that drops": (
        None,
        Budget(power_cap_w=StepSeries(times_s=(0.0, 50.0, 150.0), values=(600.0, 400.0, 600.0))),
    ),
    "energy": (None, Budget(energy=EnergyBudget(joules=4e5, horizon_s=1000.0, window_s=100.0))),
    "energy that is spent": (
        None,
        Budget(energy=EnergyBudget(joules=4e5, horizon_s=1000.0, window_s=100.0, credit_j=8e3)),
    ),
}


@pytest.fixture
def limited(two_nodes):
    """Make an instance whose first jobs come after 100 s, and others long after these."""

    def make(name):
        rack, budget = LIMITS[name]
        cluster = CLUSTER if rack is None else msgspec.structs.replace(CLUSTER, racks=(rack,))
        early = two_nodes.jobs[0]
        late = msgspec.structs.replace(early, id="late", submit_s=900.0)
        jobs = (msgspec.structs.replace(early, submit_s=100.0), late)
        return msgspec.structs.replace(two_nodes, cluster=cluster, budget=budget, jobs=jobs)

    return make


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("policy", ["fifo", "prices", "milp", "race-to-idle"])
def test_idle_nodes_keep_every_limit(name, policy, limited):
    """The independent checker finds nothing, at no moment; without sleep it finds something."""
    instance = limited(name)
    schedule = run(instance, policy)
    assert check(instance, schedule) == []
    assert all(not record.violations for record in schedule.rounds)
    awake = msgspec.structs.replace(schedule, sleeps=())
    assert {v.code for v in check(instance, awake)} & {"power", "rack-power", "energy"}


def test_nobody_is_asked_where_no_limit_needs_it(limited):
    """Under a loose cap the first decision is that of the first job."""
    instance = limited("cap")
    loose = Budget(power_cap_w=StepSeries(times_s=(0.0, 50.0), values=(999.0, 998.0)))
    schedule = run(msgspec.structs.replace(instance, budget=loose), "fifo")
    assert schedule.rounds[0].now_s == 100.0


@pytest.mark.parametrize("name", LIMITS)
def test_nodes_of_a_policy_that_lets_none_sleep_do_where_a_limit_needs_it(name, limited):
    """ONES has no such decision: the driver takes it, says so, and ONES wakes what it needs."""
    instance = limited(name)
    schedule = run(instance, "ones")
    assert check(instance, schedule) == []
    assert schedule.sleeps
    first = schedule.rounds[0].violations
    assert first[-1].startswith("no plan keeps 4")
    assert first[-1].endswith("and all nodes awake: nodes 0, 1, 2, 3 put to sleep")


def test_what_no_sleep_can_keep_is_refused_with_the_least_that_could(limited):
    """Asleep the nodes draw 20 W already."""
    hopeless = Budget(power_cap_w=StepSeries(times_s=(0.0,), values=(19.0,)))
    with pytest.raises(InputError, match="at least 20 W"):
        validate(msgspec.structs.replace(limited("cap"), budget=hopeless))
