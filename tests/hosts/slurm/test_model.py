"""The controller's round of what Slurm shows, less what it told Slurm itself, and its steps."""

from dataclasses import replace

import pytest
from msgspec import structs

from ronda.hosts.slurm.actions import kept_waiting
from ronda.hosts.slurm.controller import SlurmController
from ronda.hosts.slurm.model import modelled
from ronda.hosts.slurm.scope import Scope
from ronda.hosts.slurm.sizes import PastSizes
from ronda.hosts.slurm.state import SlurmState, TouchedJob
from ronda.hosts.slurm.tools import SlurmTools
from ronda.instances.plan import Plan
from ronda.instances.snapshots.snapshot import EndedJob, SeenJob, SeenNode, Snapshot
from ronda.solvers.registry import policy

NOW_S = 10_000.0
SPEEDS = "ronda:gpus=1:1/2:1.9/4:3.5/8:6"


def cluster(*jobs):
    """Return a cluster of two nodes of 8 GPUs."""
    has = {"gpus": 8.0, "cpu": 64.0, "memory_gib": 500.0}
    nodes = tuple(
        SeenNode(name=name, has=has, gpu_type="a100", partitions=("gpu",)) for name in ("n1", "n2")
    )
    return Snapshot(source="test", system="slurm", now_s=NOW_S, nodes=nodes, jobs=jobs)


def job(number="1", gpus=2, **more):
    """Return a job that waits for GPUs of one node."""
    fields = {"submit_s": 9_000.0, "limit_s": 3_600.0, "partitions": ("gpu",), "own_nodes": True}
    fields |= {"per": {"gpus": float(gpus), "cpu": 1.0}, "gpu_types": ("a100",), "rank": 500.0}
    return SeenJob(id=number, **fields | more)


def state_of(seen, memory=None, scope=None):
    """Return the state in the round of the only job of a cluster."""
    known = SlurmState(jobs={} if memory is None else {seen.id: memory})
    (state,) = modelled(cluster(seen), scope or Scope(), known, 30.0).round.jobs
    return state


def test_a_requeue_by_ronda_is_no_begin_time():
    """Slurm forgets when the job was submitted, and lets it wait; ronda does neither."""
    again = job(submit_s=9_990.0, eligible_s=10_111.0, comment="ronda:requeue", restarts=1)
    memory = TouchedJob(submit_s=9_000.0, requeued_s=9_990.3, done_s=40.0)
    state = state_of(again, memory)
    assert (state.job.submit_s, state.job.eligible_s, state.done) == (9_000.0, None, 40.0)
    assert state_of(again).job.eligible_s == 10_111.0
    other = job(submit_s=9_995.0, comment="ronda:requeue")  # another job, with the same ID
    assert state_of(other, memory).done == 0.0


@pytest.mark.parametrize(("begins_s", "own"), [(10_300.4, True), (10_900.0, False)])
def test_a_lease_is_told_from_a_begin_time_of_the_owner(begins_s, own):
    """Only the begin time that ronda gave is left out."""
    waits = job(eligible_s=10_300.0, comment="ronda")
    state = state_of(waits, TouchedJob(submit_s=9_000.0, begins_s=begins_s))
    assert state.job.eligible_s == (None if own else 10_300.0)


def test_nodes_chosen_by_ronda_are_free_again():
    """The next decision may choose others; those of the owner stay."""
    chosen = job(nodes=("n2",), comment="ronda")
    assert state_of(chosen, TouchedJob(submit_s=9_000.0, nodes=("n2",))).job.nodes == ()
    assert state_of(chosen).job.nodes == (1,)


def test_only_jobs_whose_owners_agree_may_be_stopped():
    """Neither a comment of something else nor the scope lets a job be stopped."""
    scope = Scope(partitions=("gpu",), min_run_s=60.0)
    for comment, may in (("ronda:requeue", True), ("ronda", False), ("x ronda:requeue", False)):
        runs = job(on={"n1": 1}, start_s=9_500.0, comment=comment)
        found = state_of(runs, scope=scope)
        assert (found.job.preemptible, found.job.min_run_s) == (may, 60.0)
    agreed = job(on={"n1": 1}, start_s=9_500.0, priority="elastic")
    assert state_of(agreed, scope=Scope(opt_in_qos=("elastic",))).job.preemptible
    assert not state_of(agreed).job.preemptible


def test_an_elastic_job_counts_work_at_speed_1():
    """Its limit is that of the GPUs that it asks for; the work stays when ronda changes both."""
    state = state_of(job(comment=SPEEDS))
    assert state.job.sizes == (1, 2, 4, 8)
    assert state.job.estimate.work == pytest.approx(3_600.0 * 1.9)
    runs = job(gpus=8, on={"n1": 1}, start_s=9_900.0, limit_s=1_200.0, comment=SPEEDS)
    memory = TouchedJob(submit_s=9_000.0, work_s=3_600.0 * 1.9, done_s=90.0)
    state = state_of(runs, memory)
    assert state.job.estimate.work == pytest.approx(3_600.0 * 1.9)
    assert state.done_at(NOW_S) == pytest.approx(90.0 + 100.0 * 6)


def test_an_elastic_job_has_one_node():
    """Other shapes stay as they are, and so does a size without a speed."""
    for more in ({"count": 2}, {"exclusive": True}, {"gpus": 3}):
        assert state_of(job(comment=SPEEDS, **more)).job.sizes == ()


def lines(*jobs, scope=None, before=None, who="fifo"):
    """Return the commands of a decision about a cluster."""
    drive = SlurmController(SlurmTools(), policy(who), scope or Scope(), None, before=before)
    return [command.line for command in drive.decided(cluster(*jobs)).due]


def test_nodes_that_slurm_does_not_take_are_given_up():
    """A job that waits for chosen nodes too long may start anywhere, and then is left to Slurm."""
    waits = job(gpus=8, nodes=("n1",), comment="ronda")
    for since_s, expected in ((60.0, []), (121.0, ["scontrol update JobId=1 ReqNodeList="])):
        memory = TouchedJob(submit_s=9_000.0, nodes=("n1",), chosen_s=NOW_S - since_s)
        assert lines(waits, before=SlurmState(jobs={"1": memory})) == expected
    left = TouchedJob(submit_s=9_000.0, chosen_s=NOW_S - 60.0)
    again = job(gpus=8, comment="ronda")
    assert lines(again, before=SlurmState(jobs={"1": left})) == []
    assert lines(again) == ["scontrol update JobId=1 ReqNodeList=n1"]


def test_a_job_that_would_fit_waits_by_a_lease_if_the_policy_wants_it_to():
    """Strictly in order, a small job may not pass a large one that has no room."""
    runs = job("1", gpus=8, on={"n1": 1}, start_s=9_500.0)
    large = job("2", gpus=8, count=2, submit_s=9_100.0, comment="ronda")
    small = job("3", gpus=4, submit_s=9_200.0, comment="ronda")
    assert "scontrol update JobId=3 StartTime=now+300" in lines(runs, large, small)
    kept = job("3", gpus=4, submit_s=9_200.0, comment="ronda", eligible_s=NOW_S + 290.0)
    memory = {"3": TouchedJob(submit_s=9_200.0, begins_s=NOW_S + 290.0)}
    assert not any("StartTime" in line for line in lines(runs, large, kept))
    assert lines(kept, before=SlurmState(jobs=memory)) == [
        "scontrol update JobId=3 ReqNodeList=n1 StartTime=now"
    ]


@pytest.mark.parametrize("comment", ["ronda:requeue", "ronda:gpus=2:1/4:1.8"])
def test_a_job_whose_earlier_runs_did_more_than_was_believed_is_not_over(comment):
    """Jobs like it took 60 s, and it has done 900 s; nothing says when it ends."""
    seen = job("2", name="short-2", user="eva", comment=comment)
    past = PastSizes().told(
        EndedJob(id=f"9{k}", name="short-1", user="eva", gpus=2, ran_s=60.0, whole=True)
        for k in range(9)
    )
    for memory, size in (
        ({}, pytest.approx(60, rel=0.2)),
        ({"done_s": 900.0, "work_s": 70.0}, 1800.0),
    ):
        known = SlurmState(jobs={"2": TouchedJob(submit_s=9_000.0, **memory)}, sizes=past)
        assert modelled(cluster(seen), Scope(), known, 30.0).state("2").job.estimate.work == size


def test_ended_jobs_of_a_user_say_which_job_is_short():
    """With equal limits, the job whose like was short starts first; by limits, the earlier one."""
    jobs = [job("1", gpus=8, name="long-1", user="eva", comment="ronda")]
    jobs += [job(f"{k}", gpus=8, name=f"short-{k}", user="eva", comment="ronda") for k in (2, 3)]
    ended = [("long-0", 3_000.0), ("short-0", 60.0), ("short-1", 90.0)]
    whole = {"user": "eva", "gpus": 8, "whole": True}
    past = tuple(EndedJob(id=f"9{k}", name=n, ran_s=s, **whole) for k, (n, s) in enumerate(ended))
    for learns, first in ((True, {"2", "3"}), (False, {"1", "2"})):
        drive = SlurmController(SlurmTools(), policy("qssf"), Scope(), None, learns=learns)
        seen = replace(cluster(*jobs), ended=past)
        assert set(drive.decided(seen).plan.allocations) == first


def test_each_job_that_fits_beside_a_plan_waits_on_purpose():
    """Two jobs of a node's 8 GPUs, for which there is room once; the third has no room."""
    runs = job("1", 7, on={"n1": 1}, start_s=9_500.0)
    waits = [job(str(k), gpus) for k, gpus in ((2, 8), (3, 8), (4, 1))]
    full = job("5", 8, on={"n2": 1}, start_s=9_500.0)
    for jobs, names in (((runs, *waits), {"2", "3", "4"}), ((runs, full, *waits), {"4"})):
        round_ = modelled(cluster(*jobs), Scope(), SlurmState(), 30.0).round
        assert kept_waiting(round_, Plan(allocations=round_.held)) == names


def test_nothing_is_done_just_after_slurmctld_was_started():
    """Its nodes have not registered yet: a job that it is told to start would have no GPUs."""
    runs = job("1", gpus=8, on={"n1": 1}, start_s=9_000.0, comment="ronda:requeue")
    others = [job(f"{k}", gpus=8, limit_s=60.0, comment="ronda") for k in (2, 3)]
    drive = SlurmController(SlurmTools(), policy("srtf"), Scope(restart_s=1.0), None)
    for age_s, stops in ((14.0, False), (16.0, True)):
        drive.tools.began_s = NOW_S - age_s
        due = [command.line for command in drive.decided(cluster(runs, *others)).due]
        assert ("scontrol requeue incomplete 1" in due) == bool(due) == stops


def test_jobs_that_wait_stand_in_the_order_in_which_their_turn_comes():
    """Each end of a running job starts the shortest; jobs in the right order are left alone."""
    runs = [job(f"{k}", gpus=8, on={f"n{k}": 1}, start_s=9_500.0 + k) for k in (1, 2)]
    waiting = {"11": 3_000.0, "12": 60.0, "13": 600.0, "14": 6_000.0}
    ranks = dict(zip(waiting, (900.0, 800.0, 700.0, 600.0), strict=True))

    def seen():
        return [
            job(name, gpus=8, limit_s=waiting[name], rank=ranks[name], comment="ronda")
            for name in waiting
        ]

    first = lines(*runs, *seen(), who="qssf")
    assert first
    for line in first:
        _, _, names, value = line.split()
        for name in names.removeprefix("JobId=").split(","):
            ranks[name] = float(value.removeprefix("Priority="))
    assert sorted(ranks, key=ranks.__getitem__, reverse=True) == ["12", "13", "11", "14"]
    assert 600.0 <= min(ranks.values()) <= max(ranks.values()) <= 900.0
    assert lines(*runs, *seen(), who="qssf") == []


def test_a_job_on_a_node_that_drains_stays_there():
    """Its GPUs are nobody's once it is gone, so that nothing is won by a stop or a resize."""
    runs = job(gpus=4, on={"n1": 1}, start_s=1_000.0, comment=SPEEDS)
    waits = job("2", gpus=8, limit_s=60.0)
    found = cluster(runs, waits)
    out = replace(found, nodes=(structs.replace(found.nodes[0], out="fan"), found.nodes[1]))
    state = modelled(out, Scope(), SlurmState(), 30.0).state("1")
    assert (state.job.preemptible, state.job.max_gpus) == (False, None)
    drive = SlurmController(SlurmTools(), policy("prices"), Scope(), None)
    assert drive.decided(out).plan.allocations["2"].placement == ((1, 8),)


def test_nodes_are_named_only_for_pieces_that_are_on_them():
    """Where a plan has 8 and 4 GPUs for two pieces of 6, Slurm is to keep room for them."""
    runs = job("1", gpus=2, on={"n1": 1}, start_s=9_500.0)
    wide = job("2", gpus=6, count=2, comment="ronda")
    small = job("3", gpus=1, submit_s=9_100.0, comment="ronda")
    found = lines(runs, wide, small)
    assert found == ["scontrol update JobId=3 ReqNodeList=n1"]
    assert lines(job("2", gpus=8, count=2, comment="ronda"))[0].endswith("ReqNodeList=n1,n2")


def test_a_job_that_takes_long_to_end_is_not_stopped_again():
    """As on a node that has died, and is not known to have."""
    ends = job("1", gpus=8, on={"n1": 1}, start_s=9_000.0, comment="ronda:requeue")
    short = [job(f"{k}", gpus=8, limit_s=60.0) for k in (2, 3)]
    memory = TouchedJob(submit_s=9_000.0, requeued_s=NOW_S - 20.0)
    before = SlurmState(jobs={"1": memory})
    assert not any("requeue" in line for line in lines(ends, *short, before=before, who="srtf"))
    assert any("requeue" in line for line in lines(ends, *short, who="srtf"))
