"""The exact policy for clusters with an energy budget."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.rows import gpus_by_pool
from ronda.formulations.allocation.waking import Ready, ready
from ronda.formulations.objectives.by_name import values
from ronda.formulations.objectives.switching_cost import horizon_s
from ronda.formulations.objectives.thrifty_rank import worth_of_a_watt
from ronda.formulations.sleeping import Standing, SurplusNodes, stand_by, standing
from ronda.formulations.watts import may_sleep, node_classes, nodes_for
from ronda.instances.clock import Deadline, OutOfTimeError
from ronda.instances.plan import Plan, PlanMemory, SolutionStatus
from ronda.instances.round import Round
from ronda.solvers.decision.plan import Choice, Question
from ronda.solvers.policies.optimising.prices import ByPrices


class WakingNodes(PlanMemory, frozen=True):
    """When nodes that were woken are ready, in seconds."""

    key: ClassVar[str] = "waking_nodes"

    ready_s: dict[int, float] = {}


@dataclass(frozen=True, kw_only=True)
class MilpEnergy(ByPrices):
    """Give every job the option that the round's best plan gives it, with a price on energy.

    The exact counterpart of `powerflow`: the allocation model of `milp` (docs/formulations.md) with
    options of GPUs, clock and batch; nodes awake as variables with the power of hosts and idle
    GPUs; the power cap; the energy of the window; and the objective ``thrifty-rank``
    (`ronda.formulations.objectives.thrifty_rank`), which took less energy than ``rank`` for no
    longer mean JCT at the budgets that we measured (docs/powerflow.md). Switching costs progress
    (`ronda.formulations.objectives.outlook`). A job that is not served forgoes what a second of its
    progress saves in flow time; that grows with its age (`ronda.formulations.objectives.rank`), so
    that nobody waits without end.

    The gap is proven by branching on the nodes that are awake and by MILPs over the jobs that
    prices leave undecided (`ronda.solvers.prices.engine`), many times as fast as the MILP in one
    piece.

    **Waking.** A node that is woken draws its power from the order on, in the model for the whole
    window. Options compete for the nodes that are ready, or wait until others have woken
    (`ronda.formulations.allocation.waking`); a running job goes on until then. Nodes that no longer
    pay for themselves stay awake until they have cost as much as waking them would
    (`ronda.formulations.sleeping`), if there is power for them. Until then jobs may use
    them for what their GPUs draw: the options are chosen again with hosts that cost nothing.

    Parameters
    ----------
    objective
        What options are worth (`ronda.formulations.objectives.by_name.values`).
    gap
        Relative gap to the bound at which the search stops.
    parameters
        The objective's. ``thrift`` of ``thrifty-rank`` is what a watt costs, as a share of what
        the job's most frugal option earns with one. 0: only the budget limits energy. The higher,
        the less energy is used for work of the same amount, and the longer jobs take if the budget
        would allow more.
    """

    name: ClassVar[str] = "milp-energy"
    objective: str = "thrifty-rank"
    gap: float = 1e-3

    def ready(self, round: Round, initial: Plan | None) -> Ready | None:
        """Return which nodes are awake, and not still waking."""
        return ready(round, frozenset(waking(round, initial))) if may_sleep(round) else None

    def choose(self, question: Question, deadline: Deadline, initial: Plan | None) -> Choice:
        """Choose; a watt that idle nodes draw costs as much as one that jobs draw.

        Where more nodes are awake than pay for themselves, choose again among these, with hosts
        that cost nothing.
        """
        choice = super().choose(question, deadline, initial)
        earned = question.values if choice.worth is None else choice.worth
        watt = worth_of_a_watt(question.table, earned, choice.chosen)
        choice = replace(choice, watt_value=self.parameters.get("thrift", 0.0) * watt)
        if choice.status is SolutionStatus.NONE or not may_sleep(question.round):
            return choice
        stands = standing(question.round, needed(question, choice), initial)
        if stands.left_s > 0 and "hosts" in self.parameters:
            choice = self._with_standing(question, stands, deadline, initial) or choice
        memory = choice.memory | SurplusNodes(stands.since).noted()
        return replace(choice, awake=stands.awake, memory=memory)

    def _with_standing(
        self, question: Question, stands: Standing, deadline: Deadline, initial: Plan | None
    ) -> Choice | None:
        """Choose among nodes whose hosts draw power whatever runs; None for lack of time.

        What is chosen lasts as long as the nodes do. Options that are out of the question stay so.
        """
        round = question.round
        lasts_s = min(horizon_s(round), stands.left_s)
        parameters = {**question.parameters, "hosts": 0.0, "horizon_s": lasts_s}
        try:
            worth = values(round, question.table, question.objective, **parameters)
            worth = np.where(np.isfinite(question.values), worth, -np.inf)
            asked = replace(question, values=worth)
            choice = self.allocate(asked, deadline, initial, stands.awake)
        except OutOfTimeError:
            return None
        if choice.status is SolutionStatus.NONE:
            return None
        if choice.worth is None:
            choice = replace(choice, worth=worth)
        return replace(choice, details=replace(choice.details, parameters=parameters))

    def finish(self, question: Question, choice: Choice, plan: Plan, initial: Plan | None) -> Plan:
        """Let nodes stay awake while that is cheaper than to wake them again."""
        round = question.round
        if not may_sleep(round):
            return plan
        nodes = len(round.cluster.topology.node_pool)
        least = choice.awake or [0] * len(round.cluster.topology.pools)
        asleep = stand_by(round, plan, least, {}, np.zeros(nodes))
        sleeping = set(round.asleep if asleep is None else asleep)
        woken = set(round.asleep) - sleeping
        ready_s = {n: s for n, s in waking(round, initial).items() if n not in sleeping}
        wake_s = round.cluster.topology.wake_s
        ready_s |= {n: round.now_s + float(wake_s[n]) for n in woken if wake_s[n] > 0}
        known = WakingNodes(dict(sorted(ready_s.items())))
        return replace(plan, asleep=asleep, memory=plan.memory | known.noted())


def needed(question: Question, choice: Choice) -> list[int]:
    """Return how many nodes of each pool (P,) a choice keeps awake."""
    if choice.awake is not None:
        return list(choice.awake)
    classes = node_classes(question.round)
    rows = choice.chosen[choice.chosen >= 0]
    return nodes_for(classes, gpus_by_pool(question.table, rows))


def waking(round: Round, initial: Plan | None) -> dict[int, float]:
    """Return when nodes that were woken earlier, and still wake, are ready."""
    known, now_s = WakingNodes.recall(initial).ready_s, round.now_s
    return {n: s for n, s in known.items() if s > now_s and n not in round.asleep}
