"""Limits that give way to jobs that may not be stopped, and only as far as these jobs need.

A limit of a round is raised to the use of those jobs alone; all other nodes sleep where this saves
power. A rule of the user is raised to the least use that any choice has together with those jobs.
Jobs that use nothing of a raised limit may start.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace as with_fields

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.rows import CAP, WINDOW
from ronda.formulations.options.stated_rows import ROUNDED, StatedRows
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import (
    TOLERANCE,
    capped,
    extra_gpu_w,
    extra_w,
    least_node_w,
    rack_caps,
    seconds_left,
    spare,
)
from ronda.instances.job import JobState, used_nodes
from ronda.instances.models.sharing import may_stop, together
from ronda.instances.plan import Conflict
from ronda.instances.round import Round

FEW = 10
"""The most jobs that a message names; of more jobs, the message gives the number."""


def firm_jobs(round: Round) -> list[JobState]:
    """Return the running jobs that may not be stopped, with the other jobs of their arrays."""
    groups = () if may_stop(round.running) else together(round.running)
    return [s for jobs in groups if not may_stop(jobs) for s in jobs]


def kind_and_names(kind: str, names: Sequence[object]) -> str:
    """Return the names after the noun for them, as in "jobs a, b"."""
    return f"{kind}{'s' * (len(names) > 1)} {', '.join(map(str, names))}"


def given_way(limit: str, row: str, jobs: Collection[JobState], found: str) -> Conflict:
    """Return the conflict between a limit, named by its row, and jobs that may not be stopped."""
    names = [state.job.id for state in jobs]
    which = kind_and_names("job", names) if len(names) <= FEW else f"{len(names)} jobs"
    which = f"{which}, which may not be stopped: {found}"
    rows = (*(f"one_option[{name}]" for name in names), row)
    return Conflict(rows, f"no plan keeps {limit} and {which}")


def bearing(round: Round) -> tuple[Round, tuple[Conflict, ...]]:
    """Return a round whose limits on power and energy allow the jobs that may not be stopped.

    Also return the conflicts of the limits that gave way. The energy budget is raised by the
    largest shortage at any time of the window.
    """
    firm = firm_jobs(round) if round.watts is not None or capped(round.cluster) else []
    if not firm:
        return round, ()
    topology, found = round.cluster.topology, list[Conflict]()
    held = [(state, state.allocation) for state in firm if state.allocation is not None]
    awake = list(used_nodes(allocation for _, allocation in held))
    node_w = least_node_w(topology)
    node_w[awake] = topology.awake_w[awake]
    base, more_w = float(node_w.sum()), np.array([extra_w(round, a.option) for _, a in held])
    cap_w, need_w = round.power_cap_w, base + float(more_w.sum())
    if cap_w is not None and need_w > cap_w * (1 + TOLERANCE):
        found.append(given_way(f"{cap_w:.6g} W", CAP, firm, f"{need_w:.6g} W"))
        round = replace(round, power_cap_w=need_w)
    if round.energy_j is not None:
        lasts_s = np.array([seconds_left(round, state, a.option) for state, a in held])
        times_s, spare_w = spare(round, base, more_w, lasts_s)
        over_j, energy_j = float((-spare_w * times_s).max()), round.energy_j
        if over_j > energy_j * TOLERANCE:
            limit = f"{energy_j:.6g} J in {round.window_s:g} s"
            found.append(given_way(limit, WINDOW, firm, f"{over_j:.6g} J more"))
            bank_j = None if round.banked_j is None else round.banked_j + over_j
            round = replace(round, energy_j=energy_j + over_j, banked_j=bank_j)
    waking, racks = [n for n in awake if n in round.waking], topology.node_rack.tolist()
    node_w[waking] += topology.waking_w[waking]
    for _, allocation in held:
        for node, gpus in allocation.placement:
            node_w[node] += gpus * extra_gpu_w(round, allocation.option)
    needs_w = dict[str | None, float]()
    for cap in rack_caps(round.cluster):
        need_w = float(node_w[np.isin(racks, list(cap.racks))].sum())
        if need_w > cap.cap_w * (1 + TOLERANCE):
            inside = [s for s, a in held if cap.racks & {racks[n] for n in used_nodes([a])}]
            limit = f"{cap.cap_w:.6g} W in rack {cap.name}"
            found.append(given_way(limit, f"rack_power[{cap.name}]", inside, f"{need_w:.6g} W"))
            needs_w[cap.name] = need_w
    if needs_w:
        whole = round.cluster
        own = (replace(r, power_cap_w=needs_w.get(r.name, r.power_cap_w)) for r in whole.racks)
        round = replace(round, cluster=replace(whole, racks=tuple(own)))
    return round, tuple(found)


def rules_bearing(own: StatedRows, table: OptionTable) -> tuple[StatedRows, tuple[Conflict, ...]]:
    """Return rules that allow the jobs that may not be stopped, and the conflicts of raised rules.

    A rule is raised only if some choice would keep it without those jobs. Soft rules stay as they
    are.
    """
    must = np.flatnonzero(table.must_run[table.job])
    if not len(must) or not len(own.names):
        return own, ()
    first = np.flatnonzero(np.diff(table.job, prepend=-1))
    use = own.dense()
    least = np.minimum(0.0, np.minimum.reduceat(use, first, axis=1)).sum(axis=1)
    needed = np.maximum(0.0, use[:, must])
    need, slack = least + needed.sum(axis=1), own.capacity + ROUNDED * np.abs(own.capacity)
    gave = np.isinf(own.penalty) & (least <= slack) & (need > slack)
    found = []
    for r in np.flatnonzero(gave).tolist():
        sign, most = (-1, "at least") if own.turned[r] else (1, "at most")
        row = own.names[r]
        jobs = [table.jobs[j] for j in table.job[must[needed[r] > 0]].tolist()]
        limit, has = f"{row} ({most} {sign * own.capacity[r]:g})", f"{sign * need[r]:g}"
        found.append(given_way(limit, row, jobs, has))
    return with_fields(own, capacity=np.where(gave, need, own.capacity)), tuple(found)
