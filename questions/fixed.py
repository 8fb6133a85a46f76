"""The smallest changes that make a round feasible, in words."""

from collections.abc import Sequence

from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.plan import Conflict
from ronda.instances.round import Round
from ronda.instances.tables.table import Report, Table
from ronda.questions.fix import Fix, fixes
from ronda.solvers.decision.plan import Optimising, Question

FEW = 8
"""The most jobs that a table names."""


def fixed(
    report: Report,
    round: Round,
    policy: Optimising,
    question: Question,
    conflicts: Sequence[Conflict],
    deadline: Deadline,
) -> Report:
    """Return the report on a round's conflicts with the smallest change of each kind.

    If the time is over before all kinds are tried, the exit code is 3.
    """
    found, notes, code = list[Fix](), list(report.notes), report.code
    try:
        with ending(deadline.end):
            found.extend(fixes(round, policy, question, conflicts, deadline))
    except OutOfTimeError:
        notes.append("warning: the time was over before every kind of change was tried")
        code = 3
    fields = {**report.fields, "fixes": found}
    helps = [fix for fix in found if fix.more is not None]
    words = "Each of these changes is enough by itself, and no smaller one of its kind is:"
    parts: list[str | Table] = [*report.parts]
    if helps:
        parts += [words, Table.of("", [_row(fix) for fix in helps], left=(0,))]
    elif code != 3:
        parts.append("No change of one kind is enough by itself.")
    if nothing := [_what(fix) for fix in found if fix.more is None]:
        parts.append(f"Not enough by itself, however large: {'; '.join(nothing)}.")
    return report._replace(fields=fields, parts=parts, notes=notes, code=code)


def _row(fix: Fix) -> dict[str, str]:
    more = fix.more or 0.0
    few = [*fix.jobs[:FEW], *["…"] * (len(fix.jobs) > FEW)]
    told = f"{more:+,.6g} {fix.unit}".rstrip()
    limit = "" if fix.limit is None else f"{fix.limit:,.6g} {fix.unit}".rstrip()
    if fix.kind == "jobs":
        told, limit = f"{more:g}", ", ".join(few)
    return {
        "change": _what(fix),
        "least": told,
        "to": limit,
        "on nodes": "a plan was checked" if fix.checked else "no plan was found",
    }


def _what(fix: Fix) -> str:
    return {
        "gpus": f"GPUs of {fix.of}",
        "power": "the power cap",
        "rack": f"the power cap of rack {fix.of}",
        "energy": "the energy budget",
        "rule": f"the limit {fix.of}",
        "outage": f"the time at which nodes leave, now {fix.of} s",
        "jobs": "jobs that may not be stopped, given up",
    }[fix.kind]
