"""The checker and the reader on who may start, job arrays and nodes that leave, broken by hand."""

import pytest
from msgspec.structs import replace

from ronda.instances.check.checker import check
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.errors import InputError
from ronda.instances.instance import Faults, Instance, Outage
from ronda.instances.job import After, Allocation, Costs, Estimate, Job, JobState, Option, Truth
from ronda.instances.plan import Plan
from ronda.instances.profile import Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.schedule import Energy, JobOutcome, Schedule, Segment
from ronda.instances.site import Site

CLUSTER = uniform_cluster(GpuType(name="G", memory_gib=16), 3, 8)
PROFILES = {"p": Profile(name="p", throughput={"G": Rigid()})}
NOW_S = 1000.0


def on(*pieces):
    """Return an allocation of GPUs on nodes, given as pairs."""
    gpus, span = sum(n for _, n in pieces), "node" if len(pieces) == 1 else "cluster"
    return Allocation(option=Option(pool=0, gpus=gpus, span=span), placement=pieces)


def state(name, gpus=4, work=100.0, held=None, blocked=None, **fields):
    """Return a job that waits, or runs on `held` since 0 s."""
    estimate = None if work is None else Estimate(work=work)
    job = Job(id=name, submit_s=0.0, profile="p", gpus=gpus, estimate=estimate, **fields)
    begun = {"started": True, "held_s": 0.0, "done": 0.0} if held is not None else {}
    return JobState(job=job, since_s=NOW_S, allocation=held, blocked=blocked, **begun)


def round_of(*states, arrays=(), **fields):
    """Return a round at 1,000 s in which starts take 30 s and restarts 60 s."""
    return Round(
        now_s=NOW_S,
        cluster=CLUSTER,
        profiles=PROFILES,
        waiting=tuple(s for s in states if s.allocation is None),
        running=tuple(s for s in states if s.allocation is not None),
        costs=Costs(start_s=30.0, restart_s=60.0),
        site=Site(job_arrays=dict(arrays)),
        **fields,
    )


def codes(given, **allocations):
    """Return the codes of what a plan breaks."""
    return [v.code for v in check(validate(given), Plan(allocations=allocations))]


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ({"blocked": "it is held"}, True),
        ({"eligible_s": 1000.5}, True),
        ({"eligible_s": 1000.0}, False),
        ({"after": (After(job="r"),)}, True),
        ({"after": (After(job="r", when="start"),)}, False),
        ({"after": (After(job="w", when="start"),)}, True),
        ({"after": (After(job="gone"), After(job="r"))}, True),
        ({"after": (After(job="gone"), After(job="r")), "after_all": False}, False),
    ],
)
def test_a_job_starts_once_it_may(field, bad):
    """The job r runs, w waits, and the job "gone" has ended."""
    given = round_of(state("r", held=on((0, 4))), state("w"), state("j", **field))
    assert codes(given, r=on((0, 4)), j=on((0, 4))) == ["early"] * bad


def test_a_job_that_runs_is_never_early():
    """A rule that came later stops nobody, nor does it bind a job to what it has."""
    given = round_of(state("j", held=on((0, 4)), after=(After(job="w"),)), state("w"))
    assert codes(given, j=on((0, 4))) == codes(given, j=on((1, 4))) == []


def test_as_many_tasks_run_as_may_or_as_run_already():
    """Two of four may; three run, as the limit was lowered: they go on, a fourth does not come."""
    tasks = [state(f"t{k}", gpus=2, job_array="a") for k in range(4)]
    places = {f"t{k}": on((0, 2)) for k in range(4)}
    given = round_of(*tasks, arrays={"a": 2})
    assert codes(given, **dict(list(places.items())[:2])) == []
    assert codes(given, **dict(list(places.items())[:3])) == ["job-array"]
    ran = [replace(t, allocation=on((0, 2)), started=True) for t in tasks[:3]]
    given = round_of(*ran, tasks[3], arrays={"a": 2})
    assert codes(given, **dict(list(places.items())[:3])) == []
    assert codes(given, **places) == ["job-array"]


@pytest.mark.parametrize(
    ("job", "at", "bad"),
    [
        ({"work": 100.0}, 1130.0, False),
        ({"work": 100.0}, 1129.0, True),
        ({"work": None}, 1e9, True),
        ({"work": None, "limit_s": 50.0}, 1050.0, False),
        ({"work": 100.0, "limit_s": 50.0}, 1049.0, True),
    ],
)
def test_a_job_comes_to_a_node_if_it_ends_before_the_node_leaves(job, at, bad):
    """It pauses for 30 s; a time limit counts from the first GPU on."""
    given = round_of(state("j", **job), leaving=((1, at),))
    assert codes(given, j=on((1, 4))) == ["leaving"] * bad
    assert codes(given, j=on((0, 4))) == []


def test_quantiles_and_waking_count():
    """It needs 100 s, with 90 % at most 200 s; the node wakes for 15 s."""
    sized = Estimate(work=100.0, quantiles=(50.0, 80.0, 100.0, 120.0, 200.0))
    waits = state("j")
    given = round_of(replace(waits, job=replace(waits.job, estimate=sized)), leaving=((1, 1230.0),))
    group = replace(CLUSTER.node_groups[0], wake_s=15.0)
    given = replace(given, cluster=replace(CLUSTER, node_groups=(group,)))
    place = Plan(allocations={"j": on((1, 4))}, asleep=())
    assert check(given, place) == []
    assert [v.code for v in check(replace(given, asleep=(1,)), place)] == ["leaving"]
    assert check(replace(given, asleep=(1,), leaving=((1, 1245.0),)), place) == []
    sooner = replace(given, leaving=((1, 1229.0),))
    assert [v.code for v in check(sooner, place)] == ["leaving"]


def test_what_runs_stays_and_does_not_move_to_another_node_that_leaves():
    """O3: it ends after node 1 leaves, and may not go to node 2, nor grow where it is."""
    runs = state("j", work=9000.0, held=on((1, 4)), max_gpus=4)
    given = round_of(runs, leaving=((1, 2000.0), (2, 3000.0)))
    assert codes(given, j=on((1, 4))) == codes(given, j=on((0, 4))) == []
    assert codes(given, j=on((2, 4))) == ["leaving"]
    assert codes(given, j=on((1, 3), (2, 1))) == ["leaving"]


def test_a_site_that_only_reports_limits_does_not_count_on_them():
    """The job may go on beyond its limit."""
    given = round_of(state("j", work=None, limit_s=50.0), leaving=((1, 9e9),))
    lenient = replace(given, site=Site(kills_at_limit=False))
    assert (codes(given, j=on((1, 4))), codes(lenient, j=on((1, 4)))) == ([], ["leaving"])


def test_no_more_tasks_of_an_array_run_at_once_in_a_schedule():
    """Two follow each other; a third overlaps."""
    jobs = tuple(
        Job(id=f"t{k}", submit_s=0.0, profile="p", job_array="a", truth=Truth(work=10.0))
        for k in range(3)
    )
    site = Site(job_arrays={"a": 1})
    given = Instance(name="i", cluster=CLUSTER, profiles=PROFILES, jobs=jobs, site=site)

    def starting(*times):
        outcomes = tuple(
            JobOutcome(id=j.id, submit_s=0.0, end_s=at + 10.0, segments=(_ten_seconds(at, k),))
            for k, (j, at) in enumerate(zip(jobs, times, strict=True))
        )
        end_s = max(times) + 10.0
        held = Energy(host_j=0.0)
        return Schedule(
            instance="i", fingerprint="", policy="p", jobs=outcomes, energy=held, end_s=end_s
        )

    assert check(given, starting(0.0, 10.0, 20.0)) == []
    assert [v.code for v in check(given, starting(0.0, 9.0, 20.0))] == ["job-array"]


def _ten_seconds(at_s, k):
    held = on((0, 1))
    return Segment(
        start_s=at_s,
        resume_s=at_s,
        end_s=at_s + 10.0,
        done=10.0,
        option=held.option,
        placement=held.placement,
    )


def job(name, **fields):
    """Return a job of an instance."""
    return Job(id=name, profile="p", truth=Truth(work=1.0), **{"submit_s": 0.0} | fields)


def after(*names):
    """Return a dependency on the end of jobs."""
    return {"after": tuple(After(job=name) for name in names)}


REFUSED = {
    "an unknown job": ([job("a", **after("z"))], {}, ("after[0].job", '"z"', "the id of a job")),
    "itself": ([job("a", **after("a"))], {}, ("after[0].job", "itself", "another job")),
    "a cycle": (
        [job("a", **after("c")), job("b", **after("a")), job("c", **after("b"))],
        {},
        ("a cycle", '"a" after "c" after "b" after "a"', "one by one"),
    ),
    "an array without a limit": (
        [job("a", job_array="x")],
        {"site": Site(job_arrays={})},
        ("job_array", '"x"', "site.job_arrays"),
    ),
    "a limit without an array": (
        [job("a")],
        {"site": Site(job_arrays={"x": 2})},
        ("site.job_arrays", "no task", "some job"),
    ),
    "a time before the submission": (
        [job("a", submit_s=5.0, eligible_s=4.0)],
        {},
        ("eligible_s", "found 4", "its submit_s, 5"),
    ),
    "an open failure": (
        [job("a")],
        {"faults": Faults(outages=(Outage(node=0, start_s=1, end_s=2, open=True),))},
        ("faults.outages[0].open", "for a failure", "notice_s"),
    ),
    "a limit of 0": ([job("a", limit_s=0.0)], {}, ("limit_s", "0", "> 0")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_instance_is_refused_in_one_line(case):
    """The line has the place, what was found, and what was expected."""
    jobs, fields, words = REFUSED[case]
    given = Instance(name="i", cluster=CLUSTER, profiles=PROFILES, jobs=tuple(jobs), **fields)
    with pytest.raises(InputError) as refused:
        validate(given)
    line = str(refused.value)
    assert "\n" not in line
    assert all(word in line for word in words), line


def test_a_round_may_name_jobs_and_arrays_that_are_gone():
    """Nodes that leave must exist, each once."""
    given = round_of(state("j", **after("gone")), arrays={"done": 2}, leaving=((2, 5000.0),))
    assert validate(given) == given
    for leaving, found in [(((3, 1.0),), "node 3"), (((1, 1.0), (1, 2.0)), "node 1 again")]:
        with pytest.raises(InputError, match=found):
            validate(replace(given, leaving=leaving))
    with pytest.raises(InputError, match="itself"):
        validate(round_of(state("j", **after("j"))))
