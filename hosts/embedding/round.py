"""A round from what a host has."""

from collections.abc import Mapping, Sequence

from ronda.hosts.embedding.jobs import place_of, refuse_unknown
from ronda.hosts.embedding.plain import rows_of
from ronda.hosts.embedding.reader import Reader
from ronda.hosts.embedding.records import Settings, State, settings_of
from ronda.instances.arguments import checked
from ronda.instances.base import NonNegative, Positive
from ronda.instances.cluster import Cluster
from ronda.instances.job import Costs
from ronda.instances.profile import Profile
from ronda.instances.round import Round

STATE = ("nodes", "clock", "done", "since_s", "started", "restarts", "gpu_s", "owed_s")
"""What a job's row may say of its state: all but `nodes` (where it runs) have defaults."""


@checked
def make_round(
    cluster: Cluster,
    jobs: object,
    *,
    rates: object = None,
    profiles: Mapping[str, Profile] | None = None,
    now_s: NonNegative = 0.0,
    length_s: Positive = 60.0,
    costs: Costs | None = None,
    power_cap_w: NonNegative | None = None,
    node_names: Sequence[str] | None = None,
) -> Round:
    """Return a round of jobs in any order, from dicts, numpy values or a data frame.

    Parameters
    ----------
    cluster
        The machines.
    jobs
        A row a job: fields of a `Job`; ``work`` and ``work_sd``, its expected total work;
        ``rates``; and, of a job that runs, ``nodes`` with the GPUs on each, and what it has
        ``done``. All but ``id`` may be left out. Without rates or profile, work is seconds on the
        GPUs that the job asks for.
    rates
        Those of all jobs, by id or as a frame with a column ``job``; see
        `ronda.hosts.embedding.rates`. A job without rates or profile is not known yet: it is
        offered what its user asked for.
    profiles
        Models that jobs share, by name.
    now_s, length_s, costs, power_cap_w
        As in a `Round`.
    node_names
        Names of the nodes, in their order; None: that of the group and a number.

    Raises
    ------
    InputError
        Names the job and the field or column that is wrong.

    Examples
    --------
    >>> import ronda
    >>> cluster = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=40), 3, 8)
    >>> round_ = ronda.make_round(
    ...     cluster,
    ...     [{"id": "a", "work": 900.0, "rates": {"gpus": [8, 16, 24], "rate": [1.0, 1.8, 2.5]}}],
    ... )
    >>> ronda.solve(round_, "prices").allocations["a"].option.gpus
    24
    """
    settings = settings_of(cluster, profiles, costs, node_names or None, length_s=length_s)
    state = State(now_s=now_s, power_cap_w=power_cap_w)
    reader = Reader(state, settings)
    rows = rows_of(jobs, "jobs")
    for k, row in enumerate(rows):
        refuse_unknown(row, place_of(k, row), STATE)
    new = [{"submit_s": 0.0} | {k: row[k] for k in row if k not in STATE} for row in rows]
    reader.add(new, rates)
    for row in rows:
        told = {key: row[key] for key in STATE if row.get(key) is not None}
        reader.show(str(row["id"]), told)
    known = {of.profile.name: of.profile for of in state.jobs.values()}
    return round_of(settings, state, known, cluster)


def round_of(
    settings: Settings, state: State, profiles: dict[str, Profile], cluster: Cluster
) -> Round:
    """Return the round of what is known, without beliefs, on what is in service of a cluster."""
    waking = tuple(node for node in state.waking if cluster.topology.waking_w[node])
    cap_w, waking_w = state.power_cap_w, cluster.topology.waking_w[list(waking)].sum()
    states = sorted((of.state for of in state.jobs.values()), key=lambda s: s.job.submit_s)
    return Round(
        now_s=state.now_s,
        length_s=settings.length_s,
        cluster=cluster,
        profiles=profiles,
        waiting=tuple(each for each in states if each.allocation is None),
        running=tuple(each for each in states if each.allocation is not None),
        costs=settings.costs,
        power_cap_w=None if cap_w is None else max(0.0, cap_w - float(waking_w)),
        asleep=state.asleep,
        waking=waking,
    )
