"""Backfilling: who passes a job that finds no room, and what the others are promised."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import ronda
from ronda.horizon.driver import run
from ronda.instances.budget import Budget, StepSeries
from ronda.instances.check.checker import check
from ronda.instances.cluster import Partition, Rack
from ronda.instances.instance import Faults, Outage
from ronda.instances.round import Round

JOBS = [
    ("a", 0, 2, 100),
    ("b", 10, 4, 50),  # waits for a
    ("c", 20, 2, 300),  # would delay b
    ("d", 30, 1, 60),  # is done before a, or beside nobody
]


def starts(schedule):
    """Return when each job first ran."""
    return {job.id: job.segments[0].start_s for job in schedule.jobs}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # b at 100, when a is done; c and d after it
        ("fifo", {"a": 0, "b": 100, "c": 150, "d": 150}),
        # c runs to 320 and takes what b needs; d beside it to 90
        ("fifo(backfill=free)", {"a": 0, "b": 320, "c": 20, "d": 100}),
        # d, 30 to 90, is done before 100, when b starts; c would not be
        ("fifo(backfill=easy)", {"a": 0, "b": 100, "c": 150, "d": 30}),
        ("fifo(backfill=conservative)", {"a": 0, "b": 100, "c": 150, "d": 30}),
        # by GPU seconds: d 60, b 200, c 600
        ("qssf(backfill=easy)", {"a": 0, "b": 100, "c": 150, "d": 30}),
        # d starts alone when it comes: before b, whom it does not delay
        ("qssf", {"a": 0, "b": 100, "c": 150, "d": 30}),
    ],
)
def test_who_passes(make_instance, policy, expected):
    """Four GPUs on one node; worked out by hand."""
    assert starts(run(make_instance(JOBS), policy)) == expected


def test_only_the_conservative_rule_keeps_the_second_in_line_from_being_delayed(make_instance):
    """B (4 GPUs) is promised 100 s, c (3 GPUs) 150 s; d (1 GPU, 1,000 s) may stand beside c.

    A second node has 1 GPU free until 120 s. e (1 GPU, 1,000 s) fits there at once, where it takes
    what c would need: on two nodes of 4 GPUs, with x (3 GPUs, 120 s) on the other one.
    """
    jobs = [
        ("a", 0, 4, 100),
        ("x", 1, 3, 120),
        ("b", 10, 4, 50),
        ("c", 20, 4, 50),
        ("e", 30, 1, 1000),
    ]
    easy, conservative = (
        starts(run(make_instance(jobs, nodes=2), f"fifo(backfill={rule})"))
        for rule in ("easy", "conservative")
    )
    assert easy == {"a": 0, "x": 1, "b": 100, "c": 150, "e": 30}
    assert conservative == {"a": 0, "x": 1, "b": 100, "c": 121, "e": 150}


def test_promised_nodes_are_left_alone(make_instance):
    """B (4 GPUs) is promised node 0 at 100 s; c (1 GPU, 900 s) fits there best, and goes to node 1.

    Node 0 has a (3 GPUs, 100 s), node 1 x (2 GPUs, 1,000 s).
    """
    jobs = [("a", 0, 3, 100), ("x", 1, 2, 1000), ("b", 10, 4, 50), ("c", 20, 1, 900)]
    for rule in ("easy", "conservative"):
        found = starts(run(make_instance(jobs, nodes=2), f"fifo(backfill={rule})"))
        assert found == {"a": 0, "x": 1, "b": 100, "c": 20}


def test_a_queue_blocks_its_own_partition_alone(make_instance):
    """The first job of p waits for GPUs; that of q, behind it, starts at once."""
    instance = make_instance([("a", 0, 4, 100), ("b", 1, 4, 100), ("c", 2, 1, 10)])
    cluster = instance.cluster
    group = replace(cluster.node_groups[0], partition="p")
    other = replace(group, name="more", partition="q")
    parts = (Partition(name="p"), Partition(name="q"))
    cluster = replace(cluster, node_groups=(group, other), partitions=parts)
    jobs = [replace(j, partition="q" if j.id == "c" else "p") for j in instance.jobs]
    instance = replace(instance, cluster=cluster, jobs=tuple(jobs))
    assert starts(run(instance, "fifo")) == {"a": 0, "b": 100, "c": 2}


RULES = ("easy", "conservative")


@pytest.mark.parametrize("rule", RULES)
def test_a_job_that_waits_for_an_end_that_nobody_knows_is_passed_over(make_instance, rule):
    """Nobody knows when a is done: b is promised nothing, and c starts beside a."""
    instance = make_instance(JOBS)
    instance = replace(instance, jobs=tuple(replace(j, estimate=None) for j in instance.jobs))
    found = starts(run(instance, f"fifo(backfill={rule})"))
    assert found == starts(run(instance, "fifo(backfill=free)"))
    assert found["c"] == 20


@pytest.mark.parametrize("rule", RULES)
def test_a_job_too_large_for_what_is_in_service_is_passed_over(make_instance, rule):
    """Node 1 is down until 1,000 s: w (8 GPUs) waits for it, and b is the first to be promised.

    On node 0 a (3 GPUs) runs until 100 s, when b (4 GPUs) starts; c (1 GPU, 300 s) would delay b,
    d (1 GPU, 50 s) does not. w starts when node 1 is back and c, the last on node 0, is done.
    """
    jobs = [
        ("a", 0, 3, 100),
        ("w", 1, 8, 10),
        ("b", 10, 4, 50),
        ("c", 20, 1, 300),
        ("d", 30, 1, 50),
    ]
    out = Faults(outages=(Outage(node=1, start_s=0.0, end_s=1000.0),))
    instance = make_instance(jobs, nodes=2, faults=out)
    found = starts(run(instance, f"fifo(backfill={rule})"))
    assert found == {"a": 0, "d": 30, "b": 100, "c": 150, "w": 1000}
    assert starts(run(instance, "fifo"))["b"] == 1010  # nobody passes w


def awake(instance, *, racks=(), **fields):
    """Return an instance whose nodes never sleep: they would draw as much (400 W a node of 4)."""
    group = replace(instance.cluster.node_groups[0], sleep_w=1e4, **fields)
    groups = (group,)
    if racks:
        groups = tuple(
            replace(group, name=rack.name, rack=rack.name, count=1, partition=partition)
            for rack, partition in racks
        )
    parts = tuple(Partition(name=name) for name in sorted({g.partition for g in groups}))
    cluster = replace(instance.cluster, node_groups=groups, racks=tuple(r for r, _ in racks))
    return replace(instance, cluster=replace(cluster, partitions=parts))


@pytest.mark.parametrize("rule", RULES)
def test_watts_are_promised_as_well(make_instance, rule):
    """Four GPUs idle at 400 W, each busy one adds 200 W; of 1,000 W three can be busy.

    b (3 GPUs) waits for a (2 GPUs), until 1,000 s. c (1 GPU) is done before, at 920 s. d (1 GPU)
    would leave b its GPUs, but not its watts: it starts when b is done. w (4 GPUs), the first, can
    not start before the cap rises, and is passed over.
    """
    jobs = [
        ("w", 0, 4, 10),
        ("a", 0, 2, 1000),
        ("b", 10, 3, 1000),
        ("c", 20, 1, 900),
        ("d", 30, 1, 5000),
    ]
    cap = Budget(power_cap_w=StepSeries(times_s=(0.0, 3000.0), values=(1000.0, 2000.0)))
    found = starts(run(awake(make_instance(jobs, budget=cap)), f"fifo(backfill={rule})"))
    assert found == {"a": 0, "c": 20, "b": 1000, "d": 2000, "w": 7000}


@pytest.mark.parametrize("rule", RULES)
def test_no_partition_takes_watts_that_another_one_s_first_job_is_promised(make_instance, rule):
    """As before, on two nodes of 4 GPUs (800 W) with 1,400 W: d is alone in partition q."""
    jobs = [("a", 0, 2, 1000), ("b", 10, 3, 1000), ("c", 20, 1, 900), ("d", 30, 1, 5000)]
    cap = Budget(power_cap_w=StepSeries(times_s=(0.0,), values=(1400.0,)))
    racks = ((Rack(name="r0"), "p"), (Rack(name="r1"), "q"))
    instance = awake(make_instance(jobs, budget=cap), racks=racks)
    own = [replace(job, partition="q" if job.id == "d" else "p") for job in instance.jobs]
    found = starts(run(replace(instance, jobs=tuple(own)), f"fifo(backfill={rule})"))
    assert found == {"a": 0, "c": 20, "b": 1000, "d": 2000}


ARRIVALS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(1, 3), st.integers(1, 200)),
    min_size=1,
    max_size=14,
)


@settings(max_examples=20, deadline=None)
@given(jobs=ARRIVALS, rule=st.sampled_from(RULES), by_rack=st.booleans())
def test_a_cap_that_bears_three_gpus_is_as_good_as_three_gpus(make_instance, jobs, rule, by_rack):
    """A node of 8 GPUs idles at 600 W and may draw 1,200 W; racks: two such nodes, capped each."""
    rows = [(f"j{k}", s, g, d) for k, (s, g, d) in enumerate(sorted(jobs))]
    cap, nodes, racks = Budget(), 1, ()
    if by_rack:
        nodes = 2
        racks = tuple((Rack(name=f"r{k}", power_cap_w=1200.0), "default") for k in range(2))
    else:
        cap = Budget(power_cap_w=StepSeries(times_s=(0.0,), values=(1200.0,)))
    policy = f"fifo(backfill={rule})"
    capped = awake(make_instance(rows, nodes=nodes, gpus_per_node=8, budget=cap), racks=racks)
    small = make_instance(rows, nodes=nodes, gpus_per_node=3)
    assert starts(run(capped, policy)) == starts(run(small, policy))


@settings(max_examples=30, deadline=None)
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 200), st.integers(1, 8), st.integers(1, 200)),
        min_size=1,
        max_size=14,
    ),
    policy=st.sampled_from(
        ["fifo(backfill=easy)", "fifo(backfill=conservative)", "qssf(backfill=conservative)"]
    ),
)
def test_any_backfilled_schedule_passes_the_checker(make_instance, jobs, policy):
    """Whatever arrives, with exact sizes and two nodes of 4 GPUs."""
    rows = [(f"j{k}", s, g, d) for k, (s, g, d) in enumerate(sorted(jobs))]
    instance = make_instance(rows, nodes=2)
    assert check(instance, run(instance, policy)) == []


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 200), st.integers(1, 4), st.integers(1, 200)),
        min_size=1,
        max_size=14,
    )
)
def test_with_exact_sizes_nobody_starts_later_for_being_passed(make_instance, jobs):
    """Conservative backfilling of FIFO on one node: no job starts after it does without."""
    rows = [(f"j{k}", s, g, d) for k, (s, g, d) in enumerate(sorted(jobs))]
    instance = make_instance(rows)
    without = starts(run(instance, "fifo"))
    beside = starts(run(instance, "fifo(backfill=conservative)"))
    assert all(beside[job] <= without[job] + 1e-6 for job in without)


@pytest.mark.parametrize("policy", ["fifo(backfill=easy)", "fifo(backfill=conservative)"])
def test_a_job_far_shorter_than_the_runner_is_promised_its_start(policy):
    """In doubles 1e10 + 1e-7 is 1e10: b needs room then, when a has ended; c passes it."""

    def job(name, submit_s, gpus, work):
        own = {"id": name, "submit_s": submit_s, "profile": "p", "gpus": gpus}
        return {"job": own | {"estimate": {"work": work}}, "since_s": submit_s}

    held = {"option": {"pool": 0, "gpus": 2}, "placement": [[0, 2]]}
    nodes = {"name": "n", "count": 1, "gpus_per_node": 4, "gpu_type": "A"}
    plain = {
        "now_s": 200,
        "cluster": {"gpu_types": [{"name": "A", "memory_gib": 16}], "node_groups": [nodes]},
        "profiles": {"p": {"name": "p", "throughput": {"A": {"kind": "rigid"}}}},
        "running": [job("a", 0, 2, 1e10) | {"started": True, "allocation": held}],
        "waiting": [
            job("b", 50, 4, 1e-7),
            job("c", 60, 1, 50),
        ],
    }
    round_ = msgspec.convert(plain, type=Round)
    plan = ronda.solve(round_, policy)
    assert plan.record.message == ""
    assert plan.allocations.keys() == {"a", "c"}
