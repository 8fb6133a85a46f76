"""Snapshots of Slurm with all that users may write and operators may set, for hypothesis."""

from hypothesis import strategies as st
from msgspec.structs import replace

from ronda.hosts.slurm.scope import Scope
from ronda.hosts.slurm.state import SlurmState, TouchedJob
from ronda.instances.job import After
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot

NOW_S = 1_000_000.0
TERMS = ("ronda", "ronda:requeue", "ronda:gpus=1:1/2:1.9/4:3.5/8:6", "ronda:gpus=2:1/4:1.5")
TERMS += ("ronda:gpus=9999:1/4:99999999999",)
HOSTILE = (
    "",
    "ronda ",
    "Ronda",
    "ronda:all",
    "ronda:gpus=0:1",
    "ronda:gpus=4:1.2.3",
    "ronda\nJobId=1 Priority=0",
    "ronda\x1b[31m; scancel 1",
    "$(reboot)",
)
HELD = ("it is held by its user (scontrol release)", "JobHeldUser")
SPOILT = ("Slurm says BadConstraints", "BadConstraints")
IDS = ("1", "2", "3", "4", "5", "7_1", "7_2", "8+0", "10", "11", "12", "4294967295")
RANKS = (500.0, 501.0, 700.0, 900.0, 1.0, 4294901759.0, 4294967293.0, 0.0)


@st.composite
def clusters(draw):
    """Draw a snapshot in which no node has more on it than it has."""
    nodes = [draw(_nodes(f"n{k + 1}")) for k in range(draw(st.sampled_from((1, 2, 2, 3, 4))))]
    free = {node.name: node.has.get("gpus", 0.0) for node in nodes}
    shared = dict.fromkeys(free, True)
    jobs = []
    for name in draw(
        st.lists(
            st.sampled_from(IDS),
            unique=True,
            min_size=draw(st.sampled_from((0, 5, 7))),
            max_size=12,
        )
    ):
        job = draw(_jobs(name, [*free]))
        room = [n for n in free if free[n] >= job.per["gpus"] and shared[n]]
        room = [n for n in room if not job.exclusive or free[n] == _gpus(nodes, n) > 0]
        on = room[: job.count]
        awake = all(n.power == "on" for n in nodes if n.name in on)
        if (
            job.blocked is None
            and len(on) == job.count
            and awake
            and draw(st.sampled_from((True, True, False)))
        ):
            per = {"gpus": _gpus(nodes, on[0])} if job.exclusive else job.per
            for n in on:
                free[n] -= per["gpus"]
                shared[n] = not job.exclusive
            ran_s = draw(st.sampled_from((5_000.0, 500.0, 30.0, 0.0)))
            more = {"on": dict.fromkeys(on, 1), "start_s": NOW_S - ran_s, "own_nodes": True}
            alike = len({_gpus(nodes, n) for n in on}) == 1 or not job.exclusive
            if alike:
                job = replace(job, per=per, nodes=(), after=(), **more)
        jobs.append(job)
    fields = {"source": "test", "system": "slurm", "now_s": NOW_S}
    return Snapshot(nodes=tuple(nodes), jobs=tuple(jobs), **fields)


def _gpus(nodes, name):
    return next(node.has.get("gpus", 0.0) for node in nodes if node.name == name)


@st.composite
def _nodes(draw, name):
    gpus = (
        draw(st.sampled_from((8.0, 8.0, 4.0)))
        if name != "n4"
        else draw(st.sampled_from((0.0, 8.0)))
    )
    power = draw(st.sampled_from(("on", "on", "on", "down", "going down", "waking")))
    out = draw(st.sampled_from((None, None, None, "drained"))) if power == "on" else None
    partitions = draw(st.sampled_from((("gpu",), ("gpu",), ("gpu", "other"), ("other",))))
    has = {"gpus": gpus, "cpu": 64.0, "memory_gib": 500.0}
    has = {of: amount for of, amount in has.items() if amount}
    kind = "a100" if gpus else None
    return SeenNode(name=name, has=has, gpu_type=kind, partitions=partitions, power=power, out=out)


@st.composite
def _jobs(draw, name, nodes):
    rank = draw(st.sampled_from(RANKS))
    blocked, reason = HELD if rank == 0 else draw(st.sampled_from((*[(None, None)] * 7, SPOILT)))
    named = draw(st.sampled_from((*[()] * 6, (nodes[0],))))
    count = 1 if named else draw(st.sampled_from((1, 1, 1, 2)))
    return SeenJob(
        id=name,
        name=draw(st.sampled_from(("train", "a\nb", "\x1b[2J", "\u202e"))),
        user=draw(st.sampled_from(("ann", "bob"))),
        tenant=draw(st.sampled_from((None, "team", "x,y"))),
        comment=draw(st.sampled_from(TERMS) | st.sampled_from(TERMS + HOSTILE)),
        partitions=draw(st.sampled_from((*[("gpu",)] * 6, ("other",), ("gpu", "other")))),
        priority=draw(st.sampled_from((None, "normal", "high"))),
        rank=rank,
        submit_s=NOW_S - draw(st.sampled_from((0.0, 60.0, 9_000.0))),
        eligible_s=draw(st.sampled_from((*[None] * 6, NOW_S - 5, NOW_S + 100, NOW_S + 9_000))),
        limit_s=draw(st.sampled_from((None, 60.0, 3_600.0, 86_400.0))),
        count=count,
        per={"gpus": draw(st.sampled_from((2.0, 4.0, 8.0, 1.0))), "cpu": 1.0},
        own_nodes=draw(st.booleans()) or count == 1,
        exclusive=draw(st.sampled_from((*[False] * 6, True))),
        gpu_types=draw(st.sampled_from(((), ("a100",)))),
        nodes=named,
        blocked=blocked,
        reason=reason,
        after=draw(st.sampled_from((*[()] * 6, (After(job="1", when="ok"),))))
        if name != "1"
        else (),
        preemptible=draw(st.sampled_from((*[True] * 5, False))),
        told=draw(st.sampled_from((*[True] * 7, False))),
        per_gpu=draw(st.sampled_from((*[False] * 5, True))),
        restarts=draw(st.sampled_from((0, 0, 2))),
    )


@st.composite
def memories(draw, found):
    """Draw what a controller may remember: of these jobs, of others, and times of other clocks."""
    times = st.sampled_from((None, NOW_S - 5, NOW_S - 500, NOW_S + 100, NOW_S + 1e8))
    jobs = {}
    for job in draw(st.lists(st.sampled_from(found.jobs), max_size=4)) if found.jobs else ():
        jobs[job.id] = TouchedJob(
            submit_s=draw(st.sampled_from((job.submit_s, job.submit_s, 5.0))),
            priority=draw(st.sampled_from((None, 7.0, 500.0))),
            begins_s=draw(times),
            nodes=draw(st.sampled_from(((), job.nodes, ("n1",)))),
            requeued_s=draw(times),
            done_s=draw(st.sampled_from((0.0, 100.0))),
            work_s=draw(st.sampled_from((None, 3_600.0))),
            refused_s=draw(times),
        )
    return SlurmState(jobs=jobs, given_s=(NOW_S + 1e6,) * draw(st.sampled_from((0, 3))))


scopes = st.builds(
    Scope,
    partitions=st.sampled_from(((), ("gpu",), ("gpu",), ("gpu", "other"))),
    qos=st.sampled_from((*[()] * 6, ("high",))),
    accounts=st.sampled_from((*[()] * 6, ("team",))),
    min_run_s=st.sampled_from((0.0, 60.0)),
    actions_per_minute=st.sampled_from((2, 60)),
    power=st.booleans(),
)
