"""``ronda instances generate``: seeded rounds and horizons of any size."""

from pathlib import Path

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
        "ronda instances generate horizon --jobs 1000 --gpus 128 --seed 7 --out year.json.zst",
        "ronda instances generate ones --jobs 50 --seed 7 --out ones-50-7.json.zst",
    ),
)
def command() -> None:
    """Generate a round or a horizon; the same arguments give the same file."""


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


@command.command(name="round", cls=Taught)
@click.option("--jobs", type=click.IntRange(1), default=64, show_default=True, help="Live jobs.")
@click.option("--gpus", type=click.IntRange(1), help="Otherwise as many as the severity says.")
@_severity
@_seed
@file_option
@force_option
@json_option
def round_(
    jobs: int, gpus: int | None, severity: str, seed: int, out: Path, force: bool, as_json: bool
) -> None:
    """Generate one round of elastic jobs, some of which run."""
    refuse_existing(out, force=force)
    written(generate.round(jobs, gpus, severity, seed), out, as_json=as_json)


@command.command(name="horizon", cls=Taught)
@click.option("--jobs", type=click.IntRange(1), default=200, show_default=True, help="In all.")
@click.option("--gpus", type=click.IntRange(1), default=64, show_default=True, help="In all.")
@_severity
@_seed
@file_option
@force_option
@json_option
def horizon(
    jobs: int, gpus: int, severity: str, seed: int, out: Path, force: bool, as_json: bool
) -> None:
    """Generate an instance: elastic and rigid jobs that arrive at random."""
    refuse_existing(out, force=force)
    written(generate.horizon(jobs, gpus, severity, seed), out, as_json=as_json)


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
