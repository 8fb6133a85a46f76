"""Who may start, and nodes that leave, as a host says it."""

import pytest

import ronda
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.errors import InputError
from ronda.instances.job import After
from ronda.instances.site import Site

CLUSTER = uniform_cluster(GpuType(name="G", memory_gib=16), 2, 8)
NODES = ("x", "y")


def host(policy="prices", **fields):
    """Return a host on the nodes x and y of eight GPUs."""
    return ronda.Embedded(policy, CLUSTER, node_names=NODES, history=False, **fields)


def job(name, work=900.0, gpus=4, **fields):
    """Return a row of a rigid job."""
    return {
        "id": name,
        "work": work,
        "gpus": gpus,
        "rates": {"gpus": [gpus], "rate": [1.0]},
    } | fields


def started(found):
    """Return the jobs that a decision starts."""
    return set(found.decide().start)


@pytest.mark.parametrize("policy", ["fifo", "prices", "milp"])
def test_jobs_wait_for_the_jobs_before_them_and_for_the_hosts_word(policy):
    """B waits for a, c for 50 s, and d until its host takes the reason back."""
    found = host(policy)
    after = [After(job="a")]
    rows = [job("a"), job("b", after=after), job("c", eligible_s=50.0), job("d")]
    found.update(added=rows, blocked={"d": "it is held"})
    assert started(found) == {"a"}
    found.update(now_s=50.0, blocked={"d": None})
    assert started(found) == {"c", "d"}
    found.update(completed=["a"])
    assert started(found) == {"b"}


@pytest.mark.parametrize("policy", ["sjf", "prices", "milp"])
def test_a_node_leaves_at_a_time(policy):
    """The long job goes to x and the short one to y, which leaves; then y is back."""
    found = host(policy)
    found.update(
        nodes={"y": 1000.0}, added=[job("l", 2000.0, 8, preemptible=False), job("s", 900.0, 8)]
    )
    decided = found.decide().start
    assert [set(decided[name].placement) for name in ("l", "s")] == [{"x"}, {"y"}]
    again = ronda.Embedded.restore(found.save())
    again.update(now_s=900.0, completed=["s"], added=[job("m", 200.0, 8)])
    assert not again.decide().start
    again.update(nodes={"y": "back"})
    assert again.decide().start["m"].placement == {"y": 8}
    with pytest.raises(InputError, match="a node in service"):
        again.update(nodes={"y": "back"})


def test_a_node_that_is_lost_does_not_leave():
    """What is said of it is forgotten when it is back."""
    found = host()
    found.update(nodes={"y": 10.0})
    found.update(nodes={"y": "lost"})
    with pytest.raises(InputError, match="a node that is lost"):
        found.update(nodes={"y": 5.0})
    found.update(nodes={"y": "back"})
    assert found.round().leaving == ()
    with pytest.raises(InputError, match="or a time in seconds"):
        found.update(nodes={"y": "soon"})


def test_time_limits_and_arrays_count_across_stops():
    """Of two tasks one runs; its limit of 100 s is nearly reached after 90 s on two allocations."""
    found = host(site=Site(job_arrays={"a": 1}))
    rows = [job(name, job_array="a", limit_s=100.0) for name in "tu"]
    found.update(added=rows)
    (first,) = started(found)
    found.update(now_s=60.0, running={first: None})
    assert len(started(found)) == 1
    found.update(now_s=90.0)
    state = next(s for s in found.round().running)
    ran_s = 90.0 if state.job.id == first else 30.0
    assert state.may_hold_s(90.0) == 100.0 - ran_s


def test_a_round_may_be_made_with_all_of_it():
    """The data of a host, without memory."""
    rows = [job("a", blocked="it is held"), job("b", limit_s=100.0, ran_s=40.0)]
    found = ronda.make_round(CLUSTER, rows, node_names=NODES, leaving={"y": 500.0}, site=Site())
    assert found.leaving == ((1, 500.0),)
    states = {state.job.id: state for state in found.waiting}
    assert states["a"].blocked == "it is held"
    assert states["b"].may_hold_s(0.0) == 60.0
    with pytest.raises(InputError, match="a reason, or None"):
        host().update(added=[job("a")], blocked={"a": 1})
