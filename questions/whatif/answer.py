"""What if: the plan of a round with some changes, against the plan of the round as it is."""

from collections.abc import Callable, Sequence
from math import nan
from typing import TYPE_CHECKING, Annotated

from ronda.horizon.solve import ROUND
from ronda.instances.arguments import checked
from ronda.instances.base import Index, Positive, Record
from ronda.instances.errors import InputError, RondaError
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.tables.frames import frame
from ronda.questions.whatif.changes import Change, NewJob
from ronda.questions.whatif.frozen import Judged, freeze
from ronda.questions.whatif.sizes import Size, sizes_of
from ronda.solvers.contract import Policy
from ronda.solvers.registry import as_policy

if TYPE_CHECKING:
    from pandas import DataFrame

Progress = Callable[[float, str], None]

TOGETHER = "all together"


class Shift(Record, frozen=True, kw_only=True):
    """What a change means for a job.

    Attributes
    ----------
    job
        Its id.
    before, after
        What it runs on; None: it waits.
    gain
        In units of the objective; below 0: it loses.
    """

    job: str
    before: Allocation | None
    after: Allocation | None
    gain: float


class Changed(Record, frozen=True, kw_only=True):
    """A changed round and its plan.

    Attributes
    ----------
    change
        What was changed, in words.
    round, plan
        The round with the change, and its plan.
    objective
        What the plan is worth on the scale of the round as it is.
    found
        The difference to the plan of the round as it is.
    foretold
        The difference that the prices of that plan let expect, at most but for `WhatIf.slack`.
    shifts
        Jobs of both rounds that gain or lose, who gains most first.
    why
        Why no plan keeps the change; "" if one does. Figures are NaN then, and nobody gains.
    """

    change: str
    round: Round
    plan: Plan
    objective: float
    found: float
    foretold: float
    shifts: tuple[Shift, ...]
    why: str = ""


class WhatIf(Record, frozen=True, kw_only=True):
    """What some changes would do.

    Attributes
    ----------
    base
        The plan of the round as it is.
    objective
        What it is worth.
    slack
        By how much the bound of its prices is above that: no outcome's `found` is more than its
        `foretold` and this.
    outcomes
        What each change does alone, and at the end, if they are several, all of them together.
    sizes
        By new job, what each of its sizes does alone.
    """

    base: Plan
    objective: float
    slack: float
    outcomes: tuple[Changed, ...]
    sizes: dict[str, tuple[Size, ...]]

    def to_frame(self) -> "DataFrame":
        """Return a data frame of pandas: a row for each outcome."""
        fields = ("change", "objective", "found", "foretold", "why")
        return frame({n: [getattr(each, n) for each in self.outcomes] for n in fields})


@checked
def whatif(
    round: Annotated[Round, ROUND],
    changes: Sequence[Change],
    *,
    policy: Policy | str = "prices",
    seed: Index = 0,
    time_limit_s: Positive | None = 10.0,
    initial: Plan | None = None,
    progress: Progress | None = None,
) -> WhatIf:
    """Return what changes to a round would do to its plan: each alone, and all of them together.

    Values are those of the round as it is, whatever the change, so that objectives compare: more
    GPUs, a higher cap or another job never lose anything.

    Parameters
    ----------
    changes
        At least one of those in `ronda.questions.whatif`.
    policy
        One that chooses by values, such as ``prices``, ``milp`` and ``genetic``.
    time_limit_s
        For each plan.
    initial
        The plan before, for the ages of jobs.
    progress
        Called with the share of the plans that are made, and which one comes next.

    Raises
    ------
    InputError
        If a change is not possible, or the policy does not choose by values.
    RondaError
        If there is no plan for the round as it is.
    """
    if not changes:
        raise InputError("changes", "none", "at least one, such as Gpus('A100', 8)")
    valid, told = validate(round), progress or (lambda share, what: None)
    rounds = [(str(change), _changed(valid, change)) for change in changes]
    made = freeze(as_policy(policy), valid, seed, time_limit_s, initial)
    for change, (_, changed) in zip(changes, rounds, strict=True):
        if isinstance(change, NewJob):
            made = made.knowing(changed)
    if len(changes) > 1:
        every = valid
        for change in changes:
            every = _changed(every, change)
        rounds.append((TOGETHER, every))
    made = made.knowing(every if len(changes) > 1 else rounds[0][1])
    steps = len(rounds) + 1
    told(0.0, "the round as it is")
    base = made.judged(valid, initial)
    if base.plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE):
        why = base.plan.record.message or base.plan.stop.value
        raise RondaError(f"{base.plan.policy}: no plan for the round as it is: {why}")
    outcomes = []
    for k, (words, changed) in enumerate(rounds):
        told((k + 1) / steps, words)
        outcomes.append(_outcome(words, made.judged(changed, base.plan, base), base))
    sizes = {
        change.job.id: sizes_of(made, changed, change.job, base, told)
        for change, (_, changed) in zip(changes, rounds[: len(changes)], strict=True)
        if isinstance(change, NewJob)
    }
    return WhatIf(
        base=base.plan,
        objective=base.objective,
        slack=base.bound - base.objective,
        outcomes=tuple(outcomes),
        sizes=sizes,
    )


def _changed(round: Round, change: Change) -> Round:
    """Return a changed round, which is valid."""
    return validate(change.apply(round), str(change))


def _outcome(words: str, found: Judged, base: Judged) -> Changed:
    why = _impossible(found.plan, base.plan)
    return Changed(
        change=words,
        round=found.round,
        plan=found.plan,
        objective=nan if why else found.objective,
        found=nan if why else found.objective - base.objective,
        foretold=nan if why else found.bound - base.bound,
        shifts=() if why else _shifts(base, found),
        why=why,
    )


def _impossible(plan: Plan, base: Plan) -> str:
    """Return which limits give way that did not before, or why there is no plan; "" if neither."""
    known = {conflict.message.partition(", which")[0] for conflict in base.details.conflicts}
    said = [conflict.message for conflict in plan.details.conflicts]
    if new := [words for words in said if words.partition(", which")[0] not in known]:
        return "; ".join(new)
    none = plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE)
    return f"no plan of {plan.policy}: {plan.record.message}" if none else ""


def _shifts(base: Judged, found: Judged) -> tuple[Shift, ...]:
    """Return the jobs of both rounds that gain or lose more than rounding."""
    least = 1e-9 * max(map(abs, base.worth.values()), default=0.0)
    shifts = [
        Shift(
            job=job,
            before=base.plan.allocations.get(job),
            after=found.plan.allocations.get(job),
            gain=found.worth[job] - before,
        )
        for job, before in base.worth.items()
        if job in found.worth and abs(found.worth[job] - before) > least
    ]
    return tuple(sorted(shifts, key=lambda shift: -shift.gain))
