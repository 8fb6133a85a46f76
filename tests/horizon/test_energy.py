"""Energy accounting closes: the parts add up to the integral of cluster power, found naively."""

import random
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ronda.formulations.options.build import build
from ronda.formulations.options.table import option
from ronda.horizon.driver import run
from ronda.instances.check.checker import check
from ronda.instances.job import Allocation, Costs
from ronda.instances.plan import Plan
from ronda.solvers.contract import Capability


@dataclass(frozen=True)
class Shuffler:
    """Draws every plan: starts, stops, moves and reclocks jobs; puts empty nodes to sleep."""

    name: ClassVar[str] = "shuffler"
    capabilities: ClassVar[Capability] = Capability.RANDOM

    def plan(self, round, *, deadline, seed, initial=None):
        """Keep most of what runs; place others on any nodes of the one pool with room."""
        rng = random.Random(seed)
        table = build(round, prune=False)
        free = round.cluster.topology.node_gpus.tolist()
        given = {}
        for state in round.running:
            if rng.random() < 0.8:
                given[state.job.id] = state.allocation
                for node, gpus in state.allocation.placement:
                    free[node] -= gpus
        for j, state in enumerate(table.jobs):
            if state.job.id in given:
                continue
            chosen = option(table, rng.randrange(table.start[j], table.start[j + 1]))
            nodes = [n for n, left in enumerate(free) if left >= chosen.gpus]
            if nodes and (rng.random() < 0.9 or not given):
                node = rng.choice(nodes)
                free[node] -= chosen.gpus
                chosen = replace(chosen, span="node")
                placement = ((node, chosen.gpus),)
                given[state.job.id] = Allocation(option=chosen, placement=placement)
        used = {n for held in given.values() for n, _ in held.placement}
        asleep = [n for n in range(len(free)) if n not in used and rng.random() < 0.7]
        return Plan(policy=self.name, allocations=given, asleep=tuple(asleep))


def integral_j(instance, schedule):
    """Return the integral of cluster power, from what each node and GPU does between events."""
    (group,), (gpu_type,) = instance.cluster.node_groups, instance.cluster.gpu_types
    segments = [s for outcome in schedule.jobs for s in outcome.segments]
    times = {0.0, schedule.end_s}
    for s in segments:
        times |= {s.start_s, s.resume_s, s.end_s}
    for _, start_s, end_s in schedule.sleeps:
        times |= {start_s, end_s, min(end_s + group.wake_s, schedule.end_s)}
    joules = []
    ordered = sorted(times)
    for begin, end in pairwise(ordered):
        middle, watts = (begin + end) / 2, 0.0
        sleeping = {n for n, a, b in schedule.sleeps if a <= middle < b}
        waking = {n for n, _, b in schedule.sleeps if b <= middle < b + group.wake_s} - sleeping
        held = 0
        for s in segments:
            if s.start_s <= middle < s.end_s:
                held += s.option.gpus
                idle = middle < s.resume_s
                watts += s.option.gpus * gpu_type.idle_w if idle else s.option.power_w
        awake = group.count - len(sleeping)
        watts += awake * group.host_idle_w + len(sleeping) * group.sleep_w
        watts += len(waking) * group.wake_w
        watts += (awake * group.gpus_per_node - held) * gpu_type.idle_w
        joules.append(watts * (end - begin))
    return float(np.sum(joules))


JOBS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(1, 4), st.integers(1, 200)), min_size=1, max_size=10
)


@settings(max_examples=30, deadline=None)
@given(
    jobs=JOBS,
    policy=st.sampled_from([Shuffler(), Shuffler(), "fifo", "srtf(teardown_s=0)", "race-to-idle"]),
    nodes=st.integers(1, 3),
    wake_w=st.sampled_from([0.0, 75.5]),
    seed=st.integers(0, 1000),
)
def test_the_parts_of_the_energy_are_the_integral_of_power(
    make_clocked, jobs, policy, nodes, wake_w, seed
):
    """To 1e-9 relative, whatever jobs and nodes do; and the independent checker agrees."""
    rows = [(f"j{k}", s, g, d) for k, (s, g, d) in enumerate(sorted(jobs))]
    costs = Costs(start_s=3.0, restart_s=7.0)
    instance = make_clocked(rows, nodes=nodes, wake_w=wake_w, costs=costs)
    schedule = run(instance, policy, seed=seed)
    exact = integral_j(instance, schedule)
    assert schedule.energy.total_j == pytest.approx(exact, rel=1e-9)
    assert all(getattr(schedule.energy, part) >= 0 for part in schedule.energy.__struct_fields__)
    assert check(instance, schedule) == []


def test_a_wake_up_costs_energy_by_hand(make_clocked):
    """A node that sleeps until 30 s draws 75 W more than idle for the 100 s that it wakes."""
    instance = make_clocked([("a", 0, 4, 300), ("b", 30, 4, 50)], nodes=2, wake_w=75.0)
    schedule = run(instance, "race-to-idle")
    assert schedule.sleeps[0] == (1, 0.0, 30.0)
    assert schedule.energy.wake_j == pytest.approx(75 * 100)
    assert check(instance, schedule) == []
    claimed = replace(schedule.energy, wake_j=0.0)
    assert [v.code for v in check(instance, replace(schedule, energy=claimed))] == ["accounting"]
