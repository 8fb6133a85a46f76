"""Placement of chosen options as a MILP in Pyomo, exact and for small cases.

The exact model beside the quick repack of `ronda.formulations.placement.placer`: given one option
per job, on which nodes, with the fewest migrations, the fewest extra racks and the fewest nodes in
use. No policy asks it yet; it is kept as the measure of the quick repack, and to become a choice.

Every job is cut as there: q = gpus div M whole nodes (M: GPUs of the pool's largest node) and one
block of r = gpus mod M GPUs. For sizes that divide each other and M the quick repack places
everything that this model can (theorem and proof: `ronda.formulations.placement.packing`); how many
more jobs it moves is measured against this model in the tests.

===================  ==============================================================
variable             meaning
===================  ==============================================================
``keep[j]``          1 if running job j stays exactly where it is
``whole[j, n]``      1 if job j, placed again, takes all of node n
``block[j, n]``      1 if job j, placed again, has its block on node n
``reach[j, r]``      1 if job j uses rack r
``used[n]``          1 if any job uses node n
===================  ==============================================================

Each constraint family is one function below; its docstring is the mathematics that it adds, and
its name is the constraint's name in the model.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo

from ronda.formulations.placement.placer import Placed, assemble, unchanged
from ronda.formulations.topology import rack_of
from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, Option
from ronda.instances.round import Round

MIGRATION, RACK, NODE = 1.0, 0.01, 0.001
"""What one migration, one more rack of a job and one node in use count in the objective.

They rank migrations before racks before nodes up to a hundred extra racks and ten nodes each.
"""


@dataclass(frozen=True, slots=True)
class PlacementCase:
    """What the constraint functions need: jobs by id with options, and where they run."""

    cluster: Cluster
    options: Mapping[str, Option]
    held: Mapping[str, Allocation | None]
    nodes: Mapping[str, tuple[int, ...]]
    pinned: frozenset[str]

    def cut(self, job: str) -> tuple[int, int]:
        """Return the number of whole nodes and the GPUs of the block of a job."""
        option = self.options[job]
        return divmod(option.gpus, self.cluster.topology.pools[option.pool].gpus_per_node)

    def held_on(self, job: str, node: int) -> int:
        """Return the GPUs that a running job has on a node now."""
        held = self.held[job]
        return sum(g for n, g in held.placement if n == node) if held is not None else 0


def placement_model(round: Round, chosen: Mapping[str, Option]) -> pyo.ConcreteModel:
    """Return the model that puts every chosen option on nodes; infeasible if they do not fit.

    Running jobs that are not in `chosen` stop. Racks' power caps are not modelled. `read_placement`
    turns the solution into a `Placed`.
    """
    case = _case(round, chosen)
    model = pyo.ConcreteModel(name="placement")
    _variables(model, case)
    families: tuple[Callable[[pyo.ConcreteModel, PlacementCase], None], ...] = (
        filled_nodes,
        one_block,
        node_gpus,
        reach_rack,
        span,
        must_stay,
    )
    for add in families:
        add(model, case)
    migrations = sum(1 - model.keep[j] for j in case.options if case.held[j] is not None)
    racks = sum(model.reach.values()) - len(case.options)
    model.cost = pyo.Objective(
        expr=MIGRATION * migrations + RACK * racks + NODE * sum(model.used.values())
    )
    return model


def read_placement(model: pyo.ConcreteModel, round: Round, chosen: Mapping[str, Option]) -> Placed:
    """Return the solution that a solver has loaded into a model of `placement_model`.

    Jobs that stay keep their very `Allocation`; sleeping nodes that are used are woken.
    """
    case = _case(round, chosen)
    placements = {}
    for job in case.options:
        kept = case.held[job]
        if kept is not None and pyo.value(model.keep[job]) > 0.5:
            placements[job] = tuple(sorted(kept.placement))
            continue
        size, (_, rest) = case.cluster.topology.node_gpus, case.cut(job)
        pieces = [(n, int(size[n])) for n in case.nodes[job] if _is_one(model.whole, (job, n))]
        pieces += [(n, rest) for n in case.nodes[job] if _is_one(model.block, (job, n))]
        placements[job] = tuple(sorted(pieces))
    return assemble(round, chosen, case.held, placements, may_sleep=False, awake={})


# -- constraint families --------------------------------------------------------------------------


def filled_nodes(model: pyo.ConcreteModel, case: PlacementCase) -> None:
    """Σ_n whole_jn = q_j (1 − keep_j) for every job j with q_j ≥ 1."""

    def rule(m: pyo.ConcreteModel, job: str) -> Any:
        count, _ = case.cut(job)
        placed = sum(m.whole[job, n] for n in case.nodes[job] if (job, n) in m.whole)
        return placed == count * (1 - m.keep[job])

    model.filled_nodes = pyo.Constraint([j for j in case.options if case.cut(j)[0]], rule=rule)


def one_block(model: pyo.ConcreteModel, case: PlacementCase) -> None:
    """Σ_n block_jn = 1 − keep_j for every job j with r_j ≥ 1."""

    def rule(m: pyo.ConcreteModel, job: str) -> Any:
        return sum(m.block[job, n] for n in case.nodes[job]) == 1 - m.keep[job]

    model.one_block = pyo.Constraint([j for j in case.options if case.cut(j)[1]], rule=rule)


def node_gpus(model: pyo.ConcreteModel, case: PlacementCase) -> None:
    """Σ_j (held_jn keep_j + M whole_jn + r_j block_jn) ≤ size_n used_n for every node n."""

    def rule(m: pyo.ConcreteModel, node: int) -> Any:
        size = int(case.cluster.topology.node_gpus[node])
        terms: list[Any] = []
        for job in case.options:
            held = case.held_on(job, node)
            if held:
                terms.append(held * m.keep[job])
            if (job, node) in m.whole:
                terms.append(size * m.whole[job, node])
            if (job, node) in m.block:
                terms.append(case.cut(job)[1] * m.block[job, node])
        return sum(terms) <= size * m.used[node] if terms else pyo.Constraint.Skip

    model.node_gpus = pyo.Constraint(model.NODES, rule=rule)


def reach_rack(model: pyo.ConcreteModel, case: PlacementCase) -> None:
    """reach_jr ≥ whole_jn + block_jn, and ≥ keep_j if j runs there, for every node n of rack r."""

    def rule(m: pyo.ConcreteModel, job: str, node: int) -> Any:
        new = [v[job, node] for v in (m.whole, m.block) if (job, node) in v]
        stays = [m.keep[job]] if case.held_on(job, node) else []
        if not new and not stays:
            return pyo.Constraint.Skip
        return m.reach[job, rack_of(case.cluster, node)] >= sum(new) + sum(stays)

    model.reach_rack = pyo.Constraint(list(_pairs(case)), rule=rule)


def span(model: pyo.ConcreteModel, case: PlacementCase) -> None:
    """Σ_r reach_jr ≤ 1 for jobs within a rack; Σ_n whole_jn ≤ 0 where a node would not do."""

    def rule(m: pyo.ConcreteModel, job: str) -> Any:
        count, rest = case.cut(job)
        if case.options[job].span == "node" and (count > 1 or (count and rest)):
            return pyo.Constraint.Infeasible
        return (
            sum(
                m.reach[job, r] for r in sorted({rack_of(case.cluster, n) for n in case.nodes[job]})
            )
            <= 1
        )

    limited = [j for j, option in case.options.items() if option.span != "cluster"]
    model.span = pyo.Constraint(limited, rule=rule)


def must_stay(model: pyo.ConcreteModel, case: PlacementCase) -> None:
    """keep_j = 1 for running jobs that may not be preempted, 0 for jobs that do not run so."""
    for job in case.options:
        if case.held[job] is None:
            model.keep[job].fix(0)
        elif job in case.pinned:
            model.keep[job].fix(1)


# -- sets and variables ---------------------------------------------------------------------------


def _case(round: Round, chosen: Mapping[str, Option]) -> PlacementCase:
    topology = round.cluster.topology
    states = {state.job.id: state for state in round.jobs}
    held = {job: unchanged(states[job], option) for job, option in chosen.items()}
    nodes_of = [
        tuple(n for n, p in enumerate(topology.node_pool.tolist()) if p == pool)
        for pool in range(len(topology.pools))
    ]
    return PlacementCase(
        cluster=round.cluster,
        options=chosen,
        held=held,
        nodes={job: nodes_of[option.pool] for job, option in chosen.items()},
        pinned=frozenset(j for j in chosen if held[j] and not states[j].job.preemptible),
    )


def _variables(model: pyo.ConcreteModel, case: PlacementCase) -> None:
    """Add the variables of the module's table."""
    sizes = case.cluster.topology.node_gpus.tolist()
    model.JOBS = pyo.Set(initialize=list(case.options), ordered=True)
    model.NODES = pyo.Set(
        initialize=sorted({n for nodes in case.nodes.values() for n in nodes}), ordered=True
    )
    whole, block, reach = [], [], []
    for job, node in _pairs(case):
        count, rest = case.cut(job)
        pool = case.cluster.topology.pools[case.options[job].pool]
        if count and sizes[node] == pool.gpus_per_node:
            whole.append((job, node))
        if rest and rest <= sizes[node]:
            block.append((job, node))
        reach.append((job, rack_of(case.cluster, node)))
    model.keep = pyo.Var(model.JOBS, domain=pyo.Binary)
    model.whole = pyo.Var(whole, domain=pyo.Binary)
    model.block = pyo.Var(block, domain=pyo.Binary)
    model.reach = pyo.Var(list(dict.fromkeys(reach)), domain=pyo.Binary)
    model.used = pyo.Var(model.NODES, domain=pyo.Binary)


def _pairs(case: PlacementCase) -> Iterator[tuple[str, int]]:
    """Yield all pairs (job, node of its pool)."""
    for job, nodes in case.nodes.items():
        for node in nodes:
            yield job, node


def _is_one(variable: Any, index: tuple[str, int]) -> bool:
    return index in variable and pyo.value(variable[index]) > 0.5
