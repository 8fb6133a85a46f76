"""``ronda solve``: decide one round."""

import sys
from contextlib import nullcontext
from pathlib import Path

import click

from ronda.cli.command import taught
from ronda.cli.load import answerer, task_round
from ronda.cli.load import round_ as load_round
from ronda.cli.options import (
    Parsed,
    either_plan_options,
    policy_options,
    round_argument,
    seed_option,
    time_limit_option,
    was_given,
)
from ronda.cli.output import refuse_existing, show, tell_json
from ronda.cli.progress import waiting
from ronda.horizon.solve import solve_valid
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.files.canonical import encode
from ronda.instances.files.json import write
from ronda.instances.files.storage import packer
from ronda.instances.tasks.arrays import TaskRound
from ronda.instances.tasks.files import is_npz, write_task_plan
from ronda.solvers.registry import policy as make_policy
from ronda.solvers.rules import with_rules

NOT_OF_TASKS = (
    *("policy", "extra", "explain", "not_there", "breakdown", "certificate", "alternatives"),
    *("within", "verbose"),
)
"""The parameters that are of rounds of jobs alone."""


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and 1 <= int(text) <= 1000 else None


def _share(text: str) -> float | None:
    return share if 0 <= (share := float(text)) <= 1 else None


@taught(
    "solve",
    "ronda solve round.json --policy milp --time-limit 1",
    "ronda solve round.json --policy 'genetic(generations=50)' --seed 3 --out plan.json",
    "ronda solve round.json --policy prices --explain j03",
    "ronda solve round.json --policy 'milp(highs.mip_heuristic_effort=0.2)' --verbose",
    "ronda solve round.json --with rules.py",
    "ronda solve tasks.npz --time-limit 30 --out plan.npz",
    "ronda solve - < round.json > plan.json",
)
@round_argument
@policy_options
@time_limit_option(
    60.0, "For all of it: start-up, reading, building, solving, answering. The clock is running."
)
@seed_option
@click.option(
    "--explain",
    multiple=True,
    metavar="JOB",
    help="Say by prices why a job got what it got (again for more jobs).",
)
@click.option(
    "--not",
    "not_there",
    metavar="PLACE",
    help="With --explain: say what it would cost if the job were there: on a GPU type (a100), a "
    "number of GPUs (8), both (a100:8), or in a partition.",
)
@click.option(
    "--breakdown",
    is_flag=True,
    help="Break the objective down by rule and by job; all parts add up to it.",
)
@click.option(
    "--certificate",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --out: write what proves, for 'ronda verify', how far the plan is from the best.",
)
@click.option(
    "--alternatives",
    type=Parsed("n", "a whole number from 1 to 1000", _number),
    help="Find the N best different plans instead of one (milp, cp-sat, sia-like): at least one "
    "job has another option. With --out plan.json the second is plan-2.json, and so on.",
)
@click.option(
    "--within",
    type=Parsed("share", "a share from 0 to 1", _share),
    default=0.01,
    help="By which share of the best plan's objective alternatives may fall short.",
)
@click.option("--verbose", is_flag=True, help="Show the solver's own log on stderr as it runs.")
@either_plan_options
@click.pass_obj
def command(
    entered: float,
    source: str,
    policy: str,
    extra: str,
    time_limit: float,
    seed: int,
    explain: tuple[str, ...],
    not_there: str | None,
    breakdown: bool,
    certificate: Path | None,
    alternatives: int | None,
    within: float,
    verbose: bool,
    out: Path | None,
    as_json: bool,
) -> int:
    """Decide one ROUND: which jobs run now, on which GPUs, and how fast.

    Objectives are comparable only between plans for the same ROUND: the default objective, rank, is
    scaled by all jobs and GPUs of the round.

    A round of many tasks on nodes (.npz or .parquet) is decided by patterns of nodes.

    ROUND is a file, a packaged round, or - for JSON on stdin. With -, the plan goes to stdout as
    one line of JSON, so that any program can use ronda as its solver.
    """
    if (tasks := task_round(source)) is not None:
        if any(map(was_given, NOT_OF_TASKS)):
            expected = "--time-limit, --seed, --out, --force and --json alone"
            raise InputError(source, "a round of tasks, which patterns place", expected)
        return _solve_tasks(
            source, tasks, Deadline(time_limit, started=entered), seed, out, as_json
        )
    if out is not None:
        packer(out)  # refuses the names of plans of tasks
    round_ = load_round(source)
    made = with_rules(make_policy(policy), extra, "--with")
    adding = [answerer("explain")(round_, made, explain)] if explain else []
    adding += [answerer("breakdown")(round_, made, seed)] if breakdown else []
    if certificate is not None:
        if out is None or alternatives is not None:
            raise InputError("--certificate", "no single --out", "a file for the plan as well")
        refuse_existing(certificate)
        adding.append(answerer("certificate")(round_, made, source, certificate))
    if not_there is not None:
        if not explain:
            raise InputError("--not", "no job", "one by --explain")
        adding.append(answerer("not")(round_, made, explain, not_there, seed))
    deadline = Deadline(time_limit, started=entered)
    log = sys.stderr if verbose else None
    if alternatives is not None:
        if explain or breakdown:
            expected = "one of them: alternatives have no prices"
            given = "--explain" if explain else "--breakdown"
            raise InputError(given, "--alternatives", expected)
        names, ask = _names(out, alternatives), answerer("alternatives")
        plans, told = ask(round_, made, alternatives, within, seed, deadline, log)
        for name, each in zip(names, plans, strict=False):
            write(each, name)
        if told is not None:
            return show(told, as_json=as_json)
    with nullcontext() if verbose else waiting(f"{source}: {made.name}", time_limit):
        plan = solve_valid(round_, made, deadline=deadline, seed=seed, log=log)
    if out is not None:
        write(plan, out)
    from ronda.solvers.plan_report import plan_report  # loads NumPy

    report = plan_report(source, round_, plan, made, seed=seed, elapsed_s=deadline.elapsed())
    for add in adding:
        report = add(report, plan)
    if not adding and source == "-" and out is None and not as_json:
        tell_json(encode(plan))  # as `--out` would write it
        report = report._replace(parts=())
    return show(report, as_json=as_json)


def _solve_tasks(
    source: str, tasks: TaskRound, deadline: Deadline, seed: int, out: Path | None, as_json: bool
) -> int:
    from ronda.solvers.patterns.answer import solve_tasks  # loads HiGHS
    from ronda.solvers.patterns.report import task_plan_report

    if out is not None:
        is_npz(out)  # refuses the names of plans of jobs
    with waiting(f"{source}: patterns", deadline.limit_s):
        plan = solve_tasks(tasks, deadline=deadline, seed=seed)
    if out is not None:
        write_task_plan(plan, out)
    return show(task_plan_report(tasks, plan, deadline.elapsed()), as_json=as_json)


def _names(out: Path | None, number: int) -> list[Path]:
    """Return the files of `number` plans, ``plan.json``, ``plan-2.json``, ...; none without `out`.

    Raise InputError before any work if one of the others exists.
    """
    if out is None:
        return []
    stem, dot, suffix = out.name.partition(".json")
    others = [out.with_name(f"{stem}-{n}{dot}{suffix}") for n in range(2, number + 1)]
    for each in others:
        refuse_existing(each)
    return [out, *others]
