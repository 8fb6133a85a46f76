"""``ronda instances check``: a check of a file, or of an answer against every rule."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from ronda.cli.command import taught
from ronda.cli.load import kind_of, question, subject, task_round
from ronda.cli.options import Source, json_option
from ronda.cli.output import show
from ronda.instances.check.checker import check
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint, read
from ronda.instances.files.packaged import entries
from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.validate import Document
from ronda.instances.schedule import Schedule
from ronda.instances.tables.table import Report, Table
from ronda.instances.tasks.arrays import TaskRound
from ronda.instances.tasks.check import check_tasks
from ronda.instances.tasks.files import read_task_plan
from ronda.instances.violation import Violation

MANY = 20
"""The most violations that are listed one by one."""


@taught(
    "check",
    "ronda instances check mine.json",
    "ronda instances check pollux-1 results/schedule.json.zst",
    "ronda instances check round.json plan.json",
    "ronda instances check tasks.npz plan.npz",
)
@click.argument("source", metavar="FILE", type=Source())
@click.argument("answer", metavar="[ANSWER]", type=click.Path(), required=False)
@json_option
def command(source: str, answer: str | None, as_json: bool) -> int:
    """Check FILE, or an ANSWER to it: a schedule for an instance, or a plan for a round.

    The checker shares no arithmetic with the solvers. The exit code is 1 if a rule is broken. Of
    more than twenty violations, each rule is shown with their number and the first of them; --json
    has all.

    A record of a log (--schedule of ronda instances convert) is an answer, too. The rules that it
    breaks are those that the site did not have, or that the instance does not know as they were.
    """
    found: Document | TaskRound
    broken: list[Violation] = []
    if (tasks := task_round(source)) is not None:
        found = tasks
        broken = [] if answer is None else check_tasks(tasks, read_task_plan(answer))
    elif answer is None:
        known = source in {entry.name for entry in entries()}
        found = question(source) if known else read(source)
    else:
        found = subject(source)
        broken = _check(found, source, answer)
    order = f"{source}: {kind_of(found)}, in order"
    said = order if answer is None else f"{answer}: keeps every rule of {source}"
    counts = Counter(each.code for each in broken)
    told = {"kind": "tasks"}
    if not isinstance(found, TaskRound):
        told = {"kind": type(found).__name__.lower(), "fingerprint": fingerprint(found)}
    fields = {
        "file": source,
        **told,
        "answer": answer,
        "violations": [*map(str, broken)],
        "counts": counts,
    }
    parts: list[Any] = [_by_rule(broken, counts)] if len(broken) > MANY else [*map(str, broken)]
    rules = f" of {len(counts)} rules" if len(counts) > 1 else ""
    parts.append(f"{len(broken):,} violations{rules}" if broken else said)
    return show(Report(fields, parts, code=1 if broken else 0), as_json=as_json)


def _by_rule(broken: Sequence[Violation], counts: Counter[str]) -> Table:
    """Return a table with the number of violations of each rule, and the first of them."""
    first = {each.code: each for each in reversed(broken)}
    rows = (
        {"rule": code, "violations": f"{n:,}", "the first": f"{one.where}: {one.message}"}
        for code, n in counts.most_common()
        for one in [first[code]]
    )
    return Table.of("", rows, left=(0, 2))


def _check(found: object, source: str, answer: str) -> list[Violation]:
    given = read(answer)
    if isinstance(found, Round) and isinstance(given, Plan):
        return check(found, given)
    if isinstance(found, Instance) and isinstance(given, Schedule):
        return check(found, given)
    wanted = "a schedule" if isinstance(found, Instance) else "a plan"
    raise InputError(answer, kind_of(given), f"{wanted}: {source} is {kind_of(found)}")
