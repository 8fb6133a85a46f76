"""Functions that load the document named by an argument, and write a command's document."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ronda.cli.output import show
from ronda.instances.demand import Demand
from ronda.instances.errors import InputError, printable
from ronda.instances.files.json import fingerprint, read, write
from ronda.instances.files.packaged import document, load
from ronda.instances.files.storage import label
from ronda.instances.instance import Instance
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.instances.tables.table import Report
from ronda.instances.tasks.arrays import TaskRound
from ronda.instances.tasks.files import holds_arrays, read_tasks, write_tasks
from ronda.solvers.plugins import declared

if TYPE_CHECKING:
    from ronda.solvers.as_one import AsOne
    from ronda.solvers.decision.plan import Question
    from ronda.solvers.policies.optimising.milp import Milp

T = TypeVar("T")

Subject = Instance | Round | Demand
"""The kinds of documents that commands work on."""


def question(source: str) -> Subject:
    """Return the instance, the round or the demand series that an argument names."""
    found = read("-") if source == "-" else task_round(source) or document(source)
    if isinstance(found, Instance | Round | Demand):
        return found
    raise InputError(source, kind_of(found), "an instance, a round or a demand series")


def task_round(source: str) -> TaskRound | None:
    """Return the round of tasks in a file of arrays, by its name; None for any other source."""
    return read_tasks(source) if holds_arrays(source) else None


def demand(source: str) -> Demand:
    """Return the demand series that an argument names; refuse anything else."""
    found = question(source)
    takes = "run" if isinstance(found, Instance) else "solve"
    return _of(source, found, Demand, f"a demand series (ronda {takes} takes it)")


def subject(source: str) -> Instance | Round:
    """Return the instance or the round that an argument names."""
    found = read("-") if source == "-" else task_round(source) or load(source)
    if isinstance(found, Instance | Round):
        return found
    raise InputError(source, kind_of(found), "an instance or a round")


def round_(source: str) -> Round:
    """Return the round that an argument names; refuse anything else."""
    hint = f"a round (drive a whole horizon with: ronda run {source})"
    return _of(source, subject(source), Round, hint)


def instance(source: str) -> Instance:
    """Return the instance that an argument names; refuse anything else."""
    hint = f"an instance (decide a single round with: ronda solve {source})"
    return _of(source, subject(source), Instance, hint)


def schedule_of(path: Path, source: str, instance: Instance) -> Schedule:
    """Return the schedule of an instance with the name `source`; refuse another instance's."""
    found = _of(label(path), read(path), Schedule, f"a schedule of {source}")
    if found.fingerprint != fingerprint(instance):
        other = f"a schedule of another instance ({printable(found.instance)})"
        raise InputError(label(path), other, f"one of {source} as it is")
    return found


def _of(source: str, found: object, kind: type[T], expected: str) -> T:
    if isinstance(found, kind):
        return found
    raise InputError(source, kind_of(found), expected)


def kind_of(found: object) -> str:
    """Return the kind of a document, with an indefinite article."""
    words = {Demand: "demand series", TaskRound: "round of tasks"}
    name = words.get(type(found), type(found).__name__.lower())
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def written(made: Subject | TaskRound, out: Path, *, as_json: bool, **more: Any) -> None:
    """Write the document or the arrays that a command made, and report it with more fields."""
    if isinstance(made, TaskRound):
        write_tasks(made, out)
        kind, size = "tasks", {"tasks": made.tasks, "nodes": made.nodes}
    else:
        write(made, out)
        kind, more = type(made).__name__.lower(), {"fingerprint": fingerprint(made)} | more
        if isinstance(made, Demand):
            size = {"steps": len(made.needed), "nodes": max(made.total)}
        else:
            size = {"jobs": len(made.jobs), "gpus": made.cluster.gpus}
    fields = {"out": str(out), "name": made.name, "kind": kind} | size | more
    words = " on ".join(f"{n:,} {what.replace('gpus', 'GPUs')}" for what, n in size.items())
    told = kind_of(made).removesuffix(" of tasks")
    show(Report(fields, [f"{out}: {told} of {words}"]), as_json=as_json)


def answerer(name: str) -> Any:
    """Import the function that answers a question about a round, by its option; it loads HiGHS."""
    if (found := declared("answers").get(name)) is None:
        raise InputError(f"--{name}", "no ronda.questions", "a ronda with this package")
    return found.load(f"--{name}")


def milp_question(round: Round, spec: str, extra: str = "") -> tuple["AsOne", "Question", "Milp"]:
    """Return the round with arrays as single jobs, the question to ``milp(...)``, and the policy.

    The question is about this (valid) round, and the policy solves its model. `extra` is a file of
    rules, or empty.
    """
    from ronda.instances.clock import Deadline
    from ronda.solvers.as_one import AsOne
    from ronda.solvers.policies.optimising.milp import Milp
    from ronda.solvers.registry import policy
    from ronda.solvers.rules import with_rules

    made = with_rules(policy(spec), extra, "--with")
    if not isinstance(made, Milp):
        raise InputError("--policy", f"{made.name!r}, which has no model", "milp(...)")
    seen = AsOne(round)
    return seen, made.question(seen.round, Deadline(), seed=0), made
