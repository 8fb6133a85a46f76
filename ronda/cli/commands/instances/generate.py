"""``ronda instances generate``: seeded rounds and horizons of any size, severity and structure."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ronda.cli.command import Taught, TaughtGroup
from ronda.cli.load import written
from ronda.cli.options import SEED, file_option, force_option, json_option
from ronda.cli.output import refuse_existing
from ronda.instances import generate
from ronda.instances.errors import InputError


@click.group(
    name="generate",
    cls=TaughtGroup,
    examples=(
        "ronda instances generate round --jobs 64 --severity tight --out round.json",
        "ronda instances generate round --pods 2 --racks 2 --gangs 0.1 --out gangs.json",
        "ronda instances generate horizon --jobs 1000 --gpus 128 --seed 7 --out year.json.zst",
        "ronda instances generate horizon --types 2 --deadlines 0.5 --error 1 --out mixed.json",
        "ronda instances generate horizon --node-failures 1 --job-failures 0.4 --out breaks.json",
        "ronda instances generate sweep --trials 32 --gpus 4 --good 0.1 --out search.json",
        "ronda instances generate demand --days 28 --nodes 150 --seed 7 --out weeks.json.zst",
        "ronda instances generate ones --jobs 50 --seed 7 --out ones-50-7.json.zst",
        "ronda instances generate mixed --gpu-hours 240 --gpus 32 --out sweeps.json.zst",
    ),
)
def command() -> None:
    """Generate rounds, horizons, sweeps or demand series; the same arguments give the same file.

    Three kinds of parameters, independent of each other. Size: --jobs, --gpus. Severity: how hard
    the limits on GPUs, watts and joules bind. Structure: what the machine room and the jobs are
    like, plain by default (one rack, one pool, no deadline, a restart costs 30 s); turn one
    parameter at a time to see what a policy makes of it. A horizon can have faults as well.
    """


_severity = click.option(
    "--severity",
    type=click.Choice(tuple(generate.SEVERITIES)),
    default="balanced",
    show_default=True,
    help="How scarce GPUs, watts and joules are.",
)
_seed = click.option(
    "--seed", type=SEED, default=0, show_default=True, help="Same seed, same file."
)


_STRUCTURE = (
    ("types", int, "GPU types, a share of the nodes each: A100, V100 and T4."),
    ("partitions", int, "Virtual clusters, a share of the nodes each."),
    ("pods", int, "Pods; jobs are slower across racks and pods."),
    ("racks", int, "Racks in each pod; every pool has nodes in all of them."),
    ("deadlines", float, "Share of jobs with a deadline, 1.5 to 4 times their length alone."),
    ("gangs", float, "Share of jobs that run only on 1/2, 3/4 or all GPUs of a pool."),
    ("restart_s", float, "Seconds that a change or a resumption costs; try 0 to 600."),
    ("error", float, "How wrong estimates are: sd of log(estimate/truth); 0: sizes are known."),
)

_TRIALS = (
    ("good", float, "Share of trials that end at the least loss; one at least."),
    ("reports", int, "Of a whole trial: each time with its loss."),
    ("report_s", float, "Seconds of training from one report to the next."),
    ("restart_s", float, "Seconds that a preemption costs: to save and to load."),
    ("noise", float, "Standard deviation of a reported loss, relative to it."),
    ("diverging", float, "Share of trials, good ones spared, that lose their loss."),
    ("fusible", click.Choice(("", *generate.SHARED)), "How trials may share GPUs; '': not at all."),
)

_BREAKAGE = (
    ("node_failures", float, "Failures of a node a day; jobs lose what no checkpoint saved."),
    ("repair_s", float, "Mean seconds until a failed node is back."),
    ("drains", float, "Times a day that a node is drained for maintenance."),
    ("drain_s", float, "Seconds that maintenance takes."),
    ("notice_s", float, "Seconds ahead that it is known; no job starts there any more."),
    ("job_failures", float, "Mean number of times that a job fails by itself."),
    ("retries", int, "How often it may start again after that."),
    ("checkpoint_s", float, "Seconds of progress between checkpoints."),
    ("stragglers", float, "Share of the time that a node is slow."),
    ("slow_s", float, "Mean seconds that it stays slow."),
    ("slowest", float, "Its least speed; the speed is uniform from there to 1."),
    ("speed_error", float, "How wrong profiles are on speed: sd of log(true/profile)."),
    ("power_error", float, "Likewise on watts."),
    ("silences", float, "Share of the time in which reports of progress are lost."),
    ("silence_s", float, "Mean seconds of such a time."),
    ("report_s", float, "Seconds that a report of progress is late."),
    ("decision_s", float, "Seconds until a decision takes effect."),
)


def _fields(
    record: object, rows: Sequence[tuple[str, type | click.Choice[str], str]]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds an option for each field of a record to a command."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name, kind, text in reversed(rows):
            flag, default = f"--{name.replace('_', '-')}", getattr(record, name)
            option = click.option(flag, type=kind, default=default, show_default=True, help=text)
            function = option(function)
        return function

    return decorate


_structure = _fields(generate.Structure(), _STRUCTURE)
_breakage = _fields(generate.Breakage(), _BREAKAGE)
_trials = _fields(generate.Trials(), _TRIALS)


@command.command(name="round", cls=Taught)
@click.option("--jobs", type=click.IntRange(1), default=64, show_default=True, help="Live jobs.")
@click.option("--gpus", type=click.IntRange(1), help="Otherwise as many as the severity says.")
@_severity
@_structure
@_seed
@file_option
@force_option
@json_option
def round_(
    jobs: int,
    gpus: int | None,
    severity: str,
    seed: int,
    out: Path,
    force: bool,
    as_json: bool,
    **structure: Any,
) -> None:
    """Generate one round of elastic jobs, some of which run."""
    refuse_existing(out, force=force)
    shape = generate.Structure(**structure)
    written(generate.round(jobs, gpus, severity, seed, shape), out, as_json=as_json)


@command.command(name="horizon", cls=Taught)
@click.option("--jobs", type=click.IntRange(1), default=200, show_default=True, help="In all.")
@click.option("--gpus", type=click.IntRange(1), default=64, show_default=True, help="In all.")
@_severity
@_structure
@_breakage
@_seed
@file_option
@force_option
@json_option
def horizon(
    jobs: int,
    gpus: int,
    severity: str,
    seed: int,
    out: Path,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Generate an instance: elastic and rigid jobs that arrive at random.

    By default nothing breaks; what does is drawn ahead and listed in the file.
    """
    refuse_existing(out, force=force)
    _refuse_idle(given)
    breakage = generate.Breakage(**{name: given.pop(name) for name, *_ in _BREAKAGE})
    sound = generate.horizon(jobs, gpus, severity, seed, generate.Structure(**given))
    written(generate.broken(sound, breakage, seed), out, as_json=as_json)


_CAUSES = {
    "repair_s": ("node_failures",),
    "drain_s": ("drains",),
    "notice_s": ("drains",),
    "retries": ("job_failures",),
    "checkpoint_s": ("node_failures", "job_failures"),
    "slow_s": ("stragglers",),
    "slowest": ("stragglers",),
    "silence_s": ("silences",),
}
"""What breaks where a parameter of faults matters."""


def _refuse_idle(given: Mapping[str, Any]) -> None:
    """Refuse a parameter of faults that do not happen."""
    usual = generate.Breakage()
    for name, causes in _CAUSES.items():
        if given[name] != getattr(usual, name) and not any(given[cause] for cause in causes):
            words = " or ".join(f"--{cause.replace('_', '-')}" for cause in causes)
            raise InputError(f"--{name.replace('_', '-')}", "no such faults", f"{words} beside it")


@command.command(name="sweep", cls=Taught)
@click.option("--trials", type=click.IntRange(1), default=16, show_default=True, help="In all.")
@click.option("--gpus", type=click.IntRange(1), default=1, show_default=True, help="In all.")
@_trials
@_seed
@file_option
@force_option
@json_option
def sweep(
    trials: int, gpus: int, seed: int, out: Path, force: bool, as_json: bool, **given: Any
) -> None:
    """Generate a search for hyper-parameters: trials submitted at once, and their losses."""
    refuse_existing(out, force=force)
    written(generate.sweep(trials, gpus, seed, generate.Trials(**given)), out, as_json=as_json)


@command.command(name="ones", cls=Taught)
@click.option("--jobs", type=click.IntRange(1), default=50, show_default=True, help="In all.")
@click.option("--nodes", type=click.IntRange(1), default=16, show_default=True, help="Of 4 GPUs.")
@click.option(
    "--batch",
    type=click.Choice(("scaled", "base")),
    default="scaled",
    show_default=True,
    help="What users ask for: the batch of one GPU, or that for all their GPUs.",
)
@_seed
@file_option
@force_option
@json_option
def ones(
    jobs: int, nodes: int, batch: str, seed: int, out: Path, force: bool, as_json: bool
) -> None:
    """Generate an instance of the ONES workload (SC'21): short trainings, minutes apart at most."""
    from ronda.instances.traces.ones import ones_workload

    refuse_existing(out, force=force)
    made = ones_workload(jobs, seed, nodes=nodes, user_batch=batch)
    written(made, out, as_json=as_json)


@command.command(name="mixed", cls=Taught)
@click.option(
    "--gpu-hours", type=float, default=120.0, show_default=True, help="Of all jobs, each alone."
)
@click.option(
    "--gpus", type=click.IntRange(8), default=16, show_default=True, help="In nodes of 8."
)
@click.option(
    "--load", type=float, default=1.5, show_default=True, help="GPUs that arriving jobs keep busy."
)
@click.option(
    "--cap",
    type=float,
    default=0.8,
    show_default=True,
    help="Power cap: idle (0) to busy (1).",
)
@_seed
@file_option
@force_option
@json_option
def mixed(out: Path, force: bool, as_json: bool, **given: Any) -> None:
    """Generate sweeps of hyper-parameters, whose trials may share GPUs, among ordinary jobs."""
    refuse_existing(out, force=force)
    written(generate.mixed(**given), out, as_json=as_json)


@command.command(name="demand", cls=Taught)
@click.option("--days", type=click.IntRange(1), default=21, show_default=True, help="How many.")
@click.option("--nodes", type=click.IntRange(1), default=150, show_default=True, help="In all.")
@click.option("--load", type=float, default=0.82, show_default=True, help="Part of them in use.")
@click.option("--swing", type=float, default=0.08, show_default=True, help="Of a day, likewise.")
@click.option(
    "--weekend", type=float, default=0.1, show_default=True, help="How much less it needs."
)
@click.option("--bursts", type=float, default=2.0, show_default=True, help="A day.")
@_seed
@file_option
@force_option
@json_option
def demand(out: Path, force: bool, as_json: bool, **given: Any) -> None:
    """Generate a demand series, for ronda sleep: how many nodes jobs need, every ten minutes."""
    refuse_existing(out, force=force)
    written(generate.demand(**given), out, as_json=as_json)
