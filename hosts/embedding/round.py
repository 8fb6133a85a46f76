"""A round made from the data of a host."""

from collections.abc import Mapping, Sequence

from ronda.formulations.tenants.usage import used_by
from ronda.hosts.embedding.jobs import place_of, refuse_unknown
from ronda.hosts.embedding.nodes import tell_nodes
from ronda.hosts.embedding.plain import rows_of
from ronda.hosts.embedding.reader import Reader
from ronda.hosts.embedding.records import Settings, State, settings_of
from ronda.instances.arguments import checked
from ronda.instances.base import NonNegative, Positive
from ronda.instances.cluster import Cluster
from ronda.instances.job import Costs
from ronda.instances.profile import Profile
from ronda.instances.round import Round
from ronda.instances.site import NO_SITE, Site

STATE = (
    *("nodes", "clock", "done", "since_s", "held_s", "started"),
    *("restarts", "gpu_s", "owed_s", "ran_s", "blocked"),
)
"""The state fields that a job's row may have; all but `nodes` (of a running job) have defaults."""


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
    site: Site | None = None,
    leaving: Mapping[str, float] | None = None,
) -> Round:
    """Return a round of jobs in any order, from dicts, numpy values or a data frame.

    Parameters
    ----------
    cluster
        Cluster on which the jobs run.
    jobs
        One row per job with fields of a `Job`; ``work`` and ``work_sd``, the expected total work;
        ``rates``; and, for a running job, ``nodes`` with the GPUs on each, and the work ``done``.
        All but ``id`` are optional. Without rates or profile, work is seconds on the GPUs that the
        job asks for.
    rates
        Rates of all jobs, keyed by id or as a frame with a column ``job``; see
        `ronda.hosts.embedding.rates`. A job without rates or profile has unknown speed and may have
        only the GPUs that its user asked for.
    profiles
        Shared models of speed, keyed by name.
    now_s, length_s, costs, power_cap_w
        Same as in a `Round`.
    node_names
        Names of the nodes in order; by default the name of the group and a number.
    site
        Rules of the site.
    leaving
        Times at which nodes go out of service, keyed by name.

    Raises
    ------
    InputError
        If a job is wrong; the error names the job and the field or column.

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
    rest = {"length_s": length_s, "site": site or NO_SITE}
    settings = settings_of(cluster, profiles, costs, node_names or None, **rest)
    state = State(now_s=now_s, power_cap_w=power_cap_w)
    tell_nodes(state, settings, leaving)
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
    """Return the round of a state, without beliefs, on the GPUs in service of a cluster."""
    waking = tuple(node for node in state.waking if cluster.topology.waking_w[node])
    cap_w, waking_w = state.power_cap_w, cluster.topology.waking_w[list(waking)].sum()
    states = sorted((of.state for of in state.jobs.values()), key=lambda s: s.job.submit_s)
    running = tuple(each for each in states if each.allocation is not None)
    half_life_s = settings.site.usage_half_life_s
    return Round(
        now_s=state.now_s,
        length_s=settings.length_s,
        cluster=cluster,
        profiles=profiles,
        waiting=tuple(each for each in states if each.allocation is None),
        running=running,
        costs=settings.costs,
        power_cap_w=None if cap_w is None else max(0.0, cap_w - float(waking_w)),
        asleep=state.asleep,
        waking=waking,
        site=settings.site,
        used=used_by(
            state.past, settings.cluster.topology.pools, running, state.now_s, half_life_s
        ),
        leaving=tuple(sorted((settings.number[name], at) for name, at in state.leaving.items())),
    )
