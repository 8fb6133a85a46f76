"""The best plan of a tiny round under the rules of its site, by trying every plan.

The checker alone says which plans are valid, and no row of the models is read. What options are
worth is their value before the site's rules, times the worth of the job's priority class, and what
guarantees add (`guarantees`). Jobs get places one by one: they stay where they run, or take whole
nodes and one block. Running jobs come first, as what runs and is not told counts as stopped; after
these, one more job never mends a plan that breaks a rule.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from ronda.formulations.objectives.by_name import outlook_of, values_of
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.table import SPANS, OptionTable, option
from ronda.instances.base import Floats
from ronda.instances.check.checker import check
from ronda.instances.cluster import Topology
from ronda.instances.job import Allocation, Job, used_nodes
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.site import Tenant
from ronda.solvers.decision.plan import Question

Placement = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Guarantee:
    """The term ω min(Σ_k amount_k x_k, most), for options with an `amount` (K,) each."""

    name: str
    omega: float
    amount: Floats
    most: float


@dataclass(frozen=True)
class Best:
    """The greatest worth of any valid plan, without and with what moves lose, and such plans."""

    worth: float
    plan: Plan
    after_moves: float
    plan_after_moves: Plan


@dataclass(frozen=True)
class _Choice:
    worth: float  # with all that guarantees can add
    row: int  # -1: waits
    given: Allocation | None


def best_plan(question: Question, values: Floats | None = None) -> Best:
    """Return the best plan of a question's round, for other values (K,) of options if given."""
    free = _Search(question, moves=False, values=values)
    worth, plan = free.best()
    if not (question.round.costs.restart_s or question.round.costs.restart_by_gpus):
        return Best(worth, plan, worth, plan)
    return Best(worth, plan, *_Search(question, moves=True, values=values).best())


def plain_values(question: Question) -> Floats:
    """Return what options are worth before the site's rules, times the worth of their class, (K,).

    Terms that the site's rules add (`guarantees`) are not in them.
    """
    round, table = question.round, question.table
    outlook = outlook_of(round, table, question.objective, question.parameters)
    values = values_of(outlook, question.objective, question.parameters)
    worth = {c.name: c.worth for c in round.site.classes}
    classes = [worth.get(state.job.priority or "", 1.0) for state in table.jobs]
    return np.asarray(values * np.array(classes)[table.job])


def guarantees(question: Question) -> list[Guarantee]:
    """Return what the guarantees of tenants add to the worth of a plan.

    The prices, and how much is a fair share, are data.
    """
    round, table, found = question.round, question.table, list[Guarantee]()
    tenants = {tenant.name: tenant for tenant in round.site.tenants}
    prices = {claim.name: (claim.price, claim.most) for claim in question.claims}
    jobs = [table.jobs[j].job for j in table.job.tolist()]
    types = [table.pools[p].gpu_type for p in table.pool.tolist()]
    parts = [t.fraction(job.part, job.share) or 1.0 for t, job in zip(types, jobs, strict=True)]
    asked = np.minimum(table.gpus, [job.gpus for job in jobs]) * np.array(parts)
    for name, of in product(tenants, ("gpus", "A")):
        below = {n for n in tenants if name in _above(tenants, n)}
        own = np.array([job.tenant in below for job in jobs], dtype=bool)
        own &= np.array([of in ("gpus", table.pools[p].gpu_type.name) for p in table.pool], bool)
        quotas = [q for n in below for q in tenants[n].quotas if q.of == of]
        most = sum(q.guaranteed or 0.0 for q in quotas)
        if round.site.reclaim == "never":
            most = max(most, float((own * asked)[table.current].sum()))
        for row, limit in (
            (f"owed[{name},{of}]", most),
            (f"fair[{name},{of}]", prices.get(f"fair[{name},{of}]", (0.0, 0.0))[1]),
        ):
            amount = np.where(own & (table.gpus <= limit), asked, 0.0)
            if row in prices:
                found.append(Guarantee(row, prices[row][0], amount, limit))
            elif any(q.guaranteed for q in quotas) and row.startswith("owed"):
                top = tenants[name].parent is None and len(below) > 1
                assert top or not amount.any(), row
    return found


def _above(tenants: dict[str, Tenant], name: str | None) -> list[str]:
    """Return a tenant and all above it."""
    found = []
    while name is not None:
        found.append(name)
        name = tenants[name].parent
    return found


class _Search:
    """Depth first, the best choices first, cut off where all that is left is worth no more."""

    def __init__(self, question: Question, *, moves: bool, values: Floats | None = None) -> None:
        self.round, self.table = question.round, question.table
        self.values = plain_values(question) if values is None else values
        self.terms = guarantees(question)
        self.most = self.values + sum((t.omega * t.amount for t in self.terms), np.zeros(1))
        self.moves, self.running = moves, len(question.round.running)
        self.gpus: list[int] = self.round.cluster.topology.node_gpus.tolist()
        self.alike = alike(self.round)
        self.top, self.found = -np.inf, Plan()
        self.jobs = [self._choices(j) for j in range(len(self.table.jobs))]
        most = [max((c.worth for c in own), default=0.0) for own in self.jobs]
        self.rest = [sum(most[j:]) for j in range(len(most) + 1)]

    def best(self) -> tuple[float, Plan]:
        """Return the greatest worth and its plan."""
        self._try(0, 0.0, [])
        assert np.isfinite(self.top), "no plan is valid"
        return self.top, self.found

    def _try(self, j: int, most: float, chosen: list[_Choice]) -> None:
        if most + self.rest[j] <= self.top + 1e-12 or not self._fits(chosen):
            return
        if j >= self.running and self._broken(chosen):
            return
        if j == len(self.jobs):
            worth = most - self._short(chosen)
            if worth > self.top:
                self.top, self.found = worth, self._plan(chosen)
            return
        idle = self._idle(chosen)
        for choice in self.jobs[j]:
            if self._first_of_equals(choice, idle, chosen):
                self._try(j + 1, most + choice.worth, [*chosen, choice])

    def _idle(self, chosen: list[_Choice]) -> set[int]:
        """Return the nodes that no chosen job uses."""
        given = [c.given for c in chosen if c.given is not None]
        return set(range(len(self.gpus))) - used_nodes(given)

    def _first_of_gpus(self, part: tuple[int, int, int], chosen: list[_Choice]) -> bool:
        """Tell whether a part is beside another one, or on the first GPU without one."""
        given = [*(c.given for c in chosen), *self.round.held.values()]
        cut = {(n, g) for a in given if a is not None for n, g, _ in a.parts}
        node, gpu, _ = part
        return (node, gpu) in cut or all((node, g) in cut for g in range(gpu))

    def _first_of_equals(self, choice: _Choice, idle: set[int], chosen: list[_Choice]) -> bool:
        """Tell whether a choice takes the first of the idle nodes that nothing tells apart."""
        if choice.given is None:
            return True
        if choice.given.parts and not self._first_of_gpus(choice.given.parts[0], chosen):
            return False
        new = used_nodes([choice.given]) & idle
        left = {self.alike[n]: n for n in sorted(idle - new, reverse=True)}
        return all(left.get(self.alike[n], n) >= n for n in new)

    def _short(self, chosen: list[_Choice]) -> float:
        """Return how much less than all guarantees add to the chosen options."""
        rows = [c.row for c in chosen if c.row >= 0]
        sums = [(t, float(t.amount[rows].sum())) for t in self.terms]
        return sum(t.omega * max(0.0, amount - t.most) for t, amount in sums)

    def _fits(self, chosen: list[_Choice]) -> bool:
        """Tell whether no node has more GPUs in use than it has, parts left out."""
        free = list(self.gpus)
        for choice in chosen:
            if choice.given is not None and not choice.given.parts:
                for node, gpus in choice.given.placement:
                    free[node] -= gpus
        return min(free) >= 0

    def _broken(self, chosen: list[_Choice]) -> bool:
        return bool(check(self.round, self._plan(chosen)))

    def _plan(self, chosen: list[_Choice]) -> Plan:
        given = zip(self.table.jobs, chosen, strict=False)
        return Plan(allocations={s.job.id: c.given for s, c in given if c.given is not None})

    def _choices(self, j: int) -> list[_Choice]:
        """Return all that job j may do as far as it alone is concerned, the best first."""
        table, state = self.table, self.table.jobs[j]
        found = [_Choice(0.0, -1, None)]
        for k in range(table.start[j], table.start[j + 1]):
            worth = float(self.most[k])
            if table.current[k]:
                found.append(_Choice(worth, k, state.allocation))
                if self.moves:
                    rows, moved = np.array([k]), {state.job.id}
                    worth -= loss_of_moves(self.round, table, self.most, rows, moved)
            chosen = option(table, k)
            found += [
                _Choice(worth, k, Allocation(option=chosen, placement=placement, parts=parts))
                for placement, parts in places(self.round, table, k)
            ]
        own = [c for c in found if not self._wrong(state.job.id, c)]
        return sorted(own, key=lambda choice: -choice.worth)

    def _wrong(self, job: str, choice: _Choice) -> bool:
        """Tell whether a choice breaks a rule for its job, whatever the others do."""
        plan = Plan(allocations={} if choice.given is None else {job: choice.given})
        return any(fault.where == f"job {job}" for fault in check(self.round, plan))


def alike(round: Round) -> list[int]:
    """Return a number for each node, equal for nodes that nothing in the round tells apart."""
    cluster = round.cluster
    named = {n for state in round.jobs for n in state.job.nodes}
    named |= {n for n, *_ in (*round.leaving, *cluster.out, *cluster.taken)}
    named |= {*round.asleep, *round.waking, *used_nodes(round.held.values())}
    groups = cluster.topology.node_group.tolist()
    return [-n - 1 if n in named else group for n, group in enumerate(groups)]


Parts = tuple[tuple[int, int, int], ...]


def places(round: Round, table: OptionTable, k: int) -> Iterator[tuple[Placement, Parts]]:
    """Yield the nodes, and the parts of GPUs there, that row k may take."""
    job = table.jobs[int(table.job[k])].job
    pool, gpus = int(table.pool[k]), int(table.gpus[k])
    topology = round.cluster.topology
    if job.part is not None or job.share is not None:
        starts = _starts(round, job, pool)
        for n in np.flatnonzero(topology.node_pool == pool).tolist():
            for gpu, start in product(range(int(topology.node_gpus[n])), starts):
                yield ((n, gpus),), ((n, gpu, start),)
        return
    flat = any(need.flat for need in job.needs.values())
    for placement in whole_nodes_and_a_block(topology, pool, gpus, SPANS[int(table.span[k])]):
        yield placement, ()
        if flat and placement[0][1] == min(gpus for _, gpus in placement):
            for first in placement[1:]:  # bears what the job needs once
                yield (first, *(piece for piece in placement if piece != first)), ()


def _starts(round: Round, job: Job, pool: int) -> Iterable[int]:
    """Return the memory slices at which a part may begin, without regard to the part."""
    ways = round.cluster.topology.pools[pool].gpu_type.ways
    return range(ways.memory) if job.share is None and ways is not None else (0,)


def whole_nodes_and_a_block(
    topology: Topology, pool: int, gpus: int, span: str
) -> Iterator[Placement]:
    """Yield all nodes on which a job with some GPUs may start.

    It takes whole nodes, the pool's largest, and at most one block; where the pool has too few of
    these, the fewest empty nodes that hold it.
    """
    size: list[int] = topology.node_gpus.tolist()
    nodes = np.flatnonzero(topology.node_pool == pool).tolist()
    largest = max([1, *(size[n] for n in nodes)])
    whole, rest = divmod(gpus, largest)
    wide = [n for n in nodes if size[n] == largest]
    regular: list[Placement] = [
        tuple(sorted((*((n, largest) for n in filled), *([(b, rest)] if rest else []))))
        for filled in combinations(wide, whole)
        for b in ([n for n in nodes if n not in filled] if rest else [-1])
        if not rest or size[b] >= rest
    ]
    if not regular:  # the fewest nodes, each for itself
        sizes = sorted((size[n] for n in nodes), reverse=True)
        fewest = 1 + int(np.searchsorted(np.cumsum(sizes), gpus))
        regular = [
            _filled(chosen, size, gpus)
            for chosen in combinations(nodes, fewest)
            if sum(size[n] for n in chosen) >= gpus
        ]
    for placement in regular:
        racks = topology.racks_of(n for n, _ in placement)
        if (span != "node" or len(placement) == 1) and (span != "rack" or racks == 1):
            yield placement


def _filled(nodes: tuple[int, ...], size: list[int], gpus: int) -> Placement:
    """Return the GPUs of a job on nodes, all full except for the smallest."""
    found = []
    for node in sorted(nodes, key=lambda n: -size[n]):
        found.append((node, min(gpus, size[node])))
        gpus -= found[-1][1]
    return tuple(sorted(found))
