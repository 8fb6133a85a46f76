"""``ronda instances check``: a check of a file, or of an answer against every rule."""

import click

from ronda.cli.command import taught
from ronda.cli.load import kind_of, question, subject
from ronda.cli.options import Source, json_option
from ronda.cli.output import show
from ronda.instances.check.checker import check
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint, read
from ronda.instances.files.packaged import entries
from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.instances.tables.table import Report


@taught(
    "check",
    "ronda instances check mine.json",
    "ronda instances check pollux-1 results/schedule.json.zst",
    "ronda instances check round.json plan.json",
)
@click.argument("source", metavar="FILE", type=Source())
@click.argument("answer", metavar="[ANSWER]", type=click.Path(), required=False)
@json_option
def command(source: str, answer: str | None, as_json: bool) -> int:
    """Check FILE, or an ANSWER to it: a schedule for an instance, or a plan for a round.

    The checker shares no arithmetic with the solvers. The exit code is 1 if a rule is broken.
    """
    if answer is None:
        known = source in {entry.name for entry in entries()}
        found = question(source) if known else read(source)
        violations: list[str] = []
        said = f"{source}: {kind_of(found)}, in order"
    else:
        found = subject(source)
        violations = [str(violation) for violation in _check(found, source, answer)]
        said = f"{answer}: keeps every rule of {source}"
    fields = {
        "file": source,
        "kind": type(found).__name__.lower(),
        "fingerprint": fingerprint(found),
        "answer": answer,
        "violations": violations,
    }
    words = [*violations, f"{len(violations)} violations" if violations else said]
    return show(Report(fields, words, code=1 if violations else 0), as_json=as_json)


def _check(found: object, source: str, answer: str) -> list[object]:
    given = read(answer)
    if isinstance(found, Round) and isinstance(given, Plan):
        return list(check(found, given))
    if isinstance(found, Instance) and isinstance(given, Schedule):
        return list(check(found, given))
    wanted = "a schedule" if isinstance(found, Instance) else "a plan"
    raise InputError(answer, kind_of(given), f"{wanted}: {source} is {kind_of(found)}")
