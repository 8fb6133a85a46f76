"""The report of a pass: what is done, or would be, with the reasons and the commands."""

from typing import Any

from ronda.hosts.slurm.controller import Pass
from ronda.instances.plan import SolutionStatus
from ronda.instances.tables.table import Report, Table

SHOWN = 12
"""The most jobs that a row names."""


def pass_report(made: Pass, *, act: bool) -> Report:
    """Return the report of a pass."""
    model, plan = made.model, made.plan
    away = {each.command.words: each.why for each in made.refused}
    late = {command.words for command in made.late}
    answers = {command.words: answer for command, answer in made.answers}

    def outcome(words: tuple[str, ...]) -> str:
        if words in away:
            return f"not given: {away[words]}"
        if words in late:
            return "later: enough in this minute"
        if words in answers:
            return f"refused: {answers[words].said}" if answers[words].status else "done"
        return "left" if act else "would be given"

    rows, lines, told = [], list[str](), list[dict[str, Any]]()
    for step in made.steps:
        names = ", ".join(step.names[:SHOWN])
        more = f" and {len(step.names) - SHOWN} more" if len(step.names) > SHOWN else ""
        outcomes = [outcome(command.words) for command in step.commands]
        rows.append(
            {
                "what": step.what,
                "job or node": names + more,
                "GPUs": "" if step.gpus is None else str(step.gpus),
                "on": ", ".join(step.on),
                "why": step.why,
                "outcome": "; ".join(dict.fromkeys(outcomes)) or "nothing to do",
            }
        )
        lines += [command.line for command in step.commands if command.words not in away]
        told.append(
            {
                "what": step.what,
                "names": list(step.names),
                "gpus": step.gpus,
                "on": list(step.on),
                "why": step.why,
                "commands": [{"line": c.line, "outcome": outcome(c.words)} for c in step.commands],
            }
        )
    touched = sum(any(terms) for terms in model.terms.values())
    runs = sum(bool(job.on) for job in model.jobs.values())
    words = (
        f"{len(model.jobs)} jobs, {runs} of them run; ronda may touch {touched}. "
        f"{plan.policy} lets {len(plan.allocations)} run."
    )
    parts: list[str | Table] = [words]
    if not touched:
        parts.append("No job is in its scope: none is of what is named, or has opted in.")
    if plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE):
        parts.append(f"The policy has no plan, so what runs goes on: {plan.record.message}.")
    parts.append(Table.of("", rows, left=(0, 1, 3, 4, 5)) if rows else "Nothing is to be changed.")
    parts += lines
    fields = {
        "now_s": model.found.now_s,
        "jobs": len(model.jobs),
        "running": runs,
        "in_scope": touched,
        "policy": plan.policy,
        "status": plan.status.value,
        "act": act,
        "steps": told,
    }
    return Report(fields, parts, [*model.found.noted.lines(), *model.noted.lines()])
