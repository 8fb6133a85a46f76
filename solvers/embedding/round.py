"""A round from what a host has."""

from collections.abc import Mapping, Sequence
from typing import Any

from ronda.instances.arguments import checked
from ronda.instances.base import NonNegative, Positive
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.job import Costs, Job, JobState
from ronda.instances.profile import Profile
from ronda.instances.round import Round
from ronda.solvers.embedding.held import held, placement_of
from ronda.solvers.embedding.jobs import (
    given_jobs,
    named_counts,
    refuse_odd,
    shown,
    unknown_profile,
)
from ronda.solvers.embedding.plain import is_frame, plain, rows_of
from ronda.solvers.embedding.rates import Host, Ladder, Tables, tables, tables_of

STATE = ("nodes", "clock", "done", "since_s", "started", "restarts", "gpu_s", "owed_s")
"""What a job's row may say of its state: all but `nodes` (where it runs) have defaults."""


@checked
def make_round(
    cluster: Cluster,
    jobs: object,
    *,
    rates: object = None,
    profiles: Mapping[str, Profile] | None = None,
    ladder: Ladder = "pool",
    now_s: NonNegative = 0.0,
    length_s: Positive = 60.0,
    costs: Costs | None = None,
    power_cap_w: NonNegative | None = None,
    node_names: Sequence[str] = (),
) -> Round:
    """Return a round of jobs in any order, from dicts, numpy values or a data frame.

    Parameters
    ----------
    cluster
        The machines.
    jobs
        A row a job: fields of a `Job`; ``work`` and ``work_sd``, its expected total work;
        ``rates``; and, of a job that runs, ``nodes`` with the GPUs on each, and what it has
        ``done``. All but ``id`` may be left out.
    rates
        Those of all jobs, by id or as a frame with a column ``job``; see
        `ronda.solvers.embedding.rates`. A job without rates or profile is not known yet: it is
        offered what its user asked for.
    profiles
        Models that jobs share, by name.
    ladder
        GPU counts that callables are asked for: ``"pool"``, ``"all"`` or the counts.
    now_s, length_s, costs, power_cap_w
        As in a `Round`.
    node_names
        Names of the nodes, in their order; empty: they are numbered.

    Raises
    ------
    InputError
        Names the job and the field or column that is wrong.

    Examples
    --------
    >>> import ronda
    >>> cluster = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=40), 3, 8)
    >>> round_ = ronda.make_round(
    ...     cluster, [{"id": "a", "work": 900.0, "rates": {8: 1.0, 16: 1.8, 24: 2.5}}]
    ... )
    >>> ronda.solve(round_, "prices").allocations["a"].option.gpus
    24
    """
    host, shared = Host(cluster, ladder), dict(profiles or {})
    rows = rows_of(jobs, "jobs")
    told = told_rates(host, rates, named_counts(rows))
    made = given_jobs([_without_state(row) for row in rows], host, shared, told)
    untold = unknown_profile(cluster)
    number = {name: k for k, name in enumerate(node_names)}
    known, states = dict[str, Profile](), list[JobState]()
    for row, given in zip(rows, made, strict=True):
        job, profile = shown(given, untold, shared)
        known[profile.name] = profile
        states.append(_state(row, job, profile, cluster, number, now_s))
    refuse_odd(made, [state.job for state in states], known, cluster)
    states.sort(key=lambda state: state.job.submit_s)
    return Round(
        now_s=now_s,
        length_s=length_s,
        cluster=cluster,
        profiles=known,
        waiting=tuple(state for state in states if state.allocation is None),
        running=tuple(state for state in states if state.allocation is not None),
        costs=costs or Costs(),
        power_cap_w=power_cap_w,
    )


def told_rates(host: Host, rates: object, named: Mapping[str, Sequence[int]]) -> dict[str, Tables]:
    """Return the tables of all jobs, from rates by id or columns with one named ``job``.

    `named` has the GPU counts, by id, that fields of jobs name.
    """
    if rates is None:
        return {}
    by_column = is_frame(rates) or (isinstance(rates, Mapping) and "job" in rates)
    if by_column or not isinstance(rates, Mapping):
        return tables_of(host, rates)
    return tables(host, {str(k): v for k, v in rates.items() if v is not None}, named)


def _without_state(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in STATE}


def _state(
    row: Mapping[str, Any],
    job: Job,
    profile: Profile,
    cluster: Cluster,
    number: Mapping[str, int],
    now_s: float,
) -> JobState:
    """Return a job's state; InputError if it runs in a way without a rate."""
    place = f"job {job.id!r}"
    more = {key: plain(row[key]) for key in STATE if key in row and key not in _OF_NODES}
    if row.get("nodes") is None:
        return JobState(job=job, **{"since_s": job.submit_s} | more)
    placement = placement_of(row["nodes"], cluster, number, place)
    clock = plain(row.get("clock", 1.0))
    found = held(cluster, job, profile, placement, clock=clock)
    if found is None:
        gpus = sum(n for _, n in placement)
        how = f"it runs on {gpus} GPUs of {len(placement)} nodes at clock {clock:g}, without a rate"
        raise InputError(f"{place}, nodes", how, "a row of its rates for that")
    more = {"since_s": now_s, "started": True} | more
    return JobState(job=job, allocation=found, **more)


_OF_NODES = ("nodes", "clock")
