"""A plan's objective broken down by rule and by job: all parts add up to it.

A job's worth is the value of its option: its progress (which the pause of a restart lowers), the
loss of a stop that it is spared if it runs and goes on, less what its GPUs are reserved for, and
what terms of rules add. Soft limits cost their penalty for each unit of excess. What guarantees and
fair shares are worth is a term for each GPU less the penalty of the same name, and so counted once.
"""

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from ronda.formulations.objectives.by_name import objective_of, outlook_of, parameters, with_stops
from ronda.formulations.objectives.reservation import less_reserved, reservation
from ronda.formulations.options.table import rows_of
from ronda.instances.base import Floats, Record
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.instances.tables.table import Report, Table
from ronda.questions.explained import unit_of_worth
from ronda.solvers.as_one import AsOne
from ronda.solvers.contract import Capability, Policy
from ronda.solvers.decision.plan import Optimising, Question

ROWS = 40
"""The number of jobs that the table shows."""


class JobWorth(Record, frozen=True, kw_only=True):
    """A job's part of a plan's objective.

    Attributes
    ----------
    job, gpus
        Id of the job, where one in an array stands for the array, and GPUs of its option.
    worth
        The sum of the following parts, in units of the objective.
    progress, stop_spared
        Worth of what it does on its GPUs, and, for a running job, the loss of a stop.
    reserved
        Worth of its GPUs for a job that is to have them later; 0 or less.
    terms
        What rules add: by the row of a guarantee or fair share, or ``terms`` for all terms of the
        user's rules together.
    """

    job: str
    gpus: int
    worth: float
    progress: float
    stop_spared: float
    reserved: float
    terms: dict[str, float] = {}


class Breakdown(Record, frozen=True, kw_only=True):
    """The parts of a plan's objective, which add up to it.

    Attributes
    ----------
    objective, jobs
        The plan's objective: the worth of all `jobs`, less all `penalties` and `moves`; and the
        jobs that run, the largest worth first.
    terms, penalties
        What rules add to jobs, and the cost of the excess over soft limits, by row.
    moves
        Loss by moves of running jobs to other nodes.
    rest
        What is in the objective and in no part: 0 but for rounding, for the small price of nodes in
        use by which ``milp(placement=exact)`` breaks ties, and for options that begin only when
        nodes have woken.
    """

    objective: float
    jobs: tuple[JobWorth, ...]
    terms: dict[str, float]
    penalties: dict[str, float]
    moves: float
    rest: float


def breakdown(question: Question, plan: Plan) -> Breakdown:
    """Return the parts of a plan's objective for its question; arrays are single jobs in both."""
    table, values = question.table, question.values
    rows = rows_of(table, plan)
    stops, reserved = _by_kind(question)
    left, jobs = question.added + np.zeros(len(table)), list[JobWorth]()
    terms = {claim.name: np.zeros(len(table)) for claim in question.claims}
    for claim in question.claims:
        terms[claim.name][claim.rows] = claim.price * claim.amount
        left = left - terms[claim.name]
    terms["terms"] = left
    sums = defaultdict[str, float](float)
    for state, k in zip(table.jobs, rows.tolist(), strict=True):
        if k < 0:
            continue
        own = {n: float(x[k]) for n, x in terms.items() if abs(x[k]) > 1e-12 * abs(values[k])}
        worth, spared, less = float(values[k]), float(stops[k]), float(reserved[k])
        progress = worth - spared - less - sum(own.values())
        for name, amount in own.items():
            sums[name] += amount
        jobs.append(
            JobWorth(
                job=state.job.id,
                gpus=int(table.gpus[k]),
                worth=worth,
                progress=progress,
                stop_spared=spared,
                reserved=less,
                terms=own,
            )
        )
    limits, penalties = table.own, dict[str, float]()
    if limits is not None:
        over = limits.excess(rows[rows >= 0])
        costs = {limits.names[r]: float(over[r] * limits.penalty[r]) for r in limits.soft}
        penalties = {name: cost for name, cost in costs.items() if cost}
    objective, moves = plan.objective or 0.0, plan.details.move_loss
    told = sum(each.worth for each in jobs) - sum(penalties.values()) - moves
    return Breakdown(
        objective=objective,
        jobs=tuple(sorted(jobs, key=lambda each: -each.worth)),
        terms=dict(sums),
        penalties=penalties,
        moves=moves,
        rest=objective - told,
    )


def _by_kind(question: Question) -> tuple[Floats, Floats]:
    """Return the loss of a stop and what is reserved in the value of each option, (K,) each."""
    table, given = question.table, question.parameters
    seen = outlook_of(question.round, table, question.objective, given)
    form = objective_of(question.objective)
    chosen = parameters(question.objective, given)
    del chosen["horizon_s"]
    worth = form.value(seen, **chosen)
    kept = less_reserved(seen, worth, reservation(seen, worth))
    whole = with_stops(form, seen, worth, kept)
    base = question.values - question.added  # times the worth of classes
    factor = np.divide(base, whole, out=np.ones(len(table)), where=(whole != 0) & np.isfinite(base))
    return np.asarray((whole - kept) * factor), np.asarray((kept - worth) * factor)


def broken_down(round: Round, made: Policy, seed: int) -> Callable[[Report, Plan], Report]:
    """Return a function that adds the breakdown of a plan by a policy to its report.

    Raise InputError if the policy does not maximise a sum of values.
    """
    if not isinstance(made, Optimising) or Capability.ARRAYS in made.capabilities:
        expected = "a policy that maximises values: milp, prices or genetic"
        raise InputError("--breakdown", f"--policy {made.name}", expected)

    def told(report: Report, plan: Plan) -> Report:
        if plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE):
            return report
        seen = AsOne(round)
        found = breakdown(made.question(seen.round, Deadline(), seed), seen.shown(plan))
        return report.added(_by_rule(found, plan), _by_job(found), breakdown=found)

    return told


def _by_rule(found: Breakdown, plan: Plan) -> Table:
    jobs = found.jobs
    rows = {
        "progress of jobs": sum(each.progress for each in jobs),
        "stops that running jobs are spared": sum(each.stop_spared for each in jobs),
        "reserved for jobs that come later": sum(each.reserved for each in jobs),
    }
    names = [*found.terms, *(name for name in found.penalties if name not in found.terms)]
    for name in names:
        rows[name] = found.terms.get(name, 0.0) - found.penalties.get(name, 0.0)
    rows |= {"moves to other nodes": -found.moves, "ties between nodes, later starts": found.rest}
    least = 1e-9 * max(1e-300, abs(found.objective))
    told = {name: f"{worth:z.8g}" for name, worth in rows.items() if abs(worth) > least}
    told["objective"] = f"{found.objective:z.8g}"
    title = f"by rule ({unit_of_worth(plan.details.objective)})"
    return Table(title, ("part", "worth"), tuple(told.items()))


def _by_job(found: Breakdown) -> Table:
    kinds = ("progress", "stop_spared", "reserved")
    used = [kind for kind in kinds if any(getattr(each, kind) for each in found.jobs)]
    rows = []
    for each in found.jobs[:ROWS]:
        row = {"job": each.job, "GPUs": f"{each.gpus}", "worth": f"{each.worth:z.6g}"}
        row |= {kind.replace("_", " "): f"{getattr(each, kind):z.6g}" for kind in used}
        row |= {"rules": f"{sum(each.terms.values()):z.6g}"} if found.terms else {}
        rows.append(row)
    hidden = found.jobs[ROWS:]
    more = f"… and {len(hidden):,} more jobs, worth {sum(each.worth for each in hidden):.6g}"
    return Table.of("by job", rows, [more] * bool(hidden))
