"""PowerFlow's greedy, as far as it is known, and the two-price rule: climbs with clocks.

Both climb by the priority of a step (`ronda.systems.powerflow.marginal`), from small and from what
runs, take the better end, and place.
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
from ronda.instances.arrays import Floats, Rows
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
    values: Floats  # (K,) what options are worth
    energy_j: Floats  # (K,) joules of a job's GPUs until it is complete
    left: Counted  # what the round has
    uses: RowUses  # what options take of it
    steps: Steps


@dataclass(frozen=True, kw_only=True)
class MarginalGreedy(TimelyPolicy):
    """Admit jobs at their smallest option, climb by priority, place, and power empty nodes off.

    Jobs climb twice, from their smallest options and from what they run on; the plan is the climb
    whose options are worth more, what stops and restarts lose counted.

    Power is limited by the round's cap and by what its energy budget allows on average over its
    window; a node that a job needs counts with its host and idle GPUs. Jobs are admitted by the
    time that they still need at their smallest option, over weight and time since submission
    (highest response ratio next): short ones first, but none waits indefinitely.
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
        """Decide a round."""
        question = self.question(round, deadline, seed)
        table, values = question.table, question.values
        seen = outlook_of(round, table, self.objective, self.parameters)
        energy_j = table.power_w * seen.left_s
        steps = steps_of(table, seen.left_s, energy_j)
        case = MarginalCase(seen, values, energy_j, Counted.of(round), uses(round, table), steps)
        chosen = _climbed(case, self.worth(case))
        record = SolveRecord(solve_s=deadline.elapsed() - question.options_s, solver="greedy")
        # What nobody can use yet is saved for those that wait.
        watt_value = worth_of_a_watt(table, values, chosen) or float(len(round.waiting))
        choice = Choice(chosen=chosen, record=record, watt_value=watt_value)
        return waiting_alone(to_plan(question, choice, deadline))

    def question(self, round: Round, deadline: Deadline, seed: int) -> Question:
        """Build all options of a round, dominated ones too, and their worth."""
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
        """Return (2, K) the priority of each step."""


@dataclass(frozen=True, kw_only=True)
class Powerflow(MarginalGreedy):
    """Climb by (dJCT / JCT) / (dE / E): a reconstruction of PowerFlow (arXiv 2304.06381).

    PowerFlow (Gu, Xie, Huang, Jin, Liu 2023) lowers the mean JCT under an energy budget. The
    paper's body could not be read. **From its abstract**: GPUs and clocks of every job are chosen
    by predicted throughput and energy under a budget; network packing and buddy allocation avoid
    fragmentation. **From a third party's port** (chikoneuru/hasagi-parallelism): the priority
    above, that a step which costs no energy goes first, and that climbing ends when GPUs or budget
    do. **Ours**: powers of two (see `steps_of`), steps to the next clock level, the clock of least
    energy to start at, the order in which jobs are admitted, the second climb from what runs, the
    budget as mean power over the round's window, and that empty nodes are powered off by what a
    watt earns on average.

    The ratio of relative changes does not see how long a job is: it evens out logarithms of JCTs.
    `powerflow-prices` counts seconds.
    """

    name: ClassVar[str] = "powerflow"

    def worth(self, case: MarginalCase) -> Floats:
        """Return (2, K) the relative priority of each step."""
        return relative(case.steps.up, case.outlook.left_s, case.energy_j)


@dataclass(frozen=True, kw_only=True)
class PowerflowPrices(MarginalGreedy):
    """Climb by dJCT / (dE / E_bud + dn / N): PowerFlow's greedy with prices in absolute terms.

    Ours, not PowerFlow's. A step's cost is the share of the power budget (hosts' share included)
    and the share of its pool's GPUs that it takes: two Lagrange multipliers, set so that the whole
    budget costs as much as the whole cluster. Everything else is as in `powerflow`.

    Parameters
    ----------
    objective
        The worth of options (`ronda.formulations.objectives.by_name.values`), whose difference is
        dJCT. ``snapshot`` is just the seconds that a step saves.
    parameters
        The objective's, by name.
    """

    name: ClassVar[str] = "powerflow-prices"

    objective: str = "snapshot"  # type: ignore[misc]
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)  # type: ignore[misc]

    def __post_init__(self) -> None:
        """Refuse an unknown objective or parameter of it."""
        object.__setattr__(self, "parameters", parameters(self.objective, self.parameters))

    def worth(self, case: MarginalCase) -> Floats:
        """Return (2, K) the priority of each step at the two prices."""
        table, left = case.outlook.table, case.left
        cost = table.gpus / np.maximum(np.array(left.gpus)[table.pool], 1.0)
        tightest = int(np.argmin(left.watts))
        if 0 < left.watts[tightest] < np.inf:
            each_w = np.array([steps[-1] / max(1, len(steps) - 1) for steps in left.node_w])
            watts = case.uses.watts[:, tightest] + table.gpus * each_w[table.pool]
            cost = cost + watts / left.watts[tightest]
        return priced(case.steps.up, case.values, cost)


def _climbed(case: MarginalCase, worth: Floats) -> Rows:
    """Return (J,) the better of two climbs by its values: from small, and from what runs.

    A climb only from small options ends elsewhere for small reasons, and every job that it changes
    restarts.
    """
    steps = case.steps
    small = (steps.start, steps.frugal)
    starts = (_start(case, (running_rows(case.outlook.table), *small)), _start(case, small))
    climbs = [climbed(left, case.uses, start, steps.up, worth) for start, left in starts]
    return max(climbs, key=lambda rows: float(case.values[rows[rows >= 0]].sum()))


def _start(case: MarginalCase, choices: Iterable[Rows]) -> tuple[Rows, Counted]:
    """Return (J,) the options of the jobs that are admitted, -1 for others, and what they leave.

    Each choice (J,) is offered to all jobs that no earlier one admitted.
    """
    table, left = case.outlook.table, case.left.rest()
    now = np.full(len(table.jobs), -1, dtype=np.int64)
    must = np.flatnonzero(table.must_run)
    now[must] = case.steps.start[must]
    for row in now[must].tolist():
        watts = case.uses.watts[row].tolist()
        left.take(int(table.pool[row]), int(table.gpus[row]), watts, anyhow=True)
    for rows in choices:
        jobs = np.flatnonzero((now < 0) & (rows >= 0))
        queue = rows[jobs][np.argsort(_urgency(case, rows[jobs]), kind="stable")]
        fit = admitted(left, case.uses, queue)
        now[table.job[fit]] = fit
    return now, left


def _urgency(case: MarginalCase, rows: Rows) -> Floats:
    """Return the seconds until completion over weight and time since submission, per row."""
    seen = case.outlook
    table, now_s = seen.table, seen.round.now_s
    age_s = now_s - np.array([state.job.submit_s for state in table.jobs])
    job = table.job[rows]
    return np.asarray(seen.left_s[rows] / (seen.weight[job] * np.maximum(age_s[job], 1.0)))
