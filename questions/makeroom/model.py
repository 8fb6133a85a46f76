"""A Pyomo model of room for a waiting job: who stays, moves or stops, and what goes where.

==================  ===========================================================================
variable            meaning
==================  ===========================================================================
``gone[l]``         1 if loose job l leaves its nodes
``moved[l]``        1 if it goes on elsewhere; without `moves` nobody does
``put[n]``          pieces of the waiting job on node n
``level[n,i]``      1 if that are at least i
``come[c,t,n]``     blocks of type t of jobs of class c that come to node n; jobs of one class have
                    equal blocks and may move to the same nodes
``whole[n]``        1 if the waiting job has node n to itself
``taken[n]``        1 if anything comes to node n, only where that matters
``left[t,r]``       what tenant t uses of resource r beyond what it keeps at home
``slices[p,k,q]``   slices of k nodes in rack q, if the job's nodes are shared out by pattern p
``users[u]``        1 if a job of user u leaves its nodes
==================  ===========================================================================

Each function below adds one family of constraints; its docstring states their mathematics.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from ronda.formulations.tenants.lending import SLACK, borrowing
from ronda.instances.base import Floats
from ronda.questions.makeroom.loose import Loose, RoomTerms
from ronda.questions.why.earliest import RouteAsked, slice_sizes
from ronda.questions.why.limits import JointLimit, Lent, amount_of
from ronda.questions.why.outlook import FreeRoom, pieces_on

LEVELS = 3
"""Most blocks of the waiting job on a node that are told apart."""

DIGITS = 9
"""The decimals of limits. HiGHS takes models of finer ones for infeasible that are not."""

Row = Iterable[tuple[float, Any]]
"""The terms of a row: coefficients with their variables."""


@dataclass(frozen=True)
class Space:
    """A waiting job in one of its ways, and the running jobs that may make room for it."""

    outlook: FreeRoom
    asked: RouteAsked
    loose: Sequence[Loose]
    terms: RoomTerms

    def only(self, loose: Iterable[int]) -> "Space":
        """Return the space in which only some of the loose jobs may be disturbed."""
        return replace(self, loose=[self.loose[k] for k in loose])

    @cached_property
    def count(self) -> int:
        """Number of blocks of the waiting job: its pieces, or one if they share one node."""
        return 1 if self.asked.job.one_node else self.asked.job.count

    @cached_property
    def per(self) -> Floats:
        """What each block of the waiting job needs, shape (R,)."""
        return self.asked.per * (self.asked.job.count // self.count)

    @cached_property
    def has(self) -> Floats:
        """What each node offers of resources that can run out, shape (N, R)."""
        return np.where(np.isinf(self.outlook.has), 0.0, self.outlook.has)

    @cached_property
    def free(self) -> Floats:
        """What is free on each node now, infinite where it cannot run out, shape (N, R)."""
        used = self.outlook.used(self.outlook.snapshot.now_s)[0]
        endless = np.isinf(self.outlook.has)
        return np.where(endless, np.inf, self.has - np.where(endless, 0.0, used))

    @cached_property
    def leaving(self) -> dict[int, list[tuple[int, Floats]]]:
        """The loose jobs on each node, with what they hold there, shape (R,)."""
        place, found = {one.at: k for k, one in enumerate(self.loose)}, defaultdict(list)
        for at, node, held in zip(*self.outlook.holdings, strict=True):
            if at in place:
                own = np.where(np.isinf(self.outlook.has[node]), 0.0, held)
                found[int(node)].append((place[at], own))
        return found

    @cached_property
    def stay(self) -> Floats:
        """The number of jobs on each node that may not be disturbed, shape (N,)."""
        every = self.outlook.used(self.outlook.snapshot.now_s)[1]
        return every - [len(self.leaving.get(n, ())) for n in range(len(every))]

    @cached_property
    def most(self) -> Floats:
        """What would be free on each node without loose jobs, shape (N, R)."""
        freed = np.zeros_like(self.free)
        for n, jobs in self.leaving.items():
            freed[n] = sum(held for _, held in jobs)
        return self.free + freed

    @cached_property
    def cap(self) -> dict[int, int]:
        """Most blocks of the waiting job by node, where there could be any."""
        job, now_s = self.asked.job, self.outlook.snapshot.now_s
        room = np.minimum(pieces_on(self.most, self.per), self.count)
        if job.own_nodes or job.slices is not None:
            room = np.minimum(room, 1.0)
        if job.exclusive:
            room = np.where(self.stay > 0, 0.0, room)
        room = np.where(self.asked.nodes & self.outlook.open(now_s, job.may_run_s), room, 0.0)
        return {int(n): int(room[n]) for n in np.flatnonzero(room)}

    @cached_property
    def classes(self) -> Mapping[tuple[object, ...], list[int]]:
        """The loose jobs that may move, by what makes them alike."""
        found = defaultdict[tuple[object, ...], list[int]](list)
        for k, one in enumerate(self.loose):
            if one.blocks and one.nodes.any():
                alone = k if len(one.blocks) > 1 else -1
                key = (one.blocks, one.apart, one.job.exclusive, one.nodes.tobytes(), alone)
                found[key].append(k)
        return found


def build(space: Space, *, moves: bool) -> Any | None:
    """Return the model of a space, or None if a limit forbids whatever is disturbed.

    Without `moves`, jobs stop or stay. `measure` returns its measures of harm.
    """
    with PauseGC():
        model = pyo.ConcreteModel("room")
        model.space, model.never = space, False
        model.rows, loose = pyo.ConstraintList(), range(len(space.loose))
        model.gone = pyo.Var(loose, domain=pyo.Binary, initialize=0)
        may = [k for same in space.classes.values() for k in same] if moves else []
        model.moved = pyo.Var(may, domain=pyo.Binary, initialize=0)
        model.put = pyo.Var(space.cap, domain=pyo.NonNegativeIntegers)
        model.whole = pyo.Var(space.cap if space.asked.job.exclusive else (), domain=pyo.Binary)
        model.level = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
        model.taken = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
        model.come = pyo.Var(pyo.Any, dense=False, domain=pyo.NonNegativeIntegers)
        for n, most in space.cap.items():
            model.put[n].setub(most)
        model.stops = {k: [(1.0, model.gone[k])] for k in loose}
        for k in may:
            add_row(model, [(1.0, model.moved[k]), (-1.0, model.gone[k])], 0.0)
            model.stops[k].append((-1.0, model.moved[k]))
        for add in FAMILIES:
            add(model)
    return None if model.never else model


def add_row(model: Any, terms: Row, most: float, least: float = -np.inf) -> None:
    """Add least ≤ Σ a x ≤ most, with limits rounded to `DIGITS`."""
    most = round(most, DIGITS) if isfinite(most) else most
    kept = [(a, x) for a, x in terms if a]
    if kept:
        body = pyo.quicksum(a * x for a, x in kept)
        low = least if isfinite(least) else None
        model.rows.add((low, body, most if isfinite(most) else None))
    elif not least - SLACK <= 0.0 <= most + SLACK:
        model.never = True


# -- constraint families --------------------------------------------------------------------------


def all_placed(model: Any) -> None:
    """Add Σ_n put_n = blocks of the waiting job."""
    count = float(model.space.count)
    add_row(model, [(1.0, put) for put in model.put.values()], count, count)


def all_moved(model: Any) -> None:
    """Add Σ_n come_ctn = (blocks of type t of a job) Σ_l moved_l over the jobs l of class c.

    If no two blocks of a job may share a node, Σ_t come_ctn ≤ Σ_l moved_l. Equal jobs then find a
    node for each of their blocks (Gale and Ryser).
    """
    space: Space = model.space
    for c, same in enumerate(space.classes.values() if len(model.moved) else ()):
        one, moved = space.loose[same[0]], [model.moved[k] for k in same]
        own = defaultdict(list)
        for t, (block, number) in enumerate(one.blocks):
            need = space.outlook.vector(dict(block.holds))
            fits = np.minimum(pieces_on(space.most, need), number * len(same))
            if one.job.exclusive:
                fits = np.where(space.stay > 0, 0.0, fits)
            terms = [(-float(number), each) for each in moved]
            for n in np.flatnonzero(one.nodes & (fits >= 1)).tolist():
                come = model.come[c, t, n]
                come.setub(int(fits[n]))
                own[n].append((1.0, come))
                terms.append((1.0, come))
            add_row(model, terms, 0.0, 0.0)
        for comes in own.values() if one.apart else ():
            add_row(model, [*comes, *((-1.0, each) for each in moved)], 0.0)


def room_on_nodes(model: Any) -> None:
    """Add what comes to node n ≤ what is free there + Σ_l (what l holds there) gone_l.

    A job with its nodes to itself takes all that a node has. On a node whose jobs hold more than it
    has, nothing may come unless that has ended.
    """
    space: Space = model.space
    has, job = space.has, space.asked.job
    comes = defaultdict(list)  # by node: what comes, most of it, what each takes
    for n, put in model.put.items():
        if job.exclusive:
            add_row(model, [(1.0, put), (-float(space.cap[n]), model.whole[n])], 0.0)
            comes[n].append((model.whole[n], 1, has[n]))
        else:
            comes[n].append((put, space.cap[n], space.per))
    kinds = list(space.classes.values())
    for (c, t, n), come in model.come.items():
        one = space.loose[kinds[c][0]]
        block, _ = one.blocks[t]
        takes = has[n] if one.job.exclusive else space.outlook.vector(dict(block.holds))
        comes[n].append((come, come.ub, takes))
    for n, found in comes.items():
        over = None
        for r in np.flatnonzero(sum(takes for *_, takes in found) > 0).tolist():
            free = float(space.free[n, r])
            if free == np.inf:
                continue
            terms = [(float(takes[r]), come) for come, _, takes in found]
            terms += [(-float(held[r]), model.gone[k]) for k, held in space.leaving.get(n, ())]
            if free < -SLACK * max(1.0, float(has[n, r])):
                if over is None:
                    over = model.taken[n]
                    for come, most, _ in found:
                        add_row(model, [(1.0, come), (-float(most), over)], 0.0)
                terms.append((-free, over))
            add_row(model, terms, max(0.0, free))


def in_levels(model: Any) -> None:
    """Add put_n = Σ_i level_ni, Σ_l min(held_l, need_i) gone_l ≥ need_i level_ni, and level ≤ gone.

    The i-th block needs that much more than what is free, of each resource, and it needs l gone if
    only less than i blocks fit beside l. `room_on_nodes` says so of whole numbers; these rows make
    the relaxation tight. Nodes for more than `LEVELS` blocks do without.
    """
    space: Space = model.space
    has = space.has
    asked = np.flatnonzero(space.per > 0).tolist()
    for n, most in space.cap.items():
        jobs = space.leaving.get(n, ())
        if not jobs:
            continue
        beside = pieces_on(np.array([space.most[n] - held for _, held in jobs]), space.per)
        if most > LEVELS:
            for (k, _), fit in zip(jobs, np.minimum(beside, most).tolist(), strict=True):
                add_row(model, [(1.0, model.put[n]), (fit - most, model.gone[k])], fit)
            continue
        levels = [model.put[n]] if most == 1 else [model.level[n, i] for i in range(1, most + 1)]
        if most > 1:
            add_row(model, [(1.0, model.put[n]), *((-1.0, one) for one in levels)], 0.0, 0.0)
        for after, before in zip(levels[1:], levels, strict=False):
            add_row(model, [(1.0, after), (-1.0, before)], 0.0)
        for i, level in enumerate(levels, 1):
            must = [k for (k, _), fit in zip(jobs, beside, strict=True) if fit < i]
            for k in must:
                add_row(model, [(1.0, level), (-1.0, model.gone[k])], 0.0)
            for r in asked if len(must) < len(jobs) else ():
                need = float(space.per[r] * i - space.free[n, r])
                if need > SLACK * max(1.0, float(has[n, r])):
                    each = [(-min(float(held[r]), need), model.gone[k]) for k, held in jobs]
                    add_row(model, [(need, level), *each], 0.0)


def alone(model: Any) -> None:
    """Add come ≤ gone_l for jobs l on the node, if what comes has its nodes to itself."""
    space: Space = model.space
    exclusive = list(model.whole.items())
    kinds = list(space.classes.values())
    for (c, _, n), come in model.come.items():
        if space.loose[kinds[c][0]].job.exclusive:
            exclusive.append((n, come))
    for n, come in exclusive:
        for k, _ in space.leaving.get(n, ()):
            add_row(model, [(1.0, come), (-1.0, model.gone[k])], 0.0)


def terms_kept(model: Any) -> None:
    """Add Σ_l gone_l ≤ jobs and Σ_l gpus_l gone_l ≤ GPUs, in all and for tenants that say so.

    If tenants keep what is guaranteed to them, Σ_l held_l stop_l ≤ held - guaranteed for each.
    """
    space: Space = model.space
    terms, snapshot = space.terms, space.outlook.snapshot
    limits = space.outlook.limits
    every = list(range(len(space.loose)))
    bounds = [(every, terms.most_jobs, terms.most_gpus)]
    for tenant in snapshot.tenants:
        most = tenant.disruption
        inside = [k for k, one in enumerate(space.loose) if limits.within(one.job, tenant.name)]
        bounds.append((inside, most.jobs, most.gpus))
    for inside, jobs, gpus in bounds:
        if jobs is not None:
            add_row(model, [(1.0, model.gone[k]) for k in inside], jobs)
        if gpus is not None:
            each = [(space.loose[k].gpus, model.gone[k]) for k in inside]
            add_row(model, each, gpus)
    if terms.moves_only:
        for stop in model.stops.values():
            add_row(model, stop, 0.0)
    if terms.only_below == "quota":
        keep_guarantees(model)


def keep_guarantees(model: Any) -> None:
    """Add Σ_l held_l stop_l ≤ max(0, held - guaranteed) for the loose jobs l of each tenant."""
    space: Space = model.space
    outlook = space.outlook
    going = outlook.ends > outlook.snapshot.now_s
    for tenant in outlook.snapshot.tenants:
        own = np.array([one.tenant == tenant.name for one in outlook.running], dtype=bool)
        inside = [k for k, one in enumerate(space.loose) if own[one.at]]
        for quota in tenant.quotas:
            held = outlook.limits.held(quota.of)
            most = max(0.0, float(held[own & going].sum()) - (quota.guaranteed or 0.0))
            add_row(model, _stopped(model, held, inside), most)


def _stopped(model: Any, amounts: Floats, inside: Iterable[int], sign: float = 1.0) -> Row:
    """Yield Σ_l amounts_l stop_l, where `amounts` (J,) are of all running jobs."""
    for k in inside:
        amount = sign * float(amounts[model.space.loose[k].at])
        yield from ((amount * a, x) for a, x in model.stops[k])


def limits(model: Any) -> None:
    """Add held + asked - Σ_l held_l stop_l ≤ limit, for each limit that the job meets.

    A job that would hold without end what a limit counts in time stops. A waiting job with its
    nodes to itself asks for all that they have, Σ_n has_n whole_n.
    """
    space: Space = model.space
    now_s, ends = space.outlook.snapshot.now_s, space.outlook.ends
    for limit in space.asked.limits:
        if isinstance(limit, Lent):
            lent(model, limit)
            continue
        terms, asks = _asks(model, limit)
        if not terms and not asks:
            continue
        if asks == np.inf:
            model.never = True
            return
        held = limit.counts(now_s, ends)
        endless = np.isinf(held)
        loose = {one.at: k for k, one in enumerate(space.loose)}
        for at in np.flatnonzero(endless).tolist():
            add_row(model, [] if at not in loose else model.stops[loose[at]], 1.0, 1.0)
        held = np.where(endless, 0.0, held)
        most = limit.most - limit.elsewhere - asks - float(held.sum())
        stops = _stopped(model, held, range(len(space.loose)), -1.0)
        add_row(model, [*terms, *stops], most)


def _asks(model: Any, limit: JointLimit | Lent) -> tuple[list[tuple[float, Any]], float]:
    """Return what the waiting job asks of a limit: terms, or a number."""
    space: Space = model.space
    job, nodes, gpu = space.asked.job, space.outlook.snapshot.nodes, space.asked.way.model
    family = "tree" if isinstance(limit, Lent) else limit.row.partition("[")[0]
    if not limit.asks or not job.exclusive or family not in ("tree", "limit", "run", "firm"):
        return [], limit.asks
    factor = job.may_run_s if family == "run" else 1.0
    each = {n: factor * amount_of(limit.of, nodes[n].has, gpu) for n in model.whole}
    if not all(map(isfinite, each.values())):
        return [], limit.asks
    return [(amount, model.whole[n]) for n, amount in each.items() if amount], 0.0


def lent(model: Any, limit: Lent) -> None:
    """Add U_t = held + asked - Σ_l held_l stop_l + Σ_c left_c ≤ limit and left_t ≥ U_t - kept_t.

    The sums are over jobs and tenants c directly at t; the limit holds for the job's own tenant,
    and for one above it only if the job makes more leave home below it.
    """
    space: Space = model.space
    now_s, ends, of = space.outlook.snapshot.now_s, space.outlook.ends, limit.of
    tree, shares = limit.tree, limit.tree.shares(of)
    most_of, path = borrowing(tree, of, shares), tree.path(limit.leaf)
    loose = {one.at: k for k, one in enumerate(space.loose)}
    held, terms = defaultdict[str, float](float), defaultdict[str, list[Any]](list)
    for at, column in zip(*np.nonzero(limit.held * (ends > now_s)[:, None]), strict=True):
        name, amount = limit.leaves[column], float(limit.held[at, column])
        held[name] += amount
        if at in loose:
            terms[name] += [(-amount * a, x) for a, x in model.stops[loose[at]]]
    asked, asks = _asks(model, limit)
    held[limit.leaf] += asks
    terms[limit.leaf] += asked
    whole = sum(held.values()) + sum(amount for amount, _ in asked)
    if not hasattr(model, "left"):
        model.left = pyo.Var(pyo.Any, dense=False, domain=pyo.NonNegativeReals)
        model.more = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
    inside = {name for name in tree.below if tree.path(name)[-1] == path[-1]}
    for tenant in tree.order:
        name = tenant.name
        if name not in inside:
            continue
        for child in tree.below[name]:
            terms[name].append((1.0, model.left[child, of]))
        leaves = (-1.0, model.left[name, of])
        add_row(model, [*terms[name], leaves], shares[name].kept - held[name])
        if name in path and name in most_of:
            most = most_of[name][1]
            more = []
            if name != limit.leaf:  # the row counts only if the job makes more come from below
                more = [(whole, model.more[name, of])]
            add_row(model, [*terms[name], *more], most - held[name] + whole * bool(more))
    for child, name in pairwise(path):
        before = [(whole, model.more[child, of])] if child != limit.leaf else []
        after = [(-whole, model.more[name, of])]
        most = shares[child].kept - held[child] + whole * bool(before)
        add_row(model, [*terms[child], *before, *after], most)


def in_slices(model: Any) -> None:
    """Add Σ_{n in q} put_n = Σ_pk k slices_pkq, and Σ_q slices_pkq = (slices of k) pattern_p.

    Exactly one pattern holds. Without sharing, Σ_k slices_pkq ≤ 1 for each rack q; if one rack of
    an outer level must hold all slices, slices_pkq ≤ (slices of k) outer_o for q in o.
    """
    space: Space = model.space
    job, slices = space.asked.job, space.asked.job.slices
    if slices is None:
        return
    outlook, racks = space.outlook, defaultdict(list)
    within = outlook.racks(slices.within)
    above = within if slices.together is None else outlook.racks(slices.together)
    for n, put in model.put.items():
        if within[n] is None or above[n] is None:
            add_row(model, [(1.0, put)], 0.0)
        else:
            outer = None if slices.together is None else above[n]
            racks[within[n], outer].append((1.0, put))
    patterns = slice_sizes(job.count, slices, len(racks))
    model.pattern = pyo.Var(range(len(patterns)), domain=pyo.Binary)
    model.outer = pyo.Var(sorted({o for _, o in racks if o is not None}), domain=pyo.Binary)
    model.slices = pyo.Var(pyo.Any, dense=False, domain=pyo.NonNegativeIntegers)
    add_row(model, [(1.0, one) for one in model.pattern.values()], 1.0, 1.0)
    if len(model.outer):
        add_row(model, [(1.0, one) for one in model.outer.values()], 1.0, 1.0)
    held: dict[object, list[Any]] = {q: [] for q in racks}
    for p, sizes in enumerate(patterns):
        for k, number in Counter(sizes).items():
            inside = [(1.0, model.slices[p, k, *q]) for q in racks]
            add_row(model, [*inside, (-float(number), model.pattern[p])], 0.0, 0.0)
            for q, (_, count) in zip(racks, inside, strict=True):
                held[q].append((-float(k), count))
                if q[1] is not None:
                    add_row(model, [(1.0, count), (-float(number), model.outer[q[1]])], 0.0)
    for q, puts in racks.items():
        for put in puts:  # a tight relaxation
            add_row(model, [put, *((-1.0, count) for _, count in held[q])], 0.0)
        add_row(model, [*puts, *held[q]], 0.0, 0.0)
        if slices.spread or slices.balanced:
            add_row(model, [(1.0, count) for _, count in held[q]], 1.0)


FAMILIES = (all_placed, all_moved, room_on_nodes, in_levels, alone, terms_kept, limits, in_slices)

# -- measures of harm -----------------------------------------------------------------------------


def measure(model: Any, name: str) -> list[tuple[float, Any]]:
    """Return the terms of a measure of harm.

    They are Σ_l lost_l gone_l, Σ_l gone_l, Σ_l stop_l, and Σ_u users_u with gone_l ≤ users_u.
    """
    space: Space = model.space
    if name == "lost":
        return [(one.lost_gpu_s, model.gone[k]) for k, one in enumerate(space.loose)]
    if name == "jobs":
        return [(1.0, gone) for gone in model.gone.values()]
    if name == "stopped":
        return [term for stop in model.stops.values() for term in stop]
    if not hasattr(model, "users"):
        known = {one.user for one in space.loose if one.user is not None}
        model.users = pyo.Var(sorted(known), bounds=(0.0, 1.0), initialize=0.0)
        for k, one in enumerate(space.loose):
            if one.user is not None:
                add_row(model, [(1.0, model.gone[k]), (-1.0, model.users[one.user])], 0.0)
                if model.gone[k].value:
                    model.users[one.user].set_value(1.0)
    return [(1.0, user) for user in model.users.values()]
