"""The checker's statement of parts of GPUs, over all jobs on a GPU together."""

from collections import defaultdict
from typing import NamedTuple

from ronda.instances.check.parts import crowded
from ronda.instances.check.site.given import JobInPlan
from ronda.instances.cluster import Cluster
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Option
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.instances.violation import Violation


class HeldPart(NamedTuple):
    """A job with its option on a GPU, the first memory slice, and its time there."""

    job: str
    option: Option
    start: int
    since_s: float
    until_s: float
    goes_on: bool  # as it ran before


Gpu = tuple[int, int]
"""A node and the number of a GPU there."""


def plan_parts(round: Round, plan: Plan, given: list[JobInPlan]) -> list[Violation]:
    """Return the violations on GPUs in parts by a plan: ``parts`` and ``recut``."""
    on: defaultdict[Gpu, list[HeldPart]] = defaultdict(list)
    for state, allocation, kept in given:
        if allocation is not None and allocation.parts:
            _enter(on, state.job.id, allocation, (0.0, 1.0), goes_on=kept)
    return [fault for gpu, there in on.items() for fault in _at(round.cluster, gpu, there)]


def schedule_parts(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return the first violation on each GPU in parts by a schedule."""
    on: defaultdict[Gpu, list[HeldPart]] = defaultdict(list)
    for outcome in schedule.jobs:
        before: Allocation | None = None
        ended_s = -1.0
        for segment in outcome.segments:
            if segment.parts:
                held = segment.held
                goes_on = before is not None and before.goes_on(held)
                times = segment.start_s, segment.end_s
                kept = goes_on and ended_s == segment.start_s
                _enter(on, outcome.id, held, times, goes_on=kept)
                before, ended_s = held, segment.end_s
    found = []
    for gpu, each in on.items():
        moments = sorted({one.since_s for one in each if one.until_s > one.since_s})
        faults = (_at(instance.cluster, gpu, _there(each, at_s)) for at_s in moments)
        found += next(filter(None, faults), [])
    return found


def _there(each: list[HeldPart], at_s: float) -> list[HeldPart]:
    """Return those on a GPU at a time, told apart by whether they were there before."""
    there = (one for one in each if one.since_s <= at_s < one.until_s)
    return [one._replace(goes_on=one.goes_on or one.since_s < at_s) for one in there]


def _enter(
    on: defaultdict[Gpu, list[HeldPart]],
    job: str,
    held: Allocation,
    times: tuple[float, float],
    *,
    goes_on: bool,
) -> None:
    for node, gpu, start in held.parts:
        on[node, gpu].append(HeldPart(job, held.option, start, *times, goes_on))


def _at(cluster: Cluster, gpu: Gpu, there: list[HeldPart]) -> list[Violation]:
    """Return the violation by the jobs on a GPU at one time; those that go on alone break none."""
    node, number = gpu
    new = [each for each in there if not each.goes_on]
    if not new or not 0 <= node < len(cluster.topology.node_gpus):
        return []
    group = cluster.node_groups[cluster.topology.node_group[node]]
    where = f"node {node}, GPU {number}"
    if why := crowded(cluster, node, [(each.option, each.start) for each in there]):
        jobs = ", ".join(each.job for each in there)
        return [Violation("parts", where, f"{why}: jobs {jobs}")]
    if group.recut == "empty" and new[0].option.part and len(new) < len(there):
        stays = next(each.job for each in there if each.goes_on)
        message = f"is cut for {new[0].job} while {stays} runs there"
        return [Violation("recut", where, message)]
    return []
