"""``ronda instances generate``: seeded rounds and horizons of any size, severity and structure."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ronda.cli.command import OpenGroup, Taught
from ronda.cli.load import Subject, written
from ronda.cli.options import Command, array_options, stacked, write_options
from ronda.cli.records import options_of, taken
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.generate import tasks
from ronda.instances.instance import Instance
from ronda.instances.tasks.arrays import TaskRound


@click.group(
    name="generate",
    cls=OpenGroup,
    kind="makers",
    make=lambda name, plugin: _command(name, plugin.about, plugin.load(name)),
    examples=(
        "ronda instances generate round --jobs 64 --severity tight --out round.json",
        "ronda instances generate round --pods 2 --racks 2 --gangs 0.1 --out gangs.json",
        "ronda instances generate horizon --jobs 1000 --gpus 128 --seed 7 --out year.json.zst",
        "ronda instances generate horizon --types 2 --deadlines 0.5 --error 1 --out mixed.json",
        "ronda instances generate horizon --node-failures 1 --job-failures 0.4 --out breaks.json",
        "ronda instances generate sweep --trials 32 --gpus 4 --good 0.1 --out search.json",
        "ronda instances generate demand --days 28 --nodes 150 --seed 7 --out weeks.json.zst",
        "ronda instances generate openb-like --nodes 1000 --tasks 10000 --running 0.45 --out r.npz",
        "ronda instances generate mixed --gpu-hours 240 --gpus 32 --out sweeps.json.zst",
    ),
)
def command() -> None:
    """Generate rounds, horizons, sweeps or demand series; the same arguments give the same file.

    There are three independent kinds of parameters. Size (--jobs, --gpus) sets the numbers.
    Severity sets how hard the limits on GPUs, watts and joules bind. Structure describes the
    machine room and the jobs, which are plain by default (one rack, one pool, no deadline, a
    restart costs 30 s); change one parameter at a time to see its effect on a policy. A horizon can
    also have faults.
    """


def _horizon(given: dict[str, Any]) -> Instance:
    usual = generate.Breakage()
    for name, causes in _CAUSES.items():
        if given[name] != getattr(usual, name) and not any(given[cause] for cause in causes):
            words = " or ".join(f"--{cause.replace('_', '-')}" for cause in causes)
            raise InputError(f"--{name.replace('_', '-')}", "no such faults", f"{words} with it")
    breakage, seed = taken(generate.Breakage, given), given["seed"]
    return generate.broken(taken(generate.horizon, given), breakage, seed)


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
"""The faults that each parameter of faults affects."""


def _command(
    name: str,
    about: str,
    make: Callable[..., Subject | TaskRound],
    *more: Callable[[Command], Command],
    made: Callable[[dict[str, Any]], Subject] | None = None,
    writing: Callable[[Command], Command] = write_options,
    **how: Any,
) -> click.Command:
    """Return a command with the parameters of `make` as options, and `more`; `made` calls it."""

    def function(out: Path, as_json: bool, **given: Any) -> None:
        written(made(given) if made else taken(make, given), out, as_json=as_json)

    options = stacked(options_of(make, **how), *more, writing)
    return click.command(name=name, cls=Taught, help=about)(options(function))


def _add(
    name: str, about: str, make: Callable[..., Subject | TaskRound], *more: Any, **how: Any
) -> None:
    command.add_command(_command(name, about, make, *more, **how))


_SEVERITY = click.Choice(tuple(generate.SEVERITIES))

_add(
    "round",
    "Generate one round of elastic jobs, some of which run.",
    generate.round,
    severity=_SEVERITY,
)
_add(
    "horizon",
    """Generate an instance: elastic and rigid jobs that arrive at random.

    By default nothing breaks; what does is drawn ahead and listed in the file.
    """,
    generate.horizon,
    options_of(generate.Breakage),
    made=_horizon,
    severity=_SEVERITY,
)
_add(
    "sweep",
    "Generate a search for hyper-parameters: trials submitted at once, and their losses.",
    generate.sweep,
    fusible=click.Choice(("", *generate.SHARED)),
)
_add(
    "mixed",
    "Generate sweeps of hyper-parameters, whose trials may share GPUs, among ordinary jobs.",
    generate.mixed,
)
_add(
    "demand",
    "Generate a demand series, for ronda sleep: how many nodes jobs need, every ten minutes.",
    generate.demand,
    skip=("step_s",),
)
for _name, _made, _about in (
    ("openb-like", tasks.openb_like, "nodes and tasks like those of Alibaba's openb cluster"),
    ("azure-like", tasks.azure_like, "virtual machines of 1 to 64 cores, a few with GPUs"),
    ("blocks", tasks.blocks, "tasks of 3, 5 or 6 GPUs, mostly, on nodes of 4 and 8"),
):
    _add(_name, f"Generate a round of many tasks: {_about}.", _made, writing=array_options)
