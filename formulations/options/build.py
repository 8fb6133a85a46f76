"""The construction of the option table of a round.

Jobs of one application in one pool choose from the rows of one `Grid`, the configurations there.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ronda.formulations.options.application import (
    Application,
    Requested,
    application_of,
    applications,
)
from ronda.formulations.options.configurations import Grid, RatedJob, Terms, grids, rated_ways
from ronda.formulations.options.table import (
    ASKED,
    BATCH,
    CLOCK,
    COLUMNS,
    FLOATS_FROM,
    GPUS,
    RATE,
    WATTS,
    OptionTable,
    columns_of,
    runs_as,
)
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.job import JobState
from ronda.instances.models.cache import Remembered
from ronda.instances.models.efficiency import efficiency, scales_at
from ronda.instances.plan import Plan
from ronda.instances.profile import NoiseScale
from ronda.instances.round import Round

# The number of jobs handled together, so that temporary arrays of a few MiB stay in the cache.
TOGETHER = 1024
# The most jobs that are handled one by one, with results remembered for later rounds.
FEW = 32


class Offer(NamedTuple):
    """Rows (K,) with their jobs, their rates, and the columns of the ways in which they run."""

    job: Rows
    way: Rows
    rate: Floats


def build(
    round: Round, *, elastic: bool = True, prune: bool = True, mind_power: bool | None = None
) -> OptionTable:
    """Return all options of a round's live jobs.

    Elastic jobs may take the GPU counts of `Application.sizes`, every clock of the GPU type, and
    the profile's batches. Where watts matter, slower batches that draw less power have rows in
    addition to the fastest batch; otherwise only the fastest batch has a row. A job with a rigid
    profile has only its requested GPUs at full clock. A job with unknown gradient noise keeps its
    own batch, at full efficiency. If a profile has a table of rates, each row of the table is an
    option. Options use the fewest nodes that hold their GPUs. Where the pool has several racks and
    the profile pays for crossing them, options on several nodes have rows of span ``rack``, if a
    rack is large enough, and rows of span ``cluster``, which count as crossing racks.

    The current option of a job always has a row, flagged `current`, at the rate of its real nodes.
    A running job that is not preemptible has no other row.

    Parameters
    ----------
    round
        The snapshot.
    elastic
        Whether options other than the requested GPUs and batch at full clock have rows.
    prune
        Whether to drop rows that another row of the same job and pool dominates (see `rivals`).
    mind_power
        Whether to keep rows with a lower rate and less power. By default they are kept if the round
        or a rack has a limit on power or energy. Objectives that count watts need True.
    """
    minds_power = bool(mind_power)
    if mind_power is None:
        capped = any(rack.power_cap_w is not None for rack in round.cluster.racks)
        mind_power = capped or round.watts is not None
    jobs = round.jobs
    offer, ways = _offered(round, jobs, elastic=elastic, flags=(prune, mind_power))
    offer, ways, current = _with_current(round, jobs, offer, ways)
    checkpoint()
    order = np.argsort(offer.job, kind="stable")
    checkpoint()
    offer = Offer(offer.job[order], offer.way[order], offer.rate[order])
    checkpoint()
    return _table(round, offer, ways, current[order], minds_power=minds_power)


def table_of(round: Round, plan: Plan) -> OptionTable:
    """Return the option table of a plan, with one option for each job that runs.

    As in `build`, an option that a running job keeps has the rate on the job's real nodes.
    """
    states = [state for state in round.jobs if state.job.id in plan.allocations]
    given = [plan.allocations[state.job.id].option for state in states]
    job = np.array([j for j, s in enumerate(round.jobs) if s.job.id in plan.allocations], dtype=int)
    held = [state.allocation for state in states]
    current = np.array(
        [h is not None and h.option.same_way(o) for h, o in zip(held, given, strict=True)], bool
    )
    columns = columns_of(given)
    runs = [state for state, same in zip(states, current.tolist(), strict=True) if same]
    columns[RATE, current] = _current_rates(round, runs)
    return _table(round, Offer(job, np.arange(len(job)), columns[RATE]), columns, current)


def _table(
    round: Round, offer: Offer, ways: Floats, current: Mask, *, minds_power: bool = False
) -> OptionTable:
    jobs, (job, way, rate) = round.jobs, offer
    pool, gpus, span, width = (column[way] for column in ways[:FLOATS_FROM].astype(np.int64))
    asked = ways[ASKED][way] if (ways[ASKED] != ways[GPUS]).any() else None
    checkpoint()
    return OptionTable(
        jobs=jobs,
        pools=round.cluster.topology.pools,
        start=np.searchsorted(job, np.arange(len(jobs) + 1)),
        job=job,
        pool=pool,
        gpus=gpus,
        span=span,
        width=width,
        clock=ways[CLOCK][way],
        batch=ways[BATCH][way],
        rate=rate,
        power_w=ways[WATTS][way],
        current=current,
        must_run=np.array([_must_run(state) for state in jobs], dtype=bool),
        minds_power=minds_power,
        asked=asked,
    )


def _must_run(state: JobState) -> bool:
    return state.allocation is not None and not state.job.preemptible


def _offered(
    round: Round, jobs: Sequence[JobState], *, elastic: bool, flags: tuple[bool, bool]
) -> tuple[Offer, Floats]:
    """Return the rows from which jobs may choose, and the ways to run them (COLUMNS, W)."""
    alike: dict[tuple[object, ...], list[int]] = {}
    cut = list[int]()
    for j, state in enumerate(jobs):
        if not _must_run(state):
            job = state.job
            if job.part is not None or job.share is not None:
                cut.append(j)
                continue
            chooses = elastic and state.noise is not None
            counts = (job.gpus, job.min_gpus, job.max_gpus, job.sizes)
            shape = (job.one_node, job.exclusive, job.slices)
            key = (job.profile, job.partition, job.gpu_types, job.batch, counts, shape, chooses)
            alike.setdefault(key, []).append(j)
    nobody = np.empty(0, dtype=np.int64)
    told, choosing = list[RatedJob](), list[tuple[list[int], Application, Terms]]()
    for members in alike.values():
        checkpoint()
        like = jobs[members[0]]
        for of in applications(round, like.job):
            if of.rated is not None:
                told += [RatedJob(j, jobs[j].job, of, elastic) for j in members]
                continue
            choosing.append((members, of, _terms(of, like, elastic and not of.rigid, flags)))
    parts, ways, offset = [Offer(nobody, nobody, np.empty(0))], [np.empty((COLUMNS, 0))], 0
    made = grids([(of, terms) for _, of, terms in choosing])
    for (members, of, terms), grid in zip(choosing, made, strict=True):
        checkpoint()
        which, way, rate = offers(grid, of, terms, [jobs[j].noise for j in members])
        parts.append(Offer(np.array(members)[which], way + offset, rate))
        ways.append(grid.ways)
        offset += grid.ways.shape[1]
    prune, mind_power = flags
    whose, rows = rated_ways(told, prune=prune, mind_power=mind_power)
    parts.append(Offer(whose, offset + np.arange(len(whose)), rows[RATE]))
    ways.append(rows)
    if cut:
        asked = Requested(round)
        pairs = [(j, option) for j in cut for option in asked.options(jobs[j])]
        rows, at = columns_of(option for _, option in pairs), offset + len(whose)
        whose = np.array([j for j, _ in pairs], dtype=np.int64)
        parts.append(Offer(whose, at + np.arange(len(pairs)), rows[RATE]))
        ways.append(rows)
    return _joined(parts), np.concatenate(ways, axis=1)


def _joined(parts: Iterable[Offer]) -> Offer:
    return Offer(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _terms(of: Application, like: JobState, free: bool, flags: tuple[bool, bool]) -> Terms:
    """Return the terms of all jobs like `like`; without `free` they run only as requested."""
    job, batches = like.job, of.profile.batches
    if not free or like.noise is None or not batches:
        batches = (of.batch(job),)
    counts = of.sizes(job) if free else of.as_requested(job)
    clocks = of.shape.pool.gpu_type.clocks if free else (1.0,)
    return Terms(clocks, batches, counts, *flags, job.exclusive)


def _with_current(
    round: Round, jobs: Sequence[JobState], offer: Offer, ways: Floats
) -> tuple[Offer, Floats, Mask]:
    """Return rows and ways with current options at their real rates, and a mask of these rows."""
    held = {j: s.allocation.option for j, s in enumerate(jobs) if s.allocation is not None}
    current = np.zeros(len(offer.job), dtype=bool)
    if not held:
        return offer, ways, current
    rate = np.zeros(len(jobs))
    rate[list(held)] = _current_rates(round, [jobs[j] for j in held])
    same = runs_as(ways, offer.way, offer.job, held)
    current[same], offer.rate[same] = True, rate[offer.job[same]]
    more = np.array(sorted(held.keys() - set(offer.job[same].tolist())), dtype=np.int64)
    own = Offer(more, ways.shape[1] + np.arange(len(more)), rate[more])
    return (
        _joined([offer, own]),
        np.concatenate([ways, columns_of(held[j] for j in more.tolist())], axis=1),
        np.concatenate([current, np.ones(len(more), dtype=bool)]),
    )


def _current_rates(round: Round, running: Sequence[JobState]) -> list[float]:
    """Return the rates of running jobs on their real nodes.

    If the profile does not cover the nodes or the pool, the option's promised rate stands in.
    """
    rates, known = list[float](), dict[tuple[str, int], Application | None]()
    rack = round.cluster.topology.node_rack
    for state in running:
        allocation = state.allocation
        assert allocation is not None
        pair = (state.job.profile, allocation.option.pool)
        if pair not in known:
            known[pair] = application_of(round, state, allocation.option.pool)
        of, rate = known[pair], allocation.option.rate
        if of is not None:
            racks = 1
            if of.minds_racks:
                racks = len({int(rack[node]) for node, _ in allocation.placement})
            rate = of.rate_on(allocation, racks, state.noise) or rate
        rates.append(rate)
    return rates


_known = Remembered[tuple[Application, Terms, NoiseScale | None], Offer](maxsize=512)


def offers(grid: Grid, of: Application, terms: Terms, noises: Sequence[NoiseScale | None]) -> Offer:
    """Return the rows of a grid for jobs with the given gradient noise scales.

    Rows number their job by its position in `noises`. Without a scale (None) every sample counts
    fully.
    """
    if len(noises) <= FEW:
        parts = _known.of(
            [(of, terms, noise) for noise in noises],
            lambda missing: ((key, _rows(grid, of, terms, [key[2]])) for key in missing),
        )
        which = np.arange(len(parts)).repeat([len(part.way) for part in parts])
        return _joined(parts)._replace(job=which)
    parts = []
    for at in range(0, len(noises), TOGETHER):
        checkpoint()
        part = _rows(grid, of, terms, noises[at : at + TOGETHER])
        parts.append(part._replace(job=part.job + at))
    return _joined(parts)


def _rows(grid: Grid, of: Application, terms: Terms, noises: Sequence[NoiseScale | None]) -> Offer:
    """Return the rows of a grid for jobs with the given noises, as in `offers`."""
    kept, rates = _choose(of, terms, grid, noises)
    which, way = kept.nonzero()
    return Offer(which, way, rates[kept])


def _choose(
    of: Application, terms: Terms, grid: Grid, noises: Sequence[NoiseScale | None]
) -> tuple[Mask, Floats]:
    """Return whether jobs with the given noises have each row, and their rates, (X, R) each.

    A batch uses no shared resource but watts. A larger batch synchronises less often, and draws
    more power where synchronisation takes fewer watts than computation. The work per sample of a
    batch depends on the noise, so the dominated batches differ from job to job. Unless watts
    matter, the fastest batch is the best, and the first among equally fast batches.
    """
    worth = _worth(of, terms.batches, noises)
    rates = worth[:, grid.batch] * grid.ways[RATE]
    kept = rates > 0
    if grid.rivals is not None:
        for b, (first, later) in enumerate(grid.rivals.transpose(1, 0, 2)):
            kept &= rates > worth[:, b, None] * first
            if later.any():
                kept &= rates >= worth[:, b, None] * later
    elif not terms.mind_power:
        of_each = rates.reshape(len(rates), -1, len(terms.batches))
        fastest = of_each.argmax(axis=2)[:, :, None] == np.arange(len(terms.batches))
        kept &= fastest.reshape(kept.shape)
    return kept, rates


def _worth(
    of: Application, batches: tuple[float, ...], noises: Sequence[NoiseScale | None]
) -> Floats:
    """Return the work per sample in each batch, shape (X, B)."""
    found = np.ones((len(noises), len(batches)))
    known = [x for x, noise in enumerate(noises) if noise is not None]
    if known and not of.rigid:
        scales = scales_at([noise for noise in noises if noise is not None], batches)
        found[known] = efficiency(scales, np.array(batches), of.profile.base_batch)
    return found
