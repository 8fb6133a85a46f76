"""PowerFlow's greedy, as far as it is known, and the two-price rule.

Both climb by the priority of steps (`ronda.systems.powerflow.marginal`), once from the smallest and
once from the running options, and place the better result.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ronda.formulations.objectives.by_name import outlook_of, parameters, values_of
from ronda.formulations.objectives.outlook import Outlook
from ronda.formulations.objectives.thrifty_rank import worth_of_a_watt
from ronda.formulations.options.build import build
from ronda.formulations.options.table import running_rows
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan, SolveRecord
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.decision.plan import Choice, Question, to_plan, waiting_alone
from ronda.solvers.greedy.counted import Counted, RowUses, uses
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.systems.powerflow.marginal import Steps, admitted, climbed, priced, relative, steps_of


@dataclass(frozen=True, slots=True)
class MarginalCase:
    """A round as the marginal greedy policies see it."""

    outlook: Outlook
    values: Floats  # worth of the options, shape (K,)
    energy_j: Floats  # joules of a job's GPUs until it is complete, shape (K,)
    left: Counted  # free capacity of the round
    uses: RowUses  # use of that capacity by each option
    steps: Steps


@dataclass(frozen=True, kw_only=True)
class MarginalGreedy(TimelyPolicy):
    """Admit jobs at their smallest option, climb by priority, place, and power off empty nodes.

    Jobs climb twice, from their smallest and from their running options. The plan is the climb
    whose options are worth more, net of the losses by stops and restarts.

    Power is limited by the cap of the round and by the mean power that its energy budget allows
    over its window. The power of a used node includes its host and its idle GPUs. Jobs are admitted
    in order of their remaining time at their smallest option, divided by weight and time since
    submission (highest response ratio next), so short jobs come first but no job waits
    indefinitely.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capability] = (
        Capability.ELASTIC
        | Capability.PREEMPTS
        | Capability.ENERGY
        | Capability.SIZES
        | Capability.SLEEPS
        | Capability.OBJECTIVE
    )

    objective: ClassVar[str] = "snapshot"
    parameters: ClassVar[Mapping[str, Any]] = parameters("snapshot")

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Return the plan of a round."""
        question = self.question(round, deadline, seed)
        table, values = question.table, question.values
        seen = outlook_of(round, table, self.objective, self.parameters)
        energy_j = table.power_w * seen.left_s
        steps = steps_of(table, seen.left_s, energy_j)
        case = MarginalCase(seen, values, energy_j, Counted.of(round), uses(round, table), steps)
        # A climb only from the smallest options may end elsewhere for minor reasons, and every
        # changed job restarts: the more valuable of two climbs counts, the other from what runs.
        worth, small = self.worth(case), (steps.start, steps.frugal)
        starts = (_start(case, (running_rows(table), *small)), _start(case, small))
        climbs = [climbed(left, case.uses, start, steps.up, worth) for start, left in starts]
        chosen = max(climbs, key=lambda rows: float(values[rows[rows >= 0]].sum()))
        record = SolveRecord(solve_s=deadline.elapsed() - question.options_s, solver="greedy")
        # Power that no job can use yet is saved for waiting jobs.
        watt_value = worth_of_a_watt(table, values, chosen) or float(len(round.waiting))
        choice = Choice(chosen=chosen, record=record, watt_value=watt_value)
        return waiting_alone(to_plan(question, choice, deadline))

    def question(self, round: Round, deadline: Deadline, seed: int) -> Question:
        """Build all options of a round, including dominated ones, and their worth."""
        table = build(round, prune=False, mind_power=False)
        seen = outlook_of(round, table, self.objective, self.parameters)
        return Question(
            round=round,
            objective=self.objective,
            table=table,
            values=values_of(seen, self.objective, self.parameters),
            policy=self.name,
            packages=("ronda", "numpy"),
            seed=seed,
            options_s=deadline.elapsed(),
        )

    @abstractmethod
    def worth(self, case: MarginalCase) -> Floats:
        """Return the priority of each step, shape (2, K)."""


@dataclass(frozen=True, kw_only=True)
class Powerflow(MarginalGreedy):
    """Climb by (dJCT / JCT) / (dE / E): a reconstruction of PowerFlow (arXiv 2304.06381).

    PowerFlow (Gu, Xie, Huang, Jin, Liu 2023) lowers the mean JCT under an energy budget. The body
    of the paper was not available. **The abstract says** that GPUs and clocks of every job are
    chosen by predicted throughput and energy under a budget, and that network packing and buddy
    allocation avoid fragmentation. **A third party's port** (chikoneuru/hasagi-parallelism) has the
    priority above, takes steps that cost no energy first, and ends the climb when GPUs or budget
    are used up. **Our additions** are powers of two (see `steps_of`), steps to the next clock
    level, the start at the clock of least energy, the order of admission, the second climb from the
    running options, the budget as mean power over the round's window, and the rule that empty nodes
    are powered off by the mean gain of a watt.

    A ratio of relative changes ignores how long a job is: it balances logarithms of JCTs.
    `powerflow-prices` counts seconds.
    """

    name: ClassVar[str] = "powerflow"

    def worth(self, case: MarginalCase) -> Floats:
        """Return the relative priority of each step, shape (2, K)."""
        return relative(case.steps.up, case.outlook.left_s, case.energy_j)


@dataclass(frozen=True, kw_only=True)
class PowerflowPrices(MarginalGreedy):
    """Climb by dJCT / (dE / E_bud + dn / N): PowerFlow's greedy with prices in absolute terms.

    This rule is ours, not PowerFlow's. A step costs the sum of its share of the power budget
    (including hosts) and its share of its pool's GPUs. The two prices are Lagrange multipliers,
    chosen so that the whole budget costs as much as the whole cluster. Everything else is as in
    `powerflow`.

    Parameters
    ----------
    objective
        Objective that gives the worth of options (`ronda.formulations.objectives.by_name.values`);
        dJCT is its difference. ``snapshot`` counts only the seconds that a step saves.
    parameters
        Parameters of the objective, by name.
    """

    name: ClassVar[str] = "powerflow-prices"

    objective: str = "snapshot"  # type: ignore[misc]
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)  # type: ignore[misc]

    def __post_init__(self) -> None:
        """Raise InputError for an unknown objective or an unknown parameter."""
        object.__setattr__(self, "parameters", parameters(self.objective, self.parameters))

    def worth(self, case: MarginalCase) -> Floats:
        """Return the priority of each step at the two prices, shape (2, K)."""
        table, left = case.outlook.table, case.left
        cost = table.gpus / np.maximum(np.array(left.gpus)[table.pool], 1.0)
        tightest = int(np.argmin(left.watts))
        if 0 < left.watts[tightest] < np.inf:
            each_w = np.array([steps[-1] / max(1, len(steps) - 1) for steps in left.node_w])
            watts = case.uses.watts[:, tightest] + table.gpus * each_w[table.pool]
            cost = cost + watts / left.watts[tightest]
        return priced(case.steps.up, case.values, cost)


def _start(case: MarginalCase, choices: Iterable[Rows]) -> tuple[Rows, Counted]:
    """Return the options of the admitted jobs, shape (J,), -1 for others, and the capacity left.

    Each choice (J,) is offered to all jobs that no earlier choice admitted, in ascending order of
    the seconds to completion divided by weight and time since submission.
    """
    seen, table, left = case.outlook, case.outlook.table, case.left.rest()
    age_s = seen.round.now_s - np.array([state.job.submit_s for state in table.jobs])
    now = np.full(len(table.jobs), -1, dtype=np.int64)
    must = np.flatnonzero(table.must_run)
    now[must] = case.steps.start[must]
    for row in now[must].tolist():
        watts = case.uses.watts[row].tolist()
        left.take(int(table.pool[row]), int(table.gpus[row]), watts, anyhow=True)
    for rows in choices:
        able = rows[(now < 0) & (rows >= 0)]
        job = table.job[able]
        urgency = seen.left_s[able] / (seen.weight[job] * np.maximum(age_s[job], 1.0))
        fit = admitted(left, case.uses, able[np.argsort(urgency, kind="stable")])
        now[table.job[fit]] = fit
    return now, left
