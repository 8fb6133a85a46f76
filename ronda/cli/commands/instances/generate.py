"""``ronda instances generate``: seeded rounds and horizons of any size, severity and structure."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ronda.cli.command import Taught, TaughtGroup
from ronda.cli.load import written
from ronda.cli.options import SEED, file_option, force_option, json_option
from ronda.cli.output import refuse_existing
from ronda.instances import generate


@click.group(
    name="generate",
    cls=TaughtGroup,
    examples=(
        "ronda instances generate round --jobs 64 --severity tight --out round.json",
        "ronda instances generate round --pods 2 --racks 2 --gangs 0.1 --out gangs.json",
        "ronda instances generate horizon --jobs 1000 --gpus 128 --seed 7 --out year.json.zst",
        "ronda instances generate horizon --types 2 --deadlines 0.5 --error 1 --out mixed.json",
        "ronda instances generate ones --jobs 50 --seed 7 --out ones-50-7.json.zst",
    ),
)
def command() -> None:
    """Generate a round or a horizon; the same arguments give the same file.

    Three kinds of parameters, independent of each other. Size: --jobs, --gpus. Severity: how hard
    the limits on GPUs, watts and joules bind. Structure: what the machine room and the jobs are
    like, plain by default (one rack, one pool, no deadline, a restart costs 30 s); turn one
    parameter at a time to see what a policy makes of it.
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


def _structure(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the structure to a command."""
    for name, kind, text in reversed(_STRUCTURE):
        default = getattr(generate.Structure(), name)
        option = click.option(
            f"--{name.replace('_', '-')}", type=kind, default=default, show_default=True, help=text
        )
        function = option(function)
    return function


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
    **structure: Any,
) -> None:
    """Generate an instance: elastic and rigid jobs that arrive at random."""
    refuse_existing(out, force=force)
    shape = generate.Structure(**structure)
    written(generate.horizon(jobs, gpus, severity, seed, shape), out, as_json=as_json)


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
    from ronda.instances.traces.ones import ones_workload  # loads pandas

    refuse_existing(out, force=force)
    made = ones_workload(jobs, seed, nodes=nodes, user_batch=batch)
    written(made, out, as_json=as_json)
