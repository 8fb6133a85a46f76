"""The disruption budget: how many GPUs, and how many jobs, a decision may stop, move or restart.

With h_j the GPUs that a running job j holds, the GPUs of jobs that do not go on are Σ_j h_j (1 −
x_stay(j)). So the row of a budget B is −Σ_j h_j x_stay(j) ≤ B − Σ_j h_j. A job that scales without
a checkpoint goes on with any of its options. Jobs that must run have no part in it, and neither
have jobs on nodes that leave. Placement spends what the options leave of the same budget
(`StatedRows.moves`).
"""

from collections.abc import Iterable, Iterator

import numpy as np

from ronda.formulations.options.stated_rows import Sheet
from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats
from ronda.instances.check.plan import can_all_go_on
from ronda.instances.job import Allocation, JobState
from ronda.instances.round import Round
from ronda.instances.site import Site
from ronda.instances.violation import ROUNDING


def stopped(round: Round, table: OptionTable, values: Floats, sheet: Sheet) -> None:
    """State −Σ_j h_j x_stay(j) ≤ B − Σ_j h_j for GPUs, or for jobs (h_j = 1), in all and by tenant.

    The rows are ``stopped`` and ``stopped_jobs``, with the tenant in brackets. No budget holds in a
    round whose limits on power or energy, or whose nodes, do not let all that runs go on.
    """
    budgets = list(_budgets(round.site))
    if not budgets or not can_all_go_on(round):
        return
    gone, current = leaving(round), np.flatnonzero(table.current & ~table.must_run[table.job])
    able = [k for k in current.tolist() if counts(table.jobs[int(table.job[k])], gone)]
    for name, tenants, unit, most in budgets:
        stay, move = list[tuple[int, float]](), list[tuple[int, float]]()
        whole = 0.0
        for k in able:
            j = int(table.job[k])
            state = table.jobs[j]
            if tenants is not None and state.job.tenant not in tenants:
                continue
            held = float(table.gpus[k] / table.width[k]) if unit == "gpus" else 1.0
            whole += held
            if scales(round, state):
                stay += [(row, -held) for row in range(table.start[j], table.start[j + 1])]
            else:
                stay.append((k, -held))
                move.append((k, held))
        if whole > most:
            rows, amounts = np.array(stay).T
            moves = np.array(move).reshape(-1, 2).T
            sheet.state(
                name,
                rows.astype(int),
                amounts,
                most - whole,
                moves=(moves[0].astype(int), moves[1]),
            )


def _budgets(site: Site) -> Iterator[tuple[str, set[str] | None, str, int]]:
    """Yield the row, the tenants (None: all), the unit and the size of each budget."""
    whole = [("", None, site.disruption)]
    own = [(f"[{t.name}]", _below(site, t.name), t.disruption) for t in site.tenants]
    for suffix, tenants, budget in (*whole, *own):
        if budget.gpus is not None:
            yield f"stopped{suffix}", tenants, "gpus", budget.gpus
        if budget.jobs is not None:
            yield f"stopped_jobs{suffix}", tenants, "jobs", budget.jobs


def _below(site: Site, name: str) -> set[str]:
    """Return a tenant with all below it; tenants come after their parents."""
    found = {name}
    for tenant in site.tenants:
        if tenant.parent in found:
            found.add(tenant.name)
    return found


def leaving(round: Round) -> set[int]:
    """Return the nodes that go out of service, or have GPUs out of service."""
    return {node for node, _ in (*round.leaving, *round.cluster.out)}


def counts(state: JobState, gone: set[int]) -> bool:
    """Return whether it counts if a running job does not go on: it is on no node that leaves."""
    held = state.allocation
    return held is not None and not (gone and any(node in gone for node, _ in held.placement))


def scales(round: Round, state: JobState) -> bool:
    """Return whether a job changes its allocation without a checkpoint while it runs."""
    return (state.job.costs or round.costs).scale_s is not None


def goes_on(round: Round, state: JobState, given: Allocation | None) -> bool:
    """Return whether a running job goes on, for the budget."""
    held = state.allocation
    if held is None or given is None:
        return held is None
    return held.goes_on(given) or held.narrows_to(given) or scales(round, state)


class Purse:
    """What is left of all budgets of a round while a policy stops, moves and restarts jobs."""

    def __init__(self, round: Round) -> None:
        self._budgets = list(_budgets(round.site))
        if self._budgets and not can_all_go_on(round):
            self._budgets = []
        self._left: Floats = np.array([most for *_, most in self._budgets], dtype=float)
        self._gone = leaving(round)

    def __bool__(self) -> bool:
        """Return whether there is any budget."""
        return bool(self._budgets)

    def cost(self, state: JobState) -> Floats:
        """Return what each budget loses if a running job does not go on."""
        held = state.allocation
        if held is None or not counts(state, self._gone):
            return np.zeros(len(self._budgets))
        gpus, tenant = held.option.own_gpus, state.job.tenant
        return np.array(
            [
                (gpus if unit == "gpus" else 1.0) * (tenants is None or tenant in tenants)
                for _, tenants, unit, _ in self._budgets
            ]
        )

    def allows(self, states: Iterable[JobState]) -> bool:
        """Return whether all budgets allow that running jobs do not go on."""
        return bool((self._after(states) >= -ROUNDING).all())

    def spend(self, states: Iterable[JobState]) -> bool:
        """Let running jobs not go on if all budgets allow it; return whether they do."""
        left = self._after(states)
        if (left < -ROUNDING).any():
            return False
        self._left = left
        return True

    def _after(self, states: Iterable[JobState]) -> Floats:
        return self._left - sum(map(self.cost, states), np.zeros(len(self._budgets)))
