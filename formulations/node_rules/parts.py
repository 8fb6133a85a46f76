"""Parts and fractions of GPUs as rows over options, and the nodes that offer them.

A part takes m memory and c compute slices of a GPU, and a whole GPU takes all. On an empty GPU of
NVIDIA's tables, parts fit together just if both sums do; positions matter beside parts that stay.
The rows of both sums are ``parts[pool,memory]`` and ``parts[pool,compute]``
(`ronda.formulations.allocation.rows`). The rows here are of one form. For a weight w of profiles, a
GPU holds at most W(S) of new parts beside the parts S that stay, as tables of slices tell, so ::

    Σ_{k starts} w_k x_k + Σ_{r runs} d_r x_stay(r) ≤ Σ_GPUs W({})

with d_r such that W(S) ≤ W({}) - Σ_{r in S} d_r for all S. The weights are ⌊c / u⌋ for u = 2, 3 and
4, where at most ⌊7 / u⌋ are on a GPU (``halves`` for u = 4: 4g, 7g and whole GPUs), and 1 for one
profile, where parts stay or where the profile's `most` says so. They are necessary, and not exact.

Fractions take their sum, and the dual feasible functions f_k of S. P. Fekete and J. Schepers
(`ronda.formulations.dual_feasible`): f_1 gives 1 to every fraction above one half.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, combinations

import numpy as np

from ronda.formulations.options.stated_rows import Sheet
from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.cluster import NodeGroup, Parts
from ronda.instances.job import JobState, Option
from ronda.instances.models.cache import per_record
from ronda.instances.models.parts import On, bits
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING

UNITS = (2, 3, 4)
"""The numbers of compute slices by which parts are counted."""

FUNCTIONS = range(1, 8)
"""The k of the dual feasible functions of fractions."""


@per_record(maxsize=4)
def has_parts(round: Round) -> bool:
    """Return whether any job may have a part or a fraction of a GPU, or any GPU is cut for good."""
    if not round.has_rules:
        return False
    asks = any(s.job.part is not None or s.job.share is not None for s in round.jobs)
    return asks or any(group.cut for group in round.cluster.node_groups)


def closed_by_parts(round: Round, state: JobState, option: Option) -> Mask | None:
    """Return the nodes (N,) that do not offer the part, the fraction or the GPUs of an option."""
    if not has_parts(round):
        return None
    part, whole = option.part, option.share is None
    closed = [bool(g.cut) if whole else not g.offers(part) for g in round.cluster.node_groups]
    return np.array(closed)[round.cluster.topology.node_group]


def part_rows(round: Round, table: OptionTable, values: Floats, sheet: Sheet) -> None:
    """State the rows of parts, of fractions, and of GPUs that are not cut, in each pool."""
    if not has_parts(round):
        return
    topology, groups = round.cluster.topology, round.cluster.node_groups
    jobs = [state.job for state in table.jobs]
    asks = np.array([job.part is not None for job in jobs], dtype=bool)[table.job]
    share = np.array([job.share or 0.0 for job in jobs])[table.job]
    for p, pool in enumerate(table.pools):
        own = table.pool == p
        count = np.bincount(topology.node_group, topology.node_gpus * (topology.node_pool == p))
        there = [(group, int(n)) for group, n in zip(groups, count.tolist(), strict=True) if n]
        whole = np.where(own & ~asks & (share == 0), table.gpus, 0)
        cut = any(group.cut for group, _ in there)
        if cut:
            free = sum(n for group, n in there if not group.cut)
            _state(sheet, table, f"uncut[{pool.name}]", whole, free)
        if (own & (share > 0)).any():
            mixed = not all(group.shared for group, _ in there)
            used, gpus = np.where(own, share, 0.0), sum(n for g, n in there if g.shared)
            _fractions(sheet, table, pool.name, used, whole * (not mixed), gpus)
        if (own & asks).any():
            offering = [(g, n) for g, n in there if g.cut or g.recut != "never"]
            mixed = cut or len(offering) < len(there)
            rows = np.flatnonzero(own & asks)
            _profiles(round, table, sheet, rows, whole * (not mixed), offering)


def _state(sheet: Sheet, table: OptionTable, name: str, use: Floats | Rows, most: float) -> None:
    """State a row if it can bind."""
    rows = np.flatnonzero(use)
    if table.most_together(rows, use[rows]) > most * (1 + ROUNDING):
        sheet.state(name, rows, np.asarray(use[rows], dtype=float), float(most))


def _fractions(
    sheet: Sheet, table: OptionTable, pool: str, share: Floats, whole: Rows, gpus: int
) -> None:
    _state(sheet, table, f"shares[{pool}]", share + whole, gpus)
    seen = set[bytes]()
    for k in FUNCTIONS:
        steps = (k + 1) * share
        exact = np.abs(steps - np.rint(steps)) <= ROUNDING
        use = np.where(exact, share, np.floor(steps + ROUNDING) / k)
        if (use > share + ROUNDING).any() and use.tobytes() not in seen:
            seen.add(use.tobytes())
            _state(sheet, table, f"shares[{pool},{k}]", use + whole, gpus)


def _profiles(
    round: Round,
    table: OptionTable,
    sheet: Sheet,
    rows: Rows,
    whole: Rows,
    offering: Sequence[tuple[NodeGroup, int]],
) -> None:
    """State the rows of weights for options `rows` (n,) on parts of one pool.

    `offering` are the groups of nodes that offer parts, with their GPUs in service. Running jobs
    that may move count no more than where they would move to.
    """
    p = int(table.pool[rows[0]])
    pool, ways = table.pools[p], table.pools[p].gpu_type.ways
    if ways is None:
        return
    names = [table.jobs[j].job.part or "" for j in table.job[rows].tolist()]
    firm, closed = _firm(round, table, p)
    every = bool(firm) or any(group.cut for group, _ in offering)
    for label, weight in _weights(ways, set(names), every=every):
        most = [(_most(ways, weight, group.recut, group.cut, ()), n) for group, n in offering]
        use: Floats = np.multiply(whole, max((each for each, _ in most), default=0), dtype=float)
        use[rows] = [dict(weight).get(name, 0) for name in names]
        for group, there in firm:
            parts = tuple((name, start) for _, name, start in there)
            kept = _kept(ways, weight, group.recut, group.cut, parts)
            use[[k for k, _, _ in there]] = kept
        use[closed] = 0
        _state(sheet, table, label.format(pool.name), use, sum(each * n for each, n in most))


def _firm(
    round: Round, table: OptionTable, p: int
) -> tuple[list[tuple[NodeGroup, list[tuple[int, str, int]]]], list[int]]:
    """Return the group of nodes and the parts that must stay on each GPU of pool p that has any.

    A part is its row, the name of its profile, and its first slice. Also return the rows of other
    parts on GPUs that may be cut only when these have gone.
    """
    found = defaultdict[tuple[int, int], list[tuple[int, str, int]]](list)
    others = list[tuple[tuple[int, int], int]]()
    for k in np.flatnonzero(table.current & (table.pool == p)).tolist():
        held = table.jobs[table.job[k]].allocation
        for node, gpu, start in () if held is None else held.parts:
            if table.must_run[table.job[k]]:
                found[node, gpu].append((k, held.option.part or "", start))
            else:
                others.append(((node, gpu), k))
    nodes, groups = round.cluster.topology.node_group, round.cluster.node_groups
    firm = [(groups[nodes[node]], there) for (node, _), there in found.items()]
    closed = [k for g, k in others if g in found and groups[nodes[g[0]]].recut == "empty"]
    return firm, closed


Weight = tuple[tuple[str, int], ...]
"""What one part of each profile counts; profiles that are not named count nothing."""


def _weights(ways: Parts, asked: Iterable[str], *, every: bool) -> Iterator[tuple[str, Weight]]:
    """Yield weights with the names of their rows, for `str.format` with the pool's name."""
    for unit in UNITS:
        weight = tuple((p.name, p.compute // unit) for p in ways.profiles if p.compute >= unit)
        if weight:
            half = unit == (ways.compute + 1) // 2
            yield "halves[{}]" if half else f"parts[{{}},compute/{unit}]", weight
    for profile in ways.profiles:
        free = min(ways.memory // profile.memory, ways.compute // profile.compute)
        if profile.name in asked and (every or profile.most < free):
            yield f"parts[{{}},{profile.name}]", ((profile.name, 1),)


@lru_cache(maxsize=1 << 14)
def _kept(
    ways: Parts,
    weight: Weight,
    recut: str,
    cut: tuple[str, ...],
    there: tuple[On, ...],
) -> tuple[int, ...]:
    """Return the d_r of parts that stay on one GPU, one after the other as large as possible."""
    found: list[int] = []
    full = _most(ways, weight, recut, cut, ())
    for r, part in enumerate(there):
        spare = []
        for some in chain.from_iterable(combinations(range(r), n) for n in range(r + 1)):
            beside = (*(there[q] for q in some), part)
            less = _most(ways, weight, recut, cut, beside)
            spare.append(full - sum(found[q] for q in some) - less)
        found.append(min(spare))
    return tuple(found)


@lru_cache(maxsize=1 << 14)
def _most(
    ways: Parts,
    weight: Weight,
    recut: str,
    cut: tuple[str, ...],
    there: tuple[On, ...],
) -> int:
    """Return the most weight of further parts on a GPU beside some, without regard to compute."""
    worth, profiles = dict(weight), {p.name: p for p in ways.profiles}
    if recut == "never":
        left = Counter(cut) - Counter(name for name, _ in there)
        return sum(worth.get(name, 0) for name in left.elements())
    if recut == "empty" and there:
        return 0
    best, taken = [0], 0
    for name, start in there:
        taken |= bits(profiles[name], start) if name in profiles else 0
    for slice_ in range(ways.memory):  # best[s] is the most on slices before s
        best.append(best[slice_])
        for profile in profiles.values():
            start = slice_ + 1 - profile.memory
            if start in profile.starts and not bits(profile, start) & taken:
                best[-1] = max(best[-1], best[start] + worth.get(profile.name, 0))
    own = [name for name, _ in weight]
    if len(own) == 1:
        return min(best[-1], profiles[own[0]].most - sum(name == own[0] for name, _ in there))
    return best[-1]
