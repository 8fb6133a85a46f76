"""What if: the plan of a changed round, compared with the plan of the unchanged round."""

from collections.abc import Callable, Sequence
from math import nan
from typing import TYPE_CHECKING, Annotated

from ronda.horizon.solve import ROUND
from ronda.instances.arguments import checked
from ronda.instances.base import Index, Positive, Record
from ronda.instances.errors import InputError
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
EFFECT = ("change", "objective", "found", "foretold")


class Shift(Record, frozen=True, kw_only=True):
    """The effect of a change on a job: its gain, in units of the objective, negative for a loss.

    Its allocations `before` and `after` the change are None where it waits.
    """

    job: str
    before: Allocation | None
    after: Allocation | None
    gain: float


class Changed(Record, frozen=True, kw_only=True):
    """The outcome of a change: the changed round, its plan, and its gains and losses.

    Attributes
    ----------
    change, round, plan
        The change in words, the changed round, and its plan.
    objective, found
        Worth of the plan on the scale of the unchanged round, and how much more that is than the
        worth of the plan of that round.
    foretold
        Difference predicted by the prices of that plan; `found` exceeds it by at most
        `WhatIf.slack`.
    shifts
        Jobs of both rounds that gain or lose, the largest gain first.
    why
        Reason why no plan allows the change, or "". With a reason, figures are NaN and no job
        gains.
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
    """The effects of some changes on a round.

    Attributes
    ----------
    base, objective
        Plan of the unchanged round, and its worth.
    slack
        Excess of the bound by its prices over that worth. The `found` of an outcome never exceeds
        its `foretold` by more than this slack.
    outcomes
        Effect of each change alone and, as the last entry, of several changes together.
    sizes
        Effects of each size of a new job alone, keyed by job.
    """

    base: Plan
    objective: float
    slack: float
    outcomes: tuple[Changed, ...]
    sizes: dict[str, tuple[Size, ...]]

    def to_frame(self) -> "DataFrame":
        """Return a pandas data frame with one row per outcome."""
        return frame({n: [getattr(each, n) for each in self.outcomes] for n in (*EFFECT, "why")})


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
    """Return the effects of changes on the plan of a round, each alone and all together.

    Options keep the values of the unchanged round, so that objectives can be compared: more GPUs, a
    higher cap or another job never lose anything.

    Parameters
    ----------
    changes
        At least one change from `ronda.questions.whatif`.
    policy, time_limit_s
        Policy that chooses by values, such as ``prices``, ``milp`` or ``genetic``, and the time
        limit for each plan.
    initial
        Previous plan, which holds the ages of jobs.
    progress
        Function that is called with the share of finished plans and the name of the next one.

    Raises
    ------
    InputError
        If a change is impossible, or the policy does not choose by values.
    RondaError
        If there is no plan for the unchanged round.
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
    base = made.as_it_is(valid, initial)
    outcomes = []
    for k, (words, changed) in enumerate(rounds):
        told((k + 1) / steps, words)
        found = made.judged(changed, base.plan, base)
        why = _impossible(found.plan, base.plan)
        outcomes.append(
            Changed(
                change=words,
                round=found.round,
                plan=found.plan,
                objective=nan if why else found.objective,
                found=nan if why else found.objective - base.objective,
                foretold=nan if why else found.bound - base.bound,
                shifts=() if why else _shifts(base, found),
                why=why,
            )
        )
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
    return validate(change.apply(round), str(change))


def _impossible(plan: Plan, base: Plan) -> str:
    """Return which limits are newly broken, or why there is no plan; "" if neither applies."""
    known = {conflict.message.partition(", which")[0] for conflict in base.details.conflicts}
    said = [conflict.message for conflict in plan.details.conflicts]
    if new := [words for words in said if words.partition(", which")[0] not in known]:
        return "; ".join(new)
    none = plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE)
    return f"no plan of {plan.policy}: {plan.record.message}" if none else ""


def _shifts(base: Judged, found: Judged) -> tuple[Shift, ...]:
    """Return the jobs of both rounds that gain or lose more than a rounding error."""
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
