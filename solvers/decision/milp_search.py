"""The MILP of a round, over all options or as many as there is time for."""

import sys
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ronda.formulations.allocation.case import Case, restrict
from ronda.instances.arrays import Floats
from ronda.instances.plan import StopReason
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.choice import Choice

SECONDS_PER_OPTION, QUICK = 2e-5, 60_000
"""Seconds per option until a MILP is built and HiGHS looks at the clock for the first time, and the
size above which its presolve and clique search take longer for each (measured on one slow core:
31,000 options 0.5 s, 128,000 options 4.5 s)."""

FEWEST = 50
"""Options below which a MILP is not worth the time that is left."""

IMPORT_S = 0.5
"""Seconds to import Pyomo and HiGHS, once in a process."""

HIGHS = {"presolve": "off", "mip_allow_restart": False}
"""Options that halve the time of these models: dominated options are gone already, the first
relaxation says nearly all, and to presolve (again) costs more than it gives."""

PROOF = 1e-10
"""Relative gaps below this are rounding: the solution is the optimum."""


@dataclass(slots=True)
class Search:
    """The MILP of one round.

    Attributes
    ----------
    case, values
        The round, and (K,) what its options are worth.
    losses, dual
        (n,) by how much a plan with each of the case's options falls short of `dual`, the bound.
    deadline, gap, seed, reserve_s
        As for `ronda.solvers.decision.by_milp.allocate`.
    sure
        Whether the incumbent meets all of the model's constraints.
    """

    case: Case
    values: Floats
    losses: Floats
    dual: float
    deadline: Deadline
    gap: float
    seed: int
    reserve_s: float
    sure: bool

    def run(self, best: Choice) -> Choice:
        """Improve the incumbent by a MILP over all options, or over as many as time allows."""
        affordable = self._affordable()
        if affordable < min(FEWEST, len(self.losses)):
            return replace(best, stop=StopReason.TIME_LIMIT)
        chosen = np.isin(self.case.rows, best.chosen)  # so that the incumbent is in it
        matter, left_out = self._core(affordable)
        best = self._improve(best, restrict(self.case, matter | chosen), self.dual - left_out)
        if np.isfinite(left_out) and not best.closed(max(self.gap, PROOF)):
            return replace(best, stop=StopReason.TIME_LIMIT)
        return best

    def _core(self, size: int) -> tuple[NDArray[np.bool_], float]:
        """Return at most `size` options of least loss, and the least loss of the others."""
        if len(self.losses) <= size:
            return np.ones(len(self.losses), dtype=bool), np.inf
        # Of equal losses all or none.
        least = float(np.partition(self.losses, size)[size])
        return (self.losses < least) | (self.losses <= 0), least

    def _affordable(self) -> int:
        """Return how many options a MILP may have to be ready in time."""
        left_s = self.deadline.left() - self.reserve_s
        if "pyomo.environ" not in sys.modules:
            left_s -= IMPORT_S
        most = max(0.0, left_s) / SECONDS_PER_OPTION
        return int(min(most, (QUICK * most) ** 0.5 if most > QUICK else most, len(self.losses)))

    def _improve(self, best: Choice, core: Case, elsewhere: float) -> Choice:
        """Solve the MILP over some options; plans outside it are worth `elsewhere` at most."""
        # Pyomo takes a quarter of a second to import: rounds that need no MILP do not pay for it.
        from ronda.formulations.allocation import pyomo_model as allocation
        from ronda.solvers.exact import model as exact

        began = self.deadline.elapsed()
        model = allocation.build_case(core)
        allocation.warm_start(model, best.chosen)
        outcome = exact.solve(
            model,
            deadline=self.deadline,
            gap=self.gap,
            seed=self.seed,
            reserve_s=self.reserve_s,
            options=HIGHS,
            first=list(model.awake.values()) if core.sleeps else (),
        )
        done = replace(
            best,
            stop=StopReason.COMPLETE if outcome.stop is StopReason.GAP else outcome.stop,
            build_s=best.build_s + self.deadline.elapsed() - began - outcome.solve_s,
            solve_s=best.solve_s + outcome.solve_s,
            variables=max(best.variables, outcome.variables),
            constraints=max(best.constraints, outcome.constraints),
            nodes=best.nodes + outcome.nodes,
            solver="highs",
            message=outcome.message,
        )
        if outcome.stop is StopReason.INFEASIBLE:
            return replace(done, conflicts=tuple(exact.conflicts(model, deadline=self.deadline)))
        if outcome.bound is not None:
            bound = min(best.bound, max(outcome.bound * core.scale, elsewhere))
            done = replace(done, bound=max(bound, best.objective) if self.sure else bound)
        if outcome.x is None:
            return done
        if outcome.stop is not StopReason.TIME_LIMIT and (
            core.racks or model.component("whole_nodes") is not None
        ):
            # The prices of the dual know nothing of these constraints.
            duals = exact.shadow_prices(model, deadline=self.deadline)
            if duals is not None:
                done = replace(done, prices=allocation.prices(model, duals))
        chosen = allocation.chosen_rows(model)
        objective = float(self.values[chosen[chosen >= 0]].sum())
        if self.sure and objective <= best.objective:
            return done
        self.sure = True
        newer = [(t, worth * core.scale) for t, worth in outcome.incumbents]
        if best.incumbents:
            newer = [pair for pair in newer if pair[1] > best.objective]
        return replace(
            done,
            chosen=chosen,
            objective=objective,
            bound=max(done.bound, objective),
            incumbents=(*best.incumbents, *newer),
        )
