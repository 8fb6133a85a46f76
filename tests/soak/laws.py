"""What holds for the plans of all policies for one round, whatever the round."""

from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from msgspec.structs import replace

import ronda
from every_plan import cuts
from ronda.formulations.options.build import build
from ronda.formulations.options.table import options, rows_of
from ronda.formulations.positions.variables import NODE_SHARE
from ronda.formulations.sleeping import woken
from ronda.instances.clock import Deadline
from ronda.instances.job import Allocation
from ronda.instances.plan import ROUNDING, Plan, SolutionStatus, StopReason, closes
from ronda.solvers.as_one import seen_by
from ronda.solvers.registry import POLICIES

FEW = "(generations=3, stagnation=3)"
SPECS = {name: name + FEW * name.startswith(("genetic", "evolve")) for name in POLICIES}
SPECS |= {
    "exact": "milp(placement=exact)",
    "easy": "fifo(backfill=easy)",
    "conservative": "qssf(backfill=conservative)",
}
"""What is asked, by name; searches are cut short."""

LIMIT_S = 20.0
"""Seconds that a decision may take: none is cut but where a solver hangs."""

BOUNDED = ("milp", "exact", "cp-sat", "prices", "genetic", "evolve", "sia-like")
"""Policies whose bounds are of the sum of their options' values."""

CONSERVING = ("las",)
"""Policies that leave no place on a node free that a job could take as it asks, where nothing is
limited. (Policies that climb choose each job's pool before they know who gets how many GPUs.)"""

STRICT = ("fifo", "hfht", "fifo+zeus")
"""Queues that their first job blocks, whatever it waits for."""


@dataclass
class Asked:
    """The plans of policies for a round; those that keep every rule are `clean`."""

    round: ronda.Round
    seed: int
    only: tuple[str, ...]
    found: list[str] = field(default_factory=list)

    def __post_init__(self):
        """Ask all."""
        self.plans = {
            name: ronda.solve(self.round, SPECS[name], seed=self.seed, deadline=LIMIT_S)
            for name in self.only
        }
        self.clean = {
            name: plan
            for name, plan in self.plans.items()
            if plan.status is not SolutionStatus.NONE and not ronda.check(self.round, plan)
        }
        self.table = build(self.round, elastic=False)

    def say(self, law, name, what):
        """Note a law that is broken."""
        self.found.append(f"{law}: {name}: {what}"[:300])

    @property
    def limited(self):
        """Whether power or energy is limited."""
        racks = self.round.cluster.racks
        return self.round.watts is not None or any(r.power_cap_w is not None for r in racks)


def broken_laws(round_, seed, only=tuple(SPECS)):
    """Return the laws that plans for a round break, in words."""
    asked = Asked(round_, seed, only)
    for law in LAWS:
        law(asked)
    return asked.found


def answers(asked):
    """No policy raises, or answers with what breaks a rule where what runs keeps them all."""
    sound = not ronda.check(asked.round, Plan(allocations=asked.round.held))
    for name, plan in asked.plans.items():
        said = plan.record.message
        if "raised" in said or "malformed" in said or (sound and said.startswith("refused")):
            asked.say("answers", name, said)


def keeps_what_can_be_kept(asked):
    """Where one plan keeps every rule all do; where none does, a plan names what it breaks."""
    for name, plan in asked.plans.items():
        if plan.status is SolutionStatus.NONE and asked.clean:
            asked.say("keeps", name, f"none, but {next(iter(asked.clean))} has one")
        if plan.status is SolutionStatus.NONE or name in asked.clean:
            continue
        broken = ronda.check(asked.round, plan)
        if asked.clean:
            asked.say("keeps", name, f"{broken[0]}, not {next(iter(asked.clean))}")
        for violation in broken:
            if violation.code not in ("must-run", "preemption"):
                asked.say("keeps", name, violation)
            elif violation.where.split()[-1] not in plan.record.message:
                asked.say("names", name, f"{violation} is not in {plan.record.message!r}")


def proofs_hold(asked):
    """*Optimal* is what bound and objective prove; no plan of anyone exceeds a bound."""
    for name, plan in asked.plans.items():
        made = ronda.policy(SPECS[name])
        proven = None not in (plan.objective, plan.bound)
        gap = 1.001 * getattr(made, "gap", 1e-4)
        if plan.status is SolutionStatus.OPTIMAL and not (
            proven and closes(plan.bound, plan.objective, gap)
        ):
            asked.say("optimal", name, f"{plan.objective} of {plan.bound}")
        if proven and plan.bound < plan.objective - ROUNDING * abs(plan.objective):
            asked.say("bound", name, f"{plan.bound} below its own {plan.objective}")
        if name in BOUNDED and plan.bound is not None and plan.status in SOLVED:
            exceeded(asked, name, plan.bound, made)


SOLVED = (SolutionStatus.OPTIMAL, SolutionStatus.FEASIBLE)


def exceeded(asked, name, bound, made):
    """Say which sound plan is worth more than a policy's bound, in that policy's eyes."""
    seen = seen_by(made.capabilities, asked.round)
    if seen.names and asked.round.energy_j is not None:  # an array ends with its last member
        return
    question = made.question(seen.round, Deadline(), asked.seed)
    table, values, held = question.table, question.values, seen.round.held
    scale = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    for other, plan in asked.clean.items():
        given = seen.shown(plan).allocations
        rows = rows_of(table, replace(plan, allocations=given))
        if (rows >= 0).sum() != len(given) or not all(map(asked_cut(asked.round), given.values())):
            continue
        worth = float(values[rows[rows >= 0]].sum())
        if name == "exact":
            ways = ((held.get(job), then) for job, then in given.items())
            if any(a and a.option.same_way(b.option) and not a.goes_on(b) for a, b in ways):
                continue
            nodes = {node for each in given.values() for node, _ in each.placement}
            worth -= NODE_SHARE * scale * len(nodes)
        if worth > bound + 1e-7 * abs(worth) + 10 * ROUNDING * scale:
            asked.say("bound", name, f"{bound} below {worth} of {other} (values to {scale:g})")
            return


def asked_cut(round_):
    """Return what tells whether an allocation is cut as placement does it, on equal nodes."""
    t = round_.cluster.topology

    def cut(allocation):
        own = t.in_service(allocation.option.pool)
        sizes = {n: int(t.node_gpus[n]) for n in np.flatnonzero(own).tolist()}
        if len(allocation.placement) == 1:
            return True
        equal = len(set(sizes.values())) == 1
        return equal and tuple(sorted(allocation.placement)) in set(
            cuts(allocation.option.gpus, sizes)
        )

    return cut


def somebody_runs(asked):
    """Nodes wake when jobs wait, and no job that cannot be promised anything blocks the others."""
    if asked.round.energy_j is not None or any(r.power_cap_w for r in asked.round.cluster.racks):
        return  # which some policies keep until jobs end; or the place is not known beforehand
    for name, plan in asked.clean.items():
        kept = plan.status is not SolutionStatus.FALLBACK and name not in STRICT
        if kept and not plan.allocations and (found := starter(asked, plan)):
            asked.say("runs", name, f"nobody; {found} could")


def no_free_place_is_left(asked):
    """No job waits that a free place could take as it asks, beside all that the plan runs."""
    for name in () if asked.limited else CONSERVING:
        plan = asked.clean.get(name)
        stopped = plan is None or plan.stop is StopReason.TIME_LIMIT
        if not stopped and plan.status in SOLVED and (found := starter(asked, plan)):
            asked.say("waits", name, f"{found} could start")


def starter(asked, plan):
    """Return in words a waiting job that could start on a node beside a plan; None without one."""
    round_, table, t = asked.round, asked.table, asked.round.cluster.topology
    arrays = {held.array or job: held for job, held in plan.allocations.items()}
    free = dict(enumerate(t.node_gpus.tolist()))
    for node, gpus in chain.from_iterable(held.placement for held in arrays.values()):
        free[node] -= gpus
    gone = {*plan.allocations, *plan.discarded, *round_.held}
    for j, state in enumerate(table.jobs):
        if state.job.id in gone:
            continue
        for option in options(table, np.arange(table.start[j], table.start[j + 1])):
            sizes = {n: g for n, g in free.items() if g and t.node_pool[n] == option.pool}
            enough = sum(sizes.values()) >= option.gpus
            for placement in cuts(option.gpus, sizes) if enough else ():
                if len(placement) > 1:
                    continue
                given = Allocation(option=option, placement=placement)
                more = replace(plan, allocations=plan.allocations | {state.job.id: given})
                if not ronda.check(round_, replace(woken(round_, more), objective=None)):
                    return f"{state.job.id} ({option.gpus} GPUs on {placement})"
    return None


LAWS = (
    answers,
    keeps_what_can_be_kept,
    proofs_hold,
    somebody_runs,
    no_free_place_is_left,
)
