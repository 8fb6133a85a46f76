"""Room for a waiting job, against trying everything, and on clusters known by hand."""

import dataclasses
import os

import pytest
from msgspec.structs import replace

from every_room import crowded, least_by_trying
from ronda.instances.errors import InputError
from ronda.instances.job import Slices
from ronda.instances.site import LimitGroup, PriorityClass, Quota, Tenant
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.questions.makeroom.answer import harm_said, least_harm
from ronda.questions.makeroom.loose import RoomTerms
from ronda.questions.makeroom.verify import faults

HOUR = 3600.0


@pytest.mark.parametrize("seed", range(100 if os.environ.get("SOAK") else 40))
def test_harm_is_least(seed: int) -> None:
    """The harm is that of trying everything, and proved; if there is none, trying finds none."""
    snapshot, terms = crowded(seed)
    found, least = least_harm(snapshot, "J", terms), least_by_trying(snapshot, terms)
    assert found.proved
    assert found.possible == (least is not None)
    assert found.possible == (found.reason is None)
    if least is not None:
        assert tuple(found.least.values()) == pytest.approx(least)
        assert found.bounds == pytest.approx(found.least)


def _runs(job: str, on: str | dict[str, int], ran: float = 1.0, **more) -> SeenJob:
    at = {on: 1} if isinstance(on, str) else on
    more = {"per": {"gpus": more.pop("gpus", 0.0)}, "limit_s": 48 * HOUR} | more
    return SeenJob(id=job, start_s=-ran * HOUR, on=at, count=sum(at.values()), **more)


def _cluster(nodes: int, *jobs: SeenJob, has=None, **more) -> Snapshot:
    has = {"gpus": 8.0, "cpu": 64.0} if has is None else has
    made = more.pop("made", None) or [SeenNode(name=f"n{k}", has=dict(has)) for k in range(nodes)]
    return Snapshot(source="here", system="kueue", now_s=0.0, nodes=tuple(made), jobs=jobs, **more)


def _waits(**more) -> SeenJob:
    return SeenJob(**({"id": "J", "limit_s": 2 * HOUR} | more))


def _done(snapshot: Snapshot, terms: RoomTerms | None = None) -> dict[str, str]:
    """Return what becomes of each job that is disturbed."""
    found = least_harm(snapshot, "J", terms or RoomTerms())
    assert found.possible
    assert found.proved
    return {action.job: action.verb for action in found.actions[:-1]}


def test_reclaiming_spares_those_within_their_quota() -> None:
    """What a queue holds above its share is taken back, not what a cheaper one holds within it.

    https://github.com/kai-scheduler/KAI-Scheduler/issues/1750
    """
    tenants = tuple(
        Tenant(name=name, quotas=(Quota(guaranteed=gpus),))
        for name, gpus in (("reclaimer", 4), ("batch", 0), ("protected", 4))
    )
    running = (
        _runs("b", "n0", ran=9, gpus=4.0, tenant="batch"),
        _runs("p", "n0", ran=1, gpus=3.0, tenant="protected"),
    )
    waits = _waits(per={"gpus": 2.0}, tenant="reclaimer")
    snapshot = _cluster(1, *running, waits, tenants=tenants)
    assert _done(snapshot) == {"p": "stop"}
    assert _done(snapshot, RoomTerms(only_below="quota")) == {"b": "stop"}


@pytest.mark.parametrize(("borrow", "jobs"), [(None, 1), (0, 2)])
def test_smallest_eviction_with_and_without_borrowing(borrow: float | None, jobs: int) -> None:
    """A queue that is full evicts one job of its own if it may borrow, and two if it may not.

    https://github.com/kubernetes-sigs/kueue/issues/533
    """
    tenants = (
        Tenant(name="all"),
        Tenant(name="A", parent="all", quotas=(Quota(of="cpu", guaranteed=10, borrow=borrow),)),
        Tenant(name="B", parent="all", quotas=(Quota(of="cpu", guaranteed=10),)),
    )
    places = [("A", k, 0.0) for k in range(10)] + [("B", k, 9.0) for k in range(9)]
    running = [
        _runs(f"{tenant}{k}", "n0", per={"cpu": 1.0}, tenant=tenant, rank=rank)
        for tenant, k, rank in places
    ]
    waits = _waits(per={"cpu": 2.0}, tenant="A", rank=5.0)
    snapshot = _cluster(1, *running, waits, has={"cpu": 20.0}, tenants=tenants)
    done = _done(snapshot, RoomTerms(only_below="rank"))
    assert list(done.values()) == ["stop"] * jobs
    assert all(job.startswith("A") for job in done)


def test_pod_slots_are_in_the_way_too() -> None:
    """To evict the job that holds the GPUs is not enough if the other one holds a pod's place.

    https://github.com/kubernetes-sigs/kueue/issues/10497
    """
    running = (
        _runs("low-gpu", "n0", per={"gpus": 8.0, "pods": 1.0}),
        _runs("low-cpu", "n0", per={"cpu": 1.0, "pods": 1.0}),
    )
    has = {"gpus": 8.0, "cpu": 64.0, "pods": 2.0}
    waits = _waits(count=2, per={"gpus": 4.0, "pods": 1.0})
    assert _done(_cluster(1, *running, waits, has=has)) == {"low-gpu": "stop", "low-cpu": "stop"}
    one = replace(waits, count=1, per={"gpus": 8.0, "pods": 1.0})
    assert _done(_cluster(1, *running, one, has=has)) == {"low-gpu": "stop"}


def test_jobs_without_an_end_can_be_evicted() -> None:
    """One of two endless jobs goes, the one that has run for less time.

    https://github.com/kubernetes-sigs/kueue/issues/10929
    """
    running = [_runs(f"low{k}", f"n{k}", ran=2 - k, gpus=8.0, limit_s=None) for k in range(2)]
    assert _done(_cluster(2, *running, _waits(per={"gpus": 8.0}))) == {"low1": "stop"}


def test_a_licence_is_made_free() -> None:
    """The job that holds the licence is stopped although nodes are free; to move it does not help.

    https://github.com/aws-samples/aws-eda-slurm-cluster/issues/95
    """
    low = _runs("l1", "n0", per={"cpu": 8.0}, licences={"lic": 1.0})
    waits = _waits(per={"cpu": 8.0}, licences={"lic": 1.0})
    snapshot = _cluster(20, low, waits, has={"cpu": 8.0}, licences={"lic": 1.0})
    assert _done(snapshot) == {"l1": "stop"}
    found = least_harm(snapshot, "J", RoomTerms(moves_only=True))
    assert not found.possible
    assert found.proved
    assert found.reason == (
        "The terms forbid it. Without them one would stop 1 job; 0 GPU-hours of work are lost."
    )


def test_one_job_of_thirty_nodes() -> None:
    """One of thirty equal jobs goes, of one user.

    https://github.com/cBio/cbio-cluster/issues/204
    """
    running = [_runs(f"z{k}", f"n{k}", gpus=4.0, user="uz" if k < 25 else "uy") for k in range(30)]
    snapshot = _cluster(30, *running, _waits(per={"gpus": 1.0}), has={"gpus": 4.0})
    found = least_harm(snapshot, "J")
    assert found.least == {"lost": 4 * HOUR, "jobs": 1.0, "users": 1.0, "stopped": 1.0}


HALVES = (_runs("a", "n0", 5, gpus=4.0, user="u"), _runs("b", "n1", 3, gpus=4.0, user="v"))


def test_moves_go_before_stops() -> None:
    """The job that loses less makes room, and moves where it finds some."""
    snapshot = _cluster(2, *HALVES, _waits(per={"gpus": 8.0}))
    found = least_harm(snapshot, "J")
    assert [(one.verb, one.job, one.target) for one in found.actions] == [
        ("move", "b", {"n0": 1}),
        ("start", "J", {"n1": 1}),
    ]
    assert found.least == {"lost": 12 * HOUR, "jobs": 1.0, "users": 1.0, "stopped": 0.0}
    assert harm_said(found) == "move 1 job of 1 user; 12 GPU-hours of work are lost"
    short = least_harm(snapshot, "J", RoomTerms(checkpoint_s=HOUR / 2))
    assert short.least["lost"] == 2 * HOUR


def test_moves_come_in_turn() -> None:
    """Two jobs that change places need one of them to stop first; the order says which."""
    made = [
        SeenNode(name="n0", has={"gpus": 4.0}, features=("big",)),
        SeenNode(name="n1", has={"gpus": 4.0}),
        SeenNode(name="n2", has={"gpus": 2.0}),
    ]
    running = (_runs("a", "n0", gpus=2.0), _runs("b", "n0", gpus=2.0), _runs("c", "n1", gpus=2.0))
    waits = _waits(per={"gpus": 4.0}, features=("big",))
    found = least_harm(_cluster(3, *running, waits, made=made), "J", RoomTerms(moves_only=True))
    assert found.least["jobs"] == 2
    assert {one.job: one.first for one in found.actions} == {"a": False, "b": False, "J": False}
    snapshot = _cluster(
        2,
        _runs("x", "n0", gpus=4.0),
        _runs("y", "n1", gpus=2.0, nodes=("n0", "n1")),
        _waits(per={"gpus": 2.0}, nodes=("n0",)),
        made=[SeenNode(name="n0", has={"gpus": 4.0}), SeenNode(name="n1", has={"gpus": 4.0})],
    )
    found = least_harm(snapshot, "J", RoomTerms(moves_only=True))
    assert [(one.job, one.target, one.first) for one in found.actions] == [
        ("y", {"n0": 1}, False),
        ("x", {"n1": 1}, True),
        ("J", {"n0": 1}, False),
    ]
    assert list(faults(snapshot, found.actions)) == []


def test_pieces_of_a_moved_job_stay_apart() -> None:
    """Two jobs of two pieces share one node and have another each, none a node twice."""
    made = [
        SeenNode(name=f"n{k}", has={"gpus": g}) for k, g in enumerate((4.0, 4.0, 4.0, 2.0, 2.0))
    ]
    both = {"n0": 1, "n1": 1}
    running = [_runs(name, both, gpus=2.0, own_nodes=True) for name in "ab"]
    waits = _waits(count=2, per={"gpus": 4.0}, nodes=("n0", "n1"))
    snapshot = _cluster(5, *running, waits, made=made)
    found = least_harm(snapshot, "J", RoomTerms(moves_only=True))
    moved = [set(one.target) for one in found.actions[:2]]
    assert sorted(len(nodes) for nodes in moved) == [2, 2]
    assert moved[0] & moved[1] == {"n2"}


def test_a_measure_that_is_nought_is_kept() -> None:
    """Two jobs that lose nothing go, though two of one user would be as few."""
    people = enumerate(("u", "v", "w", "w"))
    running = [_runs(f"r{k}", f"n{k}", 3.0 * (k > 1), gpus=8.0, user=who) for k, who in people]
    snapshot = _cluster(4, *running, _waits(count=2, per={"gpus": 8.0}))
    found = least_harm(snapshot, "J", RoomTerms(least="jobs"))
    assert found.least == {"jobs": 2.0, "lost": 0.0, "users": 2.0, "stopped": 2.0}


@pytest.mark.parametrize(
    ("more", "terms", "gone"),
    [
        ({}, RoomTerms(), {"b": "move"}),
        ({"preemptible": False}, RoomTerms(), {"a": "move"}),
        ({"rank": 3.0}, RoomTerms(only_below="rank"), {"a": "move"}),
        ({"priority": "high"}, RoomTerms(only_below="class"), {"a": "move"}),
        ({"tenant": "safe"}, RoomTerms(), {"a": "move"}),
        ({"priority": "safe"}, RoomTerms(), {"a": "move"}),
        ({}, RoomTerms(least="users"), {"b": "move"}),
        ({"exclusive": True}, RoomTerms(), {"a": "stop"}),
        ({"slices": Slices(nodes=1)}, RoomTerms(), {"b": "stop"}),
        ({"held": {"n1": {"gpus": 4.0, "cpu": 8.0}}}, RoomTerms(), {"b": "move"}),
        ({"nodes": ("n1",)}, RoomTerms(), {"b": "stop"}),
    ],
)
def test_who_may_be_disturbed(more, terms, gone) -> None:
    """What protects the job that would lose least makes the other go; what ties it, stops it."""
    running = (replace(HALVES[0], rank=1.0, priority="low"), replace(HALVES[1], **more))
    snapshot = _cluster(
        2,
        *running,
        _waits(per={"gpus": 8.0}, rank=2.0, priority="high"),
        tenants=(Tenant(name="safe", min_run_s=4 * HOUR),),
        classes=(
            PriorityClass(name="low", rank=0),
            PriorityClass(name="high", rank=1),
            PriorityClass(name="safe", rank=0, min_run_s=4 * HOUR),
        ),
    )
    assert _done(snapshot, terms) == gone


@pytest.mark.parametrize(
    ("terms", "job", "words"),
    [
        (RoomTerms(most_jobs=0), {}, "The terms forbid it. Without them one would move 1 job"),
        (RoomTerms(most_gpus=3.0), {}, "The terms forbid it. Without them one would move 1 job"),
        (RoomTerms(), {"per": {"gpus": 9.0}}, "It asks for 9 GPUs on one node"),
        (RoomTerms(), {"blocked": "held by its user"}, "The scheduler holds it: held by its user."),
        (RoomTerms(), {"licences": {"l": 2.0}}, "limit of l is 1"),
    ],
)
def test_why_no_room_can_be_made(terms: RoomTerms, job: dict[str, object], words: str) -> None:
    """The reason is that of the cluster without all that may be disturbed, or the terms."""
    waits = _waits(**({"per": {"gpus": 8.0}} | job))
    found = least_harm(_cluster(2, *HALVES, waits, licences={"l": 1.0}), "J", terms)
    assert not found.possible
    assert found.proved
    assert words in str(found.reason)


def test_a_limit_on_time_to_come() -> None:
    """A job without an end that a limit counts in time must stop; a move does not help."""
    group = LimitGroup(name="g", max_gpu_s=20 * HOUR)
    running = (
        _runs("a", "n0", gpus=1.0, limit_s=None),
        _runs("b", "n0", gpus=1.0, limit_s=9 * HOUR),
    )
    snapshot = _cluster(2, *running, _waits(per={"gpus": 2.0}), groups=(group,))
    assert _done(snapshot) == {"a": "stop"}
    endless = replace(snapshot.jobs[-1], limit_s=None)
    found = least_harm(dataclasses.replace(snapshot, jobs=(*running, endless)), "J")
    assert not found.possible


def test_a_job_that_could_start_disturbs_nobody() -> None:
    """Without need nothing is moved; a job that runs, or is unknown, is refused."""
    snapshot = _cluster(2, *HALVES, _waits(per={"gpus": 4.0}))
    assert _done(snapshot) == {}
    for job in ("a", "nobody"):
        with pytest.raises(InputError, match="job"):
            least_harm(snapshot, job)
    for below in ("rank", "class", "quota"):
        with pytest.raises(InputError, match="only-below"):
            least_harm(snapshot, "J", RoomTerms(only_below=below))


def test_what_is_wrong_is_found() -> None:
    """Each way to spoil the actions is noticed, without the model."""
    held = replace(HALVES[1], id="c", on={"n3": 1}, preemptible=False)
    out = SeenNode(name="n2", has={"gpus": 8.0}, out="drained")
    made = [SeenNode(name=f"n{k}", has={"gpus": 8.0}) for k in (0, 1, 3)]
    waits = _waits(count=2, per={"gpus": 4.0}, own_nodes=False, licences={"l": 1.0})
    snapshot = _cluster(
        4, *HALVES, held, waits, made=[*made[:2], out, made[2]], licences={"l": 1.0}
    )
    move, start = least_harm(_cluster(2, *HALVES, _waits(count=1, per={"gpus": 8.0})), "J").actions
    start = replace(start, target={"n1": 2})
    assert list(faults(snapshot, (move, start))) == []
    spoilt = {
        "beyond what it has": (start,),
        "other pieces": (replace(move, target={"n0": 2}), start),
        "may not use node n2": (replace(move, target={"n2": 1}), start),
        "may not be disturbed": (replace(move, job="c", source={"n3": 1}), start),
        "than it asks for": (move, replace(start, target={"n1": 1})),
    }
    for words, actions in spoilt.items():
        assert any(words in fault for fault in faults(snapshot, actions)), words
    alone = dataclasses.replace(
        snapshot, jobs=(*snapshot.jobs[:-1], replace(snapshot.jobs[-1], exclusive=True))
    )
    shares = (replace(move, target={"n1": 1}), replace(start, target={"n1": 1, "n0": 1}))
    assert any("would share node" in fault for fault in faults(alone, shares))
    taken = dataclasses.replace(snapshot, licences_taken={"l": 1.0})
    assert any("a limit" in fault for fault in faults(taken, (move, start)))
