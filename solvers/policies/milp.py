"""The exact policy: options, values, MILP, placement."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.menu import SPANS
from ronda.formulations.objectives import minds_power, values
from ronda.formulations.options import OptionTable, build
from ronda.instances.errors import InputError
from ronda.instances.instance import Round
from ronda.instances.plan import Plan, SolutionStatus, SolveRecord, StopReason
from ronda.solvers.allocate import allocate
from ronda.solvers.contract import Capability, Deadline
from ronda.solvers.milp_search import Choice
from ronda.solvers.realise import Realised, realise
from ronda.solvers.versions import versions

Rows = NDArray[np.int64]

RESERVE_S, RESERVE_PER_JOB_S = 0.01, 5e-5
"""Seconds kept for placing the answer: measured 2 ms and 20 microseconds a job on one slow core."""


@dataclass(frozen=True, kw_only=True)
class Milp:
    """Give every job the option that the round's best plan gives it, by mixed-integer programming.

    The allocation model (docs/formulations.md) is solved by HiGHS through Pyomo to a proven gap,
    or as far as the time limit allows. What the solution cannot realise on nodes is left out, and
    the plan's objective and gap are those of what is placed.

    Parameters
    ----------
    objective
        What options are worth (`ronda.formulations.objectives.values`).
    gap
        Relative gap to the bound at which the search stops.
    elastic
        Whether jobs may get other GPU counts, batches and clocks than they asked for.
    """

    name: ClassVar[str] = "milp"
    capabilities: ClassVar[Capability] = (
        Capability.BOUND
        | Capability.WARM_START
        | Capability.DEADLINE
        | Capability.RANDOM
        | Capability.ELASTIC
        | Capability.PREEMPTS
        | Capability.ENERGY
        | Capability.OBJECTIVE
    )

    objective: str = "rank"
    gap: float = 1e-4
    elastic: bool = True

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense."""
        if not 0 <= self.gap < 1:
            raise InputError("milp: gap", f"{self.gap:g}", "a number from 0 to below 1")
        minds_power(self.objective)  # refuses an unknown objective

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round by MILP."""
        minds = minds_power(self.objective) or None
        table = build(round, elastic=self.elastic, mind_power=minds)
        worth = values(round, table, self.objective)
        options_s = deadline.elapsed()
        starts = [running_rows(table)]
        if initial is not None:
            starts.append(rows_of(table, initial))
        choice = allocate(
            round,
            table,
            worth,
            deadline=deadline,
            gap=self.gap,
            seed=seed,
            starts=starts,
            reserve_s=RESERVE_S + RESERVE_PER_JOB_S * len(table.jobs),
        )
        if choice.stop is StopReason.INFEASIBLE:
            return self._fallback(round, table, choice, deadline, seed)
        watt_price = choice.prices.get("energy_window", 0.0)
        began = deadline.elapsed()
        placed = realise(round, table, worth, choice.chosen, save_energy=watt_price > 0)
        record = _record(table, choice, options_s, deadline.elapsed() - began, deadline, seed)
        lost = placed.lost > 0
        return Plan(
            policy=self.name,
            allocations=placed.allocations,
            asleep=placed.asleep,
            objective=placed.objective,
            bound=max(choice.bound, placed.objective),
            stop=choice.stop,
            status=SolutionStatus.FEASIBLE if lost else choice.status,
            prices=choice.prices,
            record=record,
            details=self._details(placed),
        )

    def _details(self, placed: Realised) -> dict[str, Any]:
        """Return what else is worth remembering."""
        details: dict[str, Any] = {"objective": self.objective}
        if placed.unplaced:
            details |= {"placement_loss": placed.lost, "unplaced": list(placed.unplaced)}
        if placed.moved:
            details["moved"] = list(placed.moved)
        return details

    def _fallback(
        self, round: Round, table: OptionTable, choice: Choice, deadline: Deadline, seed: int
    ) -> Plan:
        """Keep what runs, and say which constraints conflict."""
        return Plan(
            policy=self.name,
            allocations={s.job.id: s.allocation for s in round.running if s.allocation is not None},
            stop=StopReason.INFEASIBLE,
            status=SolutionStatus.FALLBACK,
            record=_record(table, choice, 0.0, 0.0, deadline, seed),
            details={
                "objective": self.objective,
                "conflicts": [
                    {"constraints": list(c.constraints), "message": c.message}
                    for c in choice.conflicts
                ],
            },
        )


def running_rows(table: OptionTable) -> Rows:
    """Return (J,) the row that each job runs on now, -1 for those that wait."""
    chosen = np.full(len(table.jobs), -1, dtype=np.int64)
    current = np.flatnonzero(table.current)
    chosen[table.job[current]] = current
    return chosen


def rows_of(table: OptionTable, plan: Plan) -> Rows:
    """Return (J,) the rows that an earlier plan's options correspond to, -1 for those without one.

    Jobs that must run keep their only row.
    """
    wanted = np.full((len(table.jobs), 6), np.nan)
    for j, state in enumerate(table.jobs):
        held = plan.allocations.get(state.job.id)
        if held is not None:
            o = held.option
            wanted[j] = (o.pool, o.gpus, SPANS.index(o.span), o.clock, o.batch, o.width)
    columns = (table.pool, table.gpus, table.span, table.clock, table.batch, table.width)
    same = table.must_run[table.job].copy()
    equal = np.ones(len(table), dtype=bool)
    for k, column in enumerate(columns):
        equal &= column == wanted[table.job, k]
    same |= equal
    chosen = np.full(len(table.jobs), -1, dtype=np.int64)
    rows = np.flatnonzero(same)
    chosen[table.job[rows]] = rows
    return chosen


def _record(
    table: OptionTable,
    choice: Choice,
    options_s: float,
    extract_s: float,
    deadline: Deadline,
    seed: int,
) -> SolveRecord:
    """Return what the decision cost."""
    solved = choice.variables > 0
    packages = ("ronda", "numpy", "pyomo", "highspy") if solved else ("ronda", "numpy")
    return SolveRecord(
        seed=seed,
        build_s=max(options_s, choice.build_s),
        solve_s=choice.solve_s,
        extract_s=extract_s,
        total_s=deadline.elapsed(),
        nodes=choice.nodes,
        options=len(table),
        variables=choice.variables,
        constraints=choice.constraints,
        incumbents=choice.incumbents,
        solver="highs" if solved else "prices",
        versions={package: versions()[package] for package in packages},
        message=choice.message,
    )
