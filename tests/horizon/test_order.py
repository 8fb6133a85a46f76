"""Time limits, jobs that must come first, job arrays and announced outages, in the driver."""

import pytest
from msgspec.structs import replace

from ronda.horizon.driver import run
from ronda.instances.check.checker import check
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.instance import Cadence, Faults, Instance, Outage
from ronda.instances.job import After, Costs, Estimate, Job, Truth
from ronda.instances.outcome.metrics import summarise
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.instances.site import Site

GPU = GpuType(name="G", memory_gib=16, idle_w=10)
WORK = Profile(name="work", throughput={"G": Rigid()}, power={"G": PowerCurve(a_w=60)})


def job(name, *after, gpus=1, work=100.0, submit_s=0.0, failures=(), believed=None, **fields):
    """Return a rigid job whose work is seconds; `after` are pairs (job, when)."""
    return Job(
        id=name,
        submit_s=submit_s,
        profile="work",
        gpus=gpus,
        estimate=Estimate(work=believed or work),
        truth=Truth(work=work, failures=failures),
        after=tuple(a if isinstance(a, After) else After(job=a[0], when=a[1]) for a in after),
        **fields,
    )


def instance(*jobs, nodes=1, gpus=8, site=Site(), retries=None, outages=(), **costs):  # noqa: B008
    """Return an instance on nodes of eight GPUs, without pauses."""
    return Instance(
        name="ordered",
        cluster=uniform_cluster(GPU, nodes, gpus, host_idle_w=80.0),
        profiles={"work": WORK},
        jobs=jobs,
        costs=Costs(**costs),
        faults=Faults(retries=retries, outages=outages),
        site=site,
    )


def driven(given, policy="fifo", **how):
    """Return the outcomes of a run by job; the checker finds nothing."""
    schedule = run(given, policy, **how)
    assert check(given, schedule) == []
    assert not any(record.violations for record in schedule.rounds)
    return {outcome.id: outcome for outcome in schedule.jobs}, schedule


def test_a_job_is_ended_at_its_limit():
    """Of 100 s of work 60 are done; waiting between two allocations does not count."""
    given = instance(job("a", limit_s=60.0), job("b", limit_s=100.0))
    found, schedule = driven(given)
    assert (found["a"].state, found["a"].end_s) == ("time limit", 60.0)
    assert found["a"].segments[-1].done == 60.0
    assert found["b"].state == "completed"  # on the last second
    figures = summarise(given, schedule)
    assert figures["over_limit_jobs"] == 2
    assert figures["mean_jct_s"] == 80.0


def test_pauses_count_towards_the_limit_and_waiting_does_not():
    """A stops for an outage from 30 s to 50 s, restarts for 10 s, and is ended at 50 + 30 s."""
    outage = Outage(node=0, start_s=30.0, end_s=50.0, notice_s=0.0)
    given = instance(job("a", limit_s=60.0), outages=(outage,), restart_s=10.0)
    found, _ = driven(given)
    assert found["a"].end_s == 80.0
    assert [s.done for s in found["a"].segments] == [30.0, 20.0]


def test_a_site_may_only_report_limits():
    """Without an end at the limit the job completes, and is counted."""
    given = instance(job("a", limit_s=60.0), site=Site(kills_at_limit=False))
    found, schedule = driven(given)
    assert found["a"].state == "completed"
    assert summarise(given, schedule)["over_limit_jobs"] == 1


def test_a_failure_at_the_limit_counts_and_the_limit_ends_the_job():
    """Both come after 60 s; it has retries left, but no time."""
    found, schedule = driven(instance(job("a", limit_s=60.0, failures=(60.0,)), retries=3))
    assert (found["a"].state, found["a"].end_s) == ("time limit", 60.0)
    assert len(schedule.failures) == 1


def test_b_never_runs_after_a_has_failed():
    """D1: with "ok" it ends unrun at once; with "any" it runs; c, behind it, never can either."""
    a, c = job("a", failures=(50.0,)), job("c", ("b", "ok"))
    given = instance(a, job("b", ("a", "ok")), c, retries=0)
    found, schedule = driven(given)
    assert found["a"].state == "failed"
    assert {found[name].state for name in "bc"} == {"dependency failed"}
    assert {found[name].end_s for name in "bc"} == {50.0}
    figures = summarise(given, schedule)
    assert (figures["unrun_jobs"], figures["mean_jct_s"]) == (2, 50.0)
    found, _ = driven(instance(a, job("b", ("a", "any")), retries=0))
    assert (found["b"].state, found["b"].end_s) == ("completed", 150.0)


def test_a_job_that_can_never_run_does_not_wait_for_the_others_before_it():
    """A fails at 10 s, b would end at 100 s; c ends unrun at 10 s."""
    jobs = job("a", failures=(10.0,)), job("b"), job("c", ("a", "ok"), ("b", "ok"))
    found, _ = driven(instance(*jobs, retries=0))
    assert (found["c"].state, found["c"].end_s) == ("dependency failed", 10.0)


def test_only_the_final_end_of_a_job_counts():
    """D2: a fails, tries again and succeeds; Slurm would never run b."""
    given = instance(job("a", failures=(50.0,)), job("b", ("a", "ok")), job("c", ("a", "notok")))
    found, _ = driven(given)
    assert (found["b"].state, found["b"].segments[0].start_s) == ("completed", 100.0)
    assert found["c"].state == "dependency failed"


@pytest.mark.parametrize(("every", "start_s"), [(True, 120.0), (False, 40.0)])
def test_all_or_one_of_the_jobs_must_have_come(every, start_s):
    """A ends at 100 s, and 20 s pass; b starts at 0 s, and 40 s pass."""
    after = After(job="a", when="ok", delay_s=20.0), After(job="b", when="start", delay_s=40.0)
    given = instance(job("a"), job("b"), job("c", *after, after_all=every))
    found, _ = driven(given)
    assert found["c"].segments[0].start_s == found["c"].eligible_s == start_s


def test_one_is_enough_although_another_never_comes():
    """A fails; b is still to end."""
    after = ("a", "ok"), ("b", "ok")
    given = instance(job("a", failures=(10.0,)), job("b"), job("c", *after, after_all=False))
    found, _ = driven(replace(given, faults=Faults(retries=0)))
    assert found["c"].segments[0].start_s == 100.0
    found, _ = driven(
        instance(*given.jobs[:1], job("b", failures=(5.0,)), given.jobs[2], retries=0)
    )
    assert (found["c"].state, found["c"].end_s) == ("dependency failed", 10.0)


def test_the_wait_counts_from_eligibility_and_the_jct_from_submission():
    """B is submitted at 0 s, may start from 70 s on, and gets a GPU at 100 s."""
    given = instance(job("a"), job("b", eligible_s=70.0), gpus=1)
    found, schedule = driven(given)
    figures = summarise(given, schedule)
    assert (found["b"].eligible_s, found["b"].end_s) == (70.0, 200.0)
    assert (figures["mean_jct_s"], figures["mean_queue_s"]) == (150.0, 15.0)
    assert figures["mean_early_s"] == 35.0


def test_jobs_that_become_eligible_keep_their_place():
    """Rounds list waiting jobs by submission: b comes before c, which was eligible earlier."""
    given = instance(
        job("a"), job("b", eligible_s=50.0), job("c", submit_s=10.0), gpus=1, restart_s=0.0
    )
    found, _ = driven(given)
    assert found["b"].segments[0].start_s == 100.0
    assert found["c"].segments[0].start_s == 200.0


@pytest.mark.parametrize("policy", ["fifo", "sjf", "milp", "prices"])
def test_at_most_m_tasks_of_an_array_run(policy):
    """Of four tasks two run at a time, however much room there is (seff-array 15)."""
    tasks = (job(f"t{k}", job_array="a") for k in range(4))
    found, _ = driven(instance(*tasks, site=Site(job_arrays={"a": 2})), policy)
    assert sorted(o.end_s for o in found.values()) == [100.0, 100.0, 200.0, 200.0]


LEAVES = Outage(node=1, start_s=3600.0, end_s=7200.0, notice_s=3600.0, open=True)
O1 = (
    job("a", gpus=8, work=7200.0),
    job("b", gpus=8, work=7200.0),
    job("c", gpus=4, work=1800.0),
    job("d", gpus=4, work=3500.0),
)


@pytest.mark.parametrize("policy", ["sjf", "milp", "prices", "milp(placement=exact)"])
def test_what_fits_before_an_announced_outage_runs(policy):
    """O1 (and OpenPBS 1070): a or b on node 0, and c and d on the node that leaves."""
    given = instance(*O1, nodes=2, outages=(LEAVES,), start_s=30.0)
    found, _ = driven(given, policy)
    first = {o.id: o.segments[0] for o in found.values() if o.segments[0].start_s < 3600.0}
    assert {n for n, _ in first["c"].placement} == {n for n, _ in first["d"].placement} == {1}
    assert sorted(first) in (["a", "c", "d"], ["b", "c", "d"])
    assert all(len(first[name].placement) == 1 for name in first)
    assert found["d"].end_s == 3530.0


@pytest.mark.parametrize("policy", ["fifo", "milp", "prices"])
def test_the_pause_counts(policy):
    """O2: 3,500 s of work after a pause of 130 s do not fit; with a limit of 3,600 s they do."""
    a, e = O1[0], job("e", gpus=8, work=3500.0)
    given = instance(a, e, nodes=2, outages=(LEAVES,), start_s=130.0)
    found, _ = driven(replace(given, jobs=(a, e)), policy)
    assert max(o.segments[0].start_s for o in found.values()) >= 3600.0
    found, _ = driven(replace(given, jobs=(a, replace(e, limit_s=3600.0))), policy)
    assert found["e"].segments[0].placement == ((1, 8),)
    assert found["e"].state == "time limit"


def test_what_outlives_its_estimate_is_stopped_cleanly():
    """It is believed to end at 1,000 s; at 3,600 s it keeps all its work, and goes on elsewhere."""
    a, b = job("a", gpus=8, work=7200.0), job("b", gpus=8, work=7200.0, believed=1000.0)
    found, _ = driven(instance(a, b, nodes=2, outages=(LEAVES,)), "fifo")
    first = found["b"].segments[0]
    assert (first.placement, first.end_s, first.done) == (((1, 8),), 3600.0, 3600.0)


def test_a_decision_that_takes_time_meets_the_notice():
    """The notice comes while the policy thinks: the start is dropped, and the next round knows."""
    late = replace(LEAVES, notice_s=3595.0)
    given = instance(O1[0], O1[1], nodes=2, outages=(late,))
    given = replace(given, faults=replace(given.faults, decision_s=20.0))
    found, _ = driven(given)
    assert [found[name].segments[0].start_s for name in "ab"] == [20.0, 7220.0]


def everything():
    """Return an instance with limits, chains, an array, a time and an outage."""
    chain = [job(f"c{k}", *([(f"c{k - 1}", "ok")] if k else []), work=40.0) for k in range(4)]
    tasks = [job(f"t{k}", job_array="a", work=50.0 + k, limit_s=52.0) for k in range(5)]
    rest = [job("e", eligible_s=35.0), job("n", ("t4", "ok")), job("l", gpus=2, work=500.0)]
    outage = Outage(node=0, start_s=160.0, end_s=300.0, notice_s=150.0, open=True)
    jobs = (*chain, *tasks, *rest)
    return instance(
        *jobs, nodes=2, gpus=2, site=Site(job_arrays={"a": 2}), outages=(outage,), restart_s=3.0
    )


@pytest.mark.parametrize("policy", ["srtf", "prices"])
def test_a_killed_run_goes_on_bit_for_bit(policy, tmp_path):
    """The journal holds no more than decisions: the order of jobs follows from them."""
    given, path = everything(), tmp_path / "journal"
    cadence = Cadence(period_s=30.0, on_event=True)
    _, whole = driven(given, policy, journal=path, cadence=cadence)
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in (2, len(lines) // 2, len(lines) - 1):
        path.write_bytes(b"".join(lines[:kept]))
        again = run(given, policy, journal=path, cadence=cadence)
        assert (again.jobs, again.energy) == (whole.jobs, whole.energy)
    assert {o.state for o in whole.jobs} == {"completed", "time limit", "dependency failed"}
