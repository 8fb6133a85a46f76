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
    """The times in seconds at which woken nodes are ready, keyed by node."""

    key: ClassVar[str] = "waking_nodes"

    ready_s: dict[int, float] = {}


@dataclass(frozen=True, kw_only=True)
class MilpEnergy(ByPrices):
    """Give every job the option that the round's best plan gives it, with a price on energy.

    This is the exact counterpart of `powerflow`. It uses the allocation model of `milp`
    (docs/formulations.md) with options of GPUs, clock and batch. The numbers of awake nodes are
    variables, with the power of hosts and idle GPUs. The model has the power cap and the energy of
    the window. The objective ``thrifty-rank`` (`ronda.formulations.objectives.thrifty_rank`) took
    less energy than ``rank`` for no longer mean JCT at the budgets that we measured
    (docs/powerflow.md). Switching costs progress (`ronda.formulations.objectives.outlook`). A
    waiting job loses the flow time that a second of its progress would save. This loss grows with
    the job's age (`ronda.formulations.objectives.rank`), so that no job waits forever.

    The gap is proven by branching on the numbers of awake nodes and by MILPs over the jobs that
    prices leave undecided (`ronda.solvers.prices.engine`). That is many times as fast as one whole
    MILP.

    **Waking.** A woken node draws its power from the wake order on, and in the model for the whole
    window. Options compete for the nodes that are ready, or wait until other nodes have woken
    (`ronda.formulations.allocation.waking`). A running job goes on until its new nodes are ready.
    Nodes that no longer pay for themselves stay awake until they have cost as much as waking them
    would (`ronda.formulations.sleeping`), if there is power for them. Until they sleep, jobs may
    use them at the cost of their GPUs' power alone: the options are chosen again with hosts that
    cost nothing.

    Parameters
    ----------
    objective
        Objective that values the options (`ronda.formulations.objectives.by_name.values`).
    gap
        Relative gap to the bound at which the search stops.
    parameters
        The objective's parameters. ``thrift`` of ``thrifty-rank`` is the cost of a watt as a share
        of the value that the job's most frugal option earns per watt. 0: only the budget limits
        energy. A higher value saves energy per unit of work, but jobs take longer if the budget
        would allow more.
    """

    name: ClassVar[str] = "milp-energy"
    objective: str = "thrifty-rank"
    gap: float = 1e-3

    def ready(self, round: Round, initial: Plan | None) -> Ready | None:
        """Return the nodes that are awake and no longer waking."""
        return ready(round, frozenset(waking(round, initial))) if may_sleep(round) else None

    def choose(self, question: Question, deadline: Deadline, initial: Plan | None) -> Choice:
        """Choose options; a watt of idle nodes costs as much as a watt of jobs.

        If more nodes are awake than pay for themselves, choose again among the awake nodes, with
        hosts that cost nothing.
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
        """Choose options for nodes that stay awake anyway; return None if that fails.

        The choice lasts no longer than the nodes stay awake. Impossible options stay impossible.
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
        """Keep nodes awake while that is cheaper than waking them again."""
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
    """Return the number of nodes of each pool that a choice keeps awake, length P."""
    if choice.awake is not None:
        return list(choice.awake)
    classes = node_classes(question.round)
    rows = choice.chosen[choice.chosen >= 0]
    return nodes_for(classes, gpus_by_pool(question.table, rows))


def waking(round: Round, initial: Plan | None) -> dict[int, float]:
    """Return the times at which nodes that are still waking are ready, keyed by node."""
    known, now_s = WakingNodes.recall(initial).ready_s, round.now_s
    return {n: s for n, s in known.items() if s > now_s and n not in round.asleep}
