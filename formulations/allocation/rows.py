"""The constraint families of a round, for all models.

A family is a function of the `Case` that yields the family's rows. The Pyomo model, the arrays of
the price engine, the limits of populations, the test of a choice (`within`) and the search for
limits that no choice meets (`shortages`) read these rows. ``docs/formulations.md`` has the same
names and formulas. The decisions are x_k, which is 1 if option k is chosen, the number a_c of awake
nodes of class c, and the kilowatts y_pr that jobs of pool p add in rack r.

**The contents of nodes**, whichever jobs they hold (``whole_nodes``, ``buddy``). As in placement,
every job is cut into whole nodes of the pool's largest size (M GPUs) and one block. So the pieces
on a node of G GPUs sum to at most G. For a function φ with φ(a) + φ(b) ≤ φ(a + b) and φ ≥ 0, the
pieces on a node have Σ φ(piece) ≤ φ(G). So with nodes c awake ::

    Σ_k (q_k φ(M) + φ(r_k)) x_k ≤ Σ_c φ(G_c) a_c

holds in every plan on nodes, and these rows cut off no choice that can be placed. φ(n) = n counts
GPUs (``gpus``).

**Buddy levels** are φ_l(n) = ⌊n / 2^l⌋. They follow from the flow of free blocks in a buddy
allocator. There are b_l blocks of 2^l GPUs, of which s_l are split into two blocks of 2^(l-1) and
t_l are taken. So t_l + s_l ≤ b_l + 2 s_(l+1) with b_l = Σ_c (⌊G_c / 2^l⌋ − 2 ⌊G_c / 2^(l+1)⌋). The
sum of level l and of 2^(m-l) times every level m above it is the row of level l. A flow that keeps
all rows exists if no more blocks are split than needed.

**Theorem.** If all blocks r_k are powers of two, these rows and Σ_k q_k x_k ≤ nodes of M GPUs are
exact: a choice that keeps them can be placed, perhaps with moves.
*Proof.* Place whole nodes first; the last row leaves enough nodes of M GPUs. Then place the blocks
in descending order. When a block of 2^l comes, nodes have lost only pieces at least as large, each
a multiple of 2^l, or all of their GPUs. So the number of free blocks of 2^l is Σ_c φ_l(G_c) less
that of the placed pieces, which is at least one by the row of level l. ∎

Where all nodes have 2^L GPUs, ⌊n / 2^l⌋ 2^l ≤ n makes every level a consequence of ``gpus``, and no
other row is needed.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ronda.formulations.allocation.model_data import Case
from ronda.formulations.allocation.racks import held_gpus, rack_gpus
from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.dual_feasible import node_shares, tightening
from ronda.formulations.options.stated_rows import StatedRows
from ronda.formulations.options.table import ANYWHERE, OptionTable
from ronda.formulations.watts import (
    TOLERANCE,
    awake_for,
    classes_of_nodes,
    least_awake,
    may_use_j,
    most_awake,
    tightest_s,
)
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.plan import Conflict
from ronda.instances.violation import ROUNDING

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

PowerAt = tuple[str, str]
"""The name of a pool and the name of a rack."""


@dataclass(frozen=True, slots=True)
class Row:
    """The row Σ_k use_k x_k + Σ_c nodes_c a_c + Σ_pr racks_pr y_pr ≤ capacity.

    Its ``name`` is ``family[index]``. ``use`` (n,) are the coefficients of options, and ``nodes``
    (C,) those of awake nodes, or ().
    """

    name: str
    use: Floats
    capacity: float
    nodes: tuple[float, ...] = ()
    racks: dict[PowerAt, float] = field(default_factory=dict)


UNNAMED = "(unnamed)"
"""The name for the rack of nodes without one."""

KILO = 1e3
"""The watts in a unit of y_pr."""

CAP, WINDOW, BY = "power_cap", "energy_window", "energy_by["
"""The names of the rows that limit the power and the energy of the whole cluster."""


def is_limit(name: str) -> bool:
    """Return whether the row of the given name limits the cluster's power or energy."""
    return name in (CAP, WINDOW) or name.startswith(BY)


def gpus(case: Case) -> Iterator[Row]:
    """Yield Σ_{k in p} GPUs_k x_k ≤ Σ_{c in p} GPUs_c a_c for each pool p.

    Fractions of GPUs count as such. If there are options on parts of GPUs, the memory and the
    compute slices of GPUs are counted, where whole GPUs take all.
    """
    pools, asked, slices = case.pool, case.gpus, case.table.slices
    for p, pool in enumerate(case.table.pools):
        nodes = tuple(-float(c.gpus_per_node) * (c.pool == p) for c in case.classes)
        ways = pool.gpu_type.ways
        cut = [s.job.part is not None for s in case.table.jobs] if slices is not None else []
        if slices is not None and ways and np.array(cut)[case.job[pools == p]].any():
            for i, (what, most) in enumerate((("memory", ways.memory), ("compute", ways.compute))):
                use = np.where(pools == p, slices[i, case.rows] * most, 0.0)
                there = tuple(most * n for n in nodes)
                yield Row(f"parts[{pool.name},{what}]", use, 0.0, there)
            continue
        if slices is not None:
            asked = slices[0, case.rows]
        yield Row(f"gpus[{pool.name}]", np.where(pools == p, asked, 0.0), 0.0, nodes)


def gpus_in_racks(case: Case) -> Iterator[Row]:
    """Yield Σ_{k in p, tied to r} GPUs_k x_k + Σ_{k stays} GPUs_kr x_k ≤ GPUs of p in rack r.

    The rows exist only where the model chooses racks together with options. They count nodes that
    may sleep, as any of these may be awake; the row of the pool counts only awake nodes.
    """
    if not case.joint:
        return
    topology, tied = case.round.cluster.topology, case.rack != ANYWHERE
    there, held = rack_gpus(topology), held_gpus(topology, case.table, case.rows)
    for p in np.unique(case.pool[tied]).tolist():
        for r in np.flatnonzero(there[p]).tolist():
            use = np.where(case.rack == r, case.gpus, held[:, r])
            use = np.where((case.pool == p) & (case.whole_gpus > 0), use, 0)
            name = f"gpus[{case.table.pools[p].name},{topology.racks[r] or UNNAMED}]"
            yield Row(name, use.astype(float), float(there[p, r]))


def ready_gpus(case: Case) -> Iterator[Row]:
    """Yield Σ_{k in p} ready_k x_k ≤ ready GPUs of p, where late options have ready_k = 0."""
    if case.waking is None:
        return
    for p in np.flatnonzero(np.isfinite(case.waking.gpus)).tolist():
        use = np.where(case.pool == p, case.waking.use, 0.0)
        yield Row(f"ready_gpus[{case.table.pools[p].name}]", use, float(case.waking.gpus[p]))


def power(case: Case) -> Iterator[Row]:
    """Yield Σ_k extra_k x_k + Σ_c (awake_c + waking_c − asleep_c) a_c ≤ cap − Σ_c asleep_c N_c.

    Class c has N_c nodes.
    """
    cap_w = case.round.power_cap_w
    if cap_w is not None:
        asleep_w = sum(c.count * c.sleep_w for c in case.classes)
        nodes = tuple(c.more_w for c in case.classes)
        yield Row(CAP, case.extra_w, cap_w - asleep_w, nodes)


def energy(case: Case) -> Iterator[Row]:
    """Yield Σ_k extra_k min(t, lasts_k) x_k + Σ_c more_c(t) a_c ≤ L(t) − t Σ_c asleep_c N_c in J.

    At most L(t) may be used by each time t from now in ``Case.times_s``
    (`ronda.formulations.watts`). An awake node uses (awake_c − asleep_c) t more than a sleeping
    node, and waking_c min(t, wake_c) to wake. The row of the window is `energy_window`; the other
    rows are `energy_by` t seconds.
    """
    if not case.times_s:
        return
    asleep_w = sum(c.count * c.sleep_w for c in case.classes)
    at_once = case.round.banked_j == 0
    for t, allowed_j in zip(
        case.times_s, may_use_j(case.round, np.array(case.times_s)).tolist(), strict=True
    ):
        name = WINDOW if t == case.round.window_s else f"{BY}{t!r}]"
        nodes = tuple(c.more_w * t if at_once else c.more_j(t) for c in case.classes)
        yield Row(name, case.used_j(t), allowed_j - asleep_w * t, nodes)


def seconds_of(name: str, window_s: float) -> float:
    """Return the joules that a constant watt adds to the row of a limit, 1 for the power cap."""
    if name.startswith(BY):
        return float(name[len(BY) : -1])
    return window_s if name == WINDOW else 1.0


def times_of(names: Iterable[str], window_s: float) -> tuple[float, ...]:
    """Return the ascending times from now at which the named rows count energy."""
    metered = [name for name in names if is_limit(name) and name != CAP]
    return tuple(sorted(seconds_of(name, window_s) for name in metered))


def implied(case: Case, rows: Sequence[Row]) -> set[str]:
    """Return the limits on power and energy that another limit implies.

    Per second, the other limit allows no more, and no choice uses less of it.
    """
    window_s, found = case.round.window_s, set[str]()
    limits = [row for row in rows if is_limit(row.name)]
    if len(limits) < 2:
        return found
    by_second = [
        (row.name, np.append(row.use, row.nodes) / s, row.capacity / s)
        for row in limits
        for s in (seconds_of(row.name, window_s),)
    ]
    for looser, less, more_w in by_second:
        least = less - ROUNDING * np.abs(less)
        if any(
            name not in found and name != looser and most_w <= more_w and (use >= least).all()
            for name, use, most_w in by_second
        ):
            found.add(looser)
    return found


def rack_share(case: Case) -> Iterator[Row]:
    """Yield Σ_{k in p} extra_k x_k ≤ Σ_r y_pr, as jobs draw power in the racks of their pool."""
    pools, extra_w = case.pool, case.extra_w
    for p, pool in enumerate(case.table.pools) if case.racks else ():
        shares = {pair: -KILO for pair in case.most_rack_kw if pair[0] == pool.name}
        yield Row(f"rack_share[{pool.name}]", np.where(pools == p, extra_w, 0.0), 0.0, (), shares)


def rack_power(case: Case) -> Iterator[Row]:
    """Yield Σ_{p, r below R} y_pr + Σ_{c below R} (power of nodes) ≤ cap of R per capped rack R.

    This condition is only necessary, as a job need not run in the racks in which its power is
    counted. Placement decides.
    """
    names = case.round.cluster.topology.racks
    for cap in case.racks:
        below = [c.rack in cap.racks for c in case.classes]
        own = [c for c, inside in zip(case.classes, below, strict=True) if inside]
        nodes = tuple(c.more_in_rack_w * (c in own) for c in case.classes)
        racks = {names[r] for r in cap.racks}
        shares = {pair: KILO for pair in case.most_rack_kw if pair[1] in racks}
        asleep_w = sum(c.count * c.sleep_w for c in own)
        none = np.zeros(len(case.rows))
        yield Row(f"rack_power[{cap.name}]", none, cap.cap_w - asleep_w, nodes, shares)


def whole_nodes(case: Case) -> Iterator[Row]:
    """Yield Σ_{k in p} (⌊n_k/G⌋ + f_i((n_k mod G)/G)) x_k ≤ Σ_{c in p} a_c for nodes of G GPUs.

    The f_i are dual feasible functions of bin packing (`node_shares`). Rows exist only for pools of
    equal nodes, and for the f_i that are tighter than the count of GPUs. No f_i is tighter for
    pieces that divide a node, as f_k(1/m) ≤ 1/m. No buddy level of equal nodes is tighter: with
    m = ⌊G / 2^l⌋, f_m steps at i G/(m + 1) ≤ i 2^l.
    """
    for p, pool in enumerate(case.table.pools):
        size = pool.gpus_per_node
        if any(c.pool == p and c.gpus_per_node != size for c in case.classes):
            continue
        rest = np.unique(case.whole_gpus[case.pool == p] % size)
        rest = rest[rest > 0]
        if not (size % rest).any():
            continue
        nodes = tuple(-float(c.pool == p) for c in case.classes)
        which = tightening(rest.tolist(), size)
        shares = [node_shares(np.arange(size + 1), size, i) for i in which]
        for i, use in zip(which, _uses(case, p, shares), strict=True):
            yield Row(f"whole_nodes[{pool.name},{i}]", use, 0.0, nodes)


def buddy(case: Case) -> Iterator[Row]:
    """Yield Σ_{k in p} (q_k φ(M) + φ(r_k)) x_k ≤ Σ_{c in p} φ(G_c) a_c, where φ(n) = ⌊n/u⌋.

    Rows exist for blocks of u = 2, 4, … and M GPUs in pools of unequal nodes. Where u divides the
    number of GPUs of every node, the row is left out, as ``gpus`` is tighter.
    """
    for p, pool in enumerate(case.table.pools):
        sizes = {c.gpus_per_node for c in case.classes if c.pool == p}
        if len(sizes) == 1 or not (case.pool == p).any():
            continue
        most = pool.gpus_per_node
        units = sorted({most, *(1 << level for level in range(1, most.bit_length()))})
        units = [unit for unit in units if any(size % unit for size in sizes)]
        blocks = [np.arange(most + 1) // unit for unit in units]
        for unit, use in zip(units, _uses(case, p, blocks), strict=True):
            nodes = tuple(-float(c.gpus_per_node // unit) * (c.pool == p) for c in case.classes)
            yield Row(f"buddy[{pool.name},{unit}]", use, 0.0, nodes)


def _uses(case: Case, p: int, weights: Sequence[Floats | Rows]) -> list[Floats]:
    """Return each option's use of the nodes of pool p, shape (n,), for each function φ of pieces.

    `weights` has the values (M + 1,) of each φ for 0 to M GPUs. The use is the least that an option
    may take, as a job may stay on other pieces than it would get now. It is 0 for options that the
    largest nodes cannot hold, which are on smaller nodes.
    """
    if not weights:
        return []
    most = case.table.pools[p].gpus_per_node
    sizes = [c for c in case.classes if c.pool == p]
    largest = sum(c.count for c in sizes if c.gpus_per_node == most)
    second = max((c.gpus_per_node for c in sizes if c.gpus_per_node < most), default=0)
    whole, rest = np.divmod(case.whole_gpus, most)
    own = (case.pool == p) & (whole <= largest)
    own &= (rest == 0) | (whole < largest) | (rest <= second)
    uses = [np.where(own, whole * weight[most] + weight[rest], 0.0) for weight in weights]
    for k in np.flatnonzero(own & case.table.current[case.rows]).tolist():
        held = case.table.jobs[int(case.job[k])].allocation
        if held is not None and len(held.placement) > 1:
            pieces = [gpus for _, gpus in held.placement]
            for use, weight in zip(uses, weights, strict=True):
                use[k] = min(use[k], weight[pieces].sum())
    return uses


def stated_use(case: Case, own: StatedRows) -> "csr_array":
    """Return the amount of each variable in each stated row, shape (R, n)."""
    from scipy.sparse import csr_array

    use = csr_array(own.use[:, case.rows])
    if own.moves is not None and case.moved is not None:
        use = csr_array(use + own.moves[:, case.rows].multiply(case.moved))
        use.eliminate_zeros()
    return use


def rules(case: Case) -> Iterator[Row]:
    """Yield Σ_k a_rk x_k + Σ_q b_rq s_q − s_r ≤ c_r for each stated limit r (`StatedRows`).

    Rows exist for limits that some option uses, and for soft limits that always cost something.
    """
    own = case.table.own
    if own is None:
        return
    use, counts = stated_use(case, own), np.diff(own.counts.indptr) > 0
    soft = np.isfinite(own.penalty)
    for r, name in enumerate(own.names):
        if use.indptr[r] < use.indptr[r + 1] or counts[r] or (soft[r] and own.capacity[r] < 0):
            amounts = np.zeros(len(case.rows))
            at = slice(use.indptr[r], use.indptr[r + 1])
            amounts[use.indices[at]] = use.data[at]
            yield Row(name, amounts, float(own.capacity[r]))


FAMILIES = (
    gpus,
    whole_nodes,
    buddy,
    gpus_in_racks,
    ready_gpus,
    power,
    energy,
    rack_share,
    rack_power,
    rules,
)


def named_blocks(case: Case) -> list[tuple[str, Hashable]]:
    """Return the family and the index of each block of a case's problem.

    The blocks are the awake nodes of each class where nodes may sleep, the kilowatts of pools in
    racks, and the excesses over soft limits of the user.
    """
    own = case.table.own
    return [
        *(("awake", c.name) for c in case.classes if case.sleeps),
        *(("rack_kw", pair) for pair in case.most_rack_kw if case.racks),
        *(("excess", name) for name in (() if own is None else own.soft_names)),
    ]


def _most_excess(case: Case) -> tuple[Floats, Floats]:
    """Return the largest possible excess over each soft limit, and its cost per unit, (S,) each."""
    own = case.table.own
    if own is None:
        return np.zeros(0), np.zeros(0)
    row, _, use = of_each_job(own.use[:, case.rows], case.job, np.maximum)
    most = np.bincount(row, np.maximum(use, 0.0), len(own.names)) - own.capacity
    return own.beyond(most)[own.soft], own.penalty[own.soft]


def of_each_job(use: "csc_array", job: Rows, by: np.ufunc) -> tuple[Rows, Rows, Floats]:
    """Return the amounts (R, n) of options reduced `by` a function over the options of each job.

    The result are rows, jobs and amounts of the pairs that have any amount. `job` (n,) ascends.
    """
    entries = use.tocsr()
    row = np.repeat(np.arange(use.shape[0]), np.diff(entries.indptr))
    of = job[entries.indices]
    first = np.flatnonzero(np.diff(row, prepend=-1) | np.diff(of, prepend=-1))
    amounts = by.reduceat(entries.data, first) if len(first) else entries.data
    return row[first], of[first], amounts


def separable(case: Case, *, both_limits: bool = False) -> Separable:
    """Return all rows of a round as arrays, except for rows that no choice can break.

    Option k of the problem is row ``case.rows[k]`` of the table; the problem's blocks are
    `named_blocks`. Without `both_limits`, limits on power and energy that others imply have no row.
    """
    found = [row for family in FAMILIES if family is not rules for row in family(case)]
    if not both_limits:
        looser = implied(case, found)
        found = [row for row in found if row.name not in looser]
    counts = np.array([c.count for c in case.classes], dtype=float)
    most_kw = case.most_rack_kw if case.racks else {}
    most_excess, penalty = _most_excess(case)
    own = case.table.own
    soft = 0 if own is None else len(own.soft)
    rows = []
    for row in found:
        nodes = np.array(row.nodes or np.zeros(len(counts)))
        capacity = row.capacity if case.sleeps else row.capacity - float(nodes @ counts)
        blocks = [
            *(nodes if case.sleeps else ()),
            *(row.racks.get(pair, 0.0) for pair in most_kw),
            *[0.0] * soft,
        ]
        if capacity < 0 or max(blocks, default=0.0) > 0 or (row.use > 0).any():
            rows.append((row, capacity, blocks))
    if case.awake is not None:
        counts = np.array(most_awake(case.classes, case.awake), dtype=float)
    counts = np.array([*(counts if case.sleeps else ()), *most_kw.values(), *most_excess])
    use = np.array([row.use for row, _, _ in rows]).reshape(len(rows), len(case.rows))
    capacities = np.array([capacity for _, capacity, _ in rows], dtype=float)
    block_use = np.array([blocks for _, _, blocks in rows]).reshape(len(rows), len(counts))
    names = tuple(row.name for row, _, _ in rows)
    if own is not None:
        from scipy.sparse import csr_array, vstack

        stated, beyond = stated_use(case, own), own.of_excesses()
        alone = stated.copy()
        alone.data = np.maximum(alone.data, 0.0)
        binds = (own.capacity < 0) | (beyond.max(axis=1, initial=0.0) > 0)
        binds |= np.asarray(alone.sum(axis=1)).ravel() > 0
        every = csr_array(vstack([csr_array(use), stated[np.flatnonzero(binds)]]))
        capacities = np.append(capacities, own.capacity[binds])
        others = np.zeros((np.count_nonzero(binds), len(counts) - soft))
        block_use = np.vstack([block_use, np.hstack([others, beyond[binds]])])
        names += tuple(name for name, one in zip(own.names, binds.tolist(), strict=True) if one)
    return Separable(
        start=np.searchsorted(case.rows, case.table.start),
        value=case.value,
        use=Uses.of(use if own is None else every),
        capacity=capacities,
        names=names,
        must=case.table.must_run,
        block_value=np.append(np.zeros(len(counts) - len(penalty)), -penalty),
        block_use=block_use,
        block_count=counts,
        block_integer=np.arange(len(counts)) < len(counts) - len(most_kw) - len(penalty),
    )


def unbearable(case: Case) -> Mask:
    """Return whether options and the jobs that must run break a power or energy limit, shape (n,).

    No more nodes are awake than their GPUs fill. No plan can have such options.
    """
    table, found = case.table, np.zeros(len(case.rows), dtype=bool)
    must = replace(case, rows=np.flatnonzero(table.must_run[table.job]))
    firm = gpus_by_pool(table, must.rows)
    most = int(case.gpus.max(initial=0)) + 1
    key = case.pool * most + case.gpus  # options with as many GPUs of a pool need the same nodes
    left = np.full(len(table.pools) * most, np.nan)
    left[key] = 0.0
    keys = np.flatnonzero(left == 0.0).tolist()
    asleep_w = sum(c.count * c.sleep_w for c in case.classes)
    for row, other in zip(
        (*power(case), *energy(case)), (*power(must), *energy(must)), strict=True
    ):
        limit = row.capacity + asleep_w * seconds_of(row.name, case.round.window_s)
        for k in keys:
            pool, gpus = divmod(k, most)
            more = [n + gpus * (p == pool) for p, n in enumerate(firm)]
            left[k] = TOLERANCE * limit - _excess(must, other, more)
        found |= row.use > left[key]
    return found


def gpus_by_pool(table: OptionTable, rows: Rows) -> list[int]:
    """Return the GPUs that rows use together, at least, if some are in parts, shape (P,)."""
    columns = [table.gpus] if table.slices is None else [*table.slices]
    used = [np.bincount(table.pool[rows], own[rows], len(table.pools)).tolist() for own in columns]
    return [math.ceil(max(those) - TOLERANCE) for those in zip(*used, strict=True)]


def within(case: Case, chosen: Rows) -> bool:
    """Return whether a choice meets all constraints of the model except the power caps of racks.

    Energy is counted over the whole window. `chosen` (J,) is the row of each job, -1 for none; the
    case need not have the row.
    """
    if (chosen[case.table.must_run] < 0).any():
        return False
    rows = chosen[chosen >= 0]
    nothing = np.zeros(len(rows))
    bare = replace(case, rows=rows, value=nothing, racks=(), most_rack_kw={}, moved=None)
    problem = separable(bare)
    awake = awake_for(case.classes, gpus_by_pool(case.table, rows)) if case.sleeps else ()
    own = case.table.own
    if own is not None and own.broken(rows).any():  # rules that no option uses have no row
        return False
    beyond = () if own is None else own.excess(rows)[own.soft]
    excess = problem.excess(np.arange(len(rows)), np.array([*awake, *beyond], dtype=float))
    kept = bool((excess <= TOLERANCE * np.abs(problem.capacity)).all())
    return kept and (not case.times_s or tightest_by(case, rows)[1])


def tightest_by(case: Case, rows: Rows, asleep: Sequence[int] | None = None) -> tuple[float, bool]:
    """Return the time until which rows leave the fewest watts of the energy budget.

    Also return whether the rows keep the budget. The nodes `asleep` sleep; by default, all nodes
    sleep that the GPUs do not need.
    """
    awake = [c.count for c in case.classes]
    if case.sleeps and asleep is None:
        awake = awake_for(case.classes, gpus_by_pool(case.table, rows))
    elif case.sleeps:
        kinds = classes_of_nodes(case.round)
        for node in asleep or ():
            awake[kinds[node]] -= 1
    nodes = list(zip(awake, case.classes, strict=True))
    return tightest_s(
        case.round,
        sum(c.count * c.sleep_w + n * (c.awake_w - c.sleep_w) for n, c in nodes),
        np.array([*case.table.extra_w[rows], *(n * c.wake_w for n, c in nodes)]),
        np.array([*case.lasts_s[rows], *(c.wake_s for _, c in nodes)]),
    )


def shortages(case: Case) -> list[Conflict]:
    """Return the limits that no choice keeps.

    The idle cluster breaks such a limit, or a pool is too small for jobs that must run, or a limit
    of the user asks for more than all options together have. Other limits that jobs which must run
    would break have given way (`ronda.formulations.allocation.non_preemptible`).
    """
    table, found = case.table, [*_out_of_reach(case)]
    if table.must_run.any():
        found += _few_gpus(replace(case, rows=np.flatnonzero(table.must_run[table.job])))
    return [*found, *_over_power(case), *_over_rack(case)]


def _out_of_reach(case: Case) -> Iterator[Conflict]:
    """Yield the user's limits that no choice of options keeps."""
    own, table = case.table.own, case.table
    if own is None:
        return
    row, job, use = of_each_job(own.use[:, case.rows], case.job, np.minimum)
    use = np.where(table.must_run[job], use, np.minimum(use, 0.0))  # one option, if it must run
    least = np.bincount(row, use, len(own.names)).astype(float)
    least += own.counts @ own.beyond(least - own.capacity)
    over = least > own.capacity + TOLERANCE * np.maximum(1.0, np.abs(own.capacity))
    for r in np.flatnonzero(over & np.isinf(own.penalty)).tolist():
        name = own.names[r]
        sign, which, asks = (-1, "most", "least") if own.turned[r] else (1, "least", "most")
        message = f"all options together have at {which} {sign * least[r] + 0.0:g}"
        message += f"; {name} asks for at {asks} {sign * own.capacity[r]:g}"
        firm = job[(row == r) & (use > 0)]
        held = case.rows[np.isin(case.job, firm)]
        yield Conflict((*_owners(table, held), name), message)


def _owners(table: OptionTable, rows: Rows) -> tuple[str, ...]:
    return tuple(f"one_option[{table.jobs[j].job.id}]" for j in table.job[rows].tolist())


def _few_gpus(must: Case) -> Iterator[Conflict]:
    counts = np.array([c.count for c in must.classes])
    for row in gpus(must):
        pool, _, what = row.name[:-1].partition("[")[2].partition(",")
        has = -float(row.nodes @ counts) if counts.size else 0.0
        if (needed := row.use.sum()) > has + ROUNDING:
            unit = f"{what} slices" if what else "GPUs"
            message = (
                f"jobs that must run need {needed:.0f} {unit} of pool {pool}, which has {has:.0f}"
            )
            yield Conflict((*_owners(must.table, must.rows[row.use > 0]), row.name), message)


def _over_power(case: Case) -> Iterator[Conflict]:
    """Yield the limits on power and energy that idle nodes exceed."""
    nobody = replace(case, rows=np.zeros(0, dtype=np.int64))
    asleep_w = sum(c.count * c.sleep_w for c in case.classes)
    for row in (*power(nobody), *energy(nobody)):
        limit = row.capacity + asleep_w * seconds_of(row.name, case.round.window_s)
        unit = "W" if row.name == CAP else "J"
        least = limit + _excess(nobody, row, [0] * len(case.table.pools))
        if least > limit * (1 + TOLERANCE):
            message = f"the cluster without any job draws at least {least:.6g} {unit}"
            yield Conflict((row.name,), f"{message}; {row.name} allows {limit:.6g} {unit}")


def _over_rack(case: Case) -> Iterator[Conflict]:
    """Yield the racks whose idle nodes exceed the cap."""
    nodes = classes_of_nodes(case.round) if case.racks else []
    kinds = [case.classes[c] for c in nodes if c >= 0]
    for cap in case.racks:
        own = [kind for kind in kinds if kind.rack in cap.racks]
        more = [w if not case.sleeps else min(0.0, w) for w in (c.more_in_rack_w for c in own)]
        drawn_w = sum(c.sleep_w for c in own) + sum(more)
        if drawn_w > cap.cap_w * (1 + TOLERANCE):
            what = f"the nodes of rack {cap.name} draw {drawn_w:.6g} W without any job"
            yield Conflict((f"rack_power[{cap.name}]",), f"{what}; its cap is {cap.cap_w:.6g} W")


def _excess(case: Case, row: Row, gpus: Sequence[int]) -> float:
    counts = [c.count for c in case.classes]
    awake = least_awake(case.classes, gpus, row.nodes) if case.sleeps else counts
    return float(row.use.sum() + np.dot(row.nodes, awake)) - row.capacity
