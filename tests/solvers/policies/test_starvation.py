"""Waiting is priced so that nobody starves, however long the overload lasts."""

from msgspec.structs import replace

from ronda.horizon.driver import run
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.solvers.registry import policy
from tests.helpers.valued_rounds import cluster, rigid, snapshot


def overloaded(make_instance, count):
    """Return a big job, and small ones that keep all GPUs busy from the same time on."""
    small = [(f"s{k}", 10 * k, 4, 10) for k in range(count)]
    return make_instance([("big", 0, 4, 200), *small])


def wait_s(make_instance, count, policy):
    """Return how long the big job waited before it first ran."""
    instance = overloaded(make_instance, count)
    schedule = run(instance, policy)
    assert check(instance, schedule) == []
    return schedule.jobs[0].segments[0].start_s


def test_without_ageing_a_large_job_waits_as_long_as_the_overload_lasts(make_instance):
    """Smallest first is best for the mean, and starves the big job; FIFO starts it at once."""
    never = "prices(patience=1e18)"
    assert [wait_s(make_instance, n, never) for n in (40, 80)] == [400, 800]
    assert wait_s(make_instance, 40, "fifo") == 0


def test_with_ageing_the_wait_is_bounded(make_instance):
    """It does not grow with the length of the overload, and is what the formula says."""
    # The big job takes 200 s alone, more than the mean: tau is 0.5 x 200 s. It has weight
    # w = 2^(age/tau - 1) and size 200/w, the small one that waits 1 and 10. Until w is 20 the big
    # one is the larger: rank w, value w/200 a second, against (w + 1)/10. Then it is the smaller:
    # rank w + 1 and (w + 1)/200 against rank 1 and 1/10, and w + 1 > 20 suffices. So it starts
    # when w >= 20: age 100 (1 + log2 20) = 532.2 s, at the next decision.
    waits = [wait_s(make_instance, n, "prices(patience=0.5)") for n in (120, 160)]
    assert waits == [540.0] * 2


def test_jobs_that_cannot_be_stopped_make_room_for_a_gang(make_instance):
    """Two in turn keep half of the GPUs each; the gang starts long before the last has ended."""
    halves = [(f"h{k}", 50 * k, 2, 100) for k in range(40)]
    plain = make_instance([halves[0], ("gang", 1, 4, 100), *halves[1:]])
    firm = tuple(replace(job, preemptible=False) for job in plain.jobs)
    instance = replace(plain, jobs=firm)
    schedule = run(instance, "prices(patience=2)")
    assert check(instance, schedule) == []
    assert schedule.jobs[1].segments[0].start_s < 700.0


def test_a_plan_remembers_the_jobs_seen():
    """Of 100 and 20 s alone, then 30 s when both have left: the mean is 50 s."""
    made, plan = policy("prices"), None
    first = snapshot(rigid("a", 100.0), rigid("b", 20.0), on=cluster(2))
    later = snapshot(rigid("c", 30.0, submit_s=50.0), on=cluster(2), now_s=50.0)
    for round_ in (first, later):
        plan = made.plan(round_, deadline=Deadline(), seed=0, initial=plan)
    assert plan.details.parameters == {"alone_s": 50.0}
