"""``ronda instances generate``: seeded rounds and horizons of any size, severity and structure."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from ronda.bench.suites import makers
from ronda.cli.command import Taught, TaughtGroup
from ronda.cli.load import written
from ronda.cli.options import Command, write_options
from ronda.cli.records import named, options_of, taken
from ronda.instances import generate
from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.round import Round


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


def _generator(
    name: str, *options: Callable[[Command], Command]
) -> Callable[[Callable[..., Instance | Round | Demand]], click.Command]:
    """Return a decorator that makes a command of what makes a document from options."""

    def add(make: Callable[..., Instance | Round | Demand]) -> click.Command:
        def function(out: Any, as_json: bool, **given: Any) -> None:
            with named(given):
                made = make(**given)
            written(made, out, as_json=as_json)

        for option in (write_options, *reversed(options)):
            function = option(function)
        return command.command(name=name, cls=Taught, help=make.__doc__)(function)

    return add


_SEVERITY = click.Choice(tuple(generate.SEVERITIES))
_structure = options_of(generate.Structure)


@_generator(
    "round", options_of(generate.round, skip=("structure",), severity=_SEVERITY), _structure
)
def round_(**given: Any) -> Round:
    """Generate one round of elastic jobs, some of which run."""
    structure = taken(generate.Structure, given)
    return generate.round(**given, structure=structure)


@_generator(
    "horizon",
    options_of(generate.horizon, skip=("structure",), severity=_SEVERITY),
    _structure,
    options_of(generate.Breakage),
)
def horizon(**given: Any) -> Instance:
    """Generate an instance: elastic and rigid jobs that arrive at random.

    By default nothing breaks; what does is drawn ahead and listed in the file.
    """
    _refuse_idle(given)
    structure, breakage = (taken(kind, given) for kind in (generate.Structure, generate.Breakage))
    sound = generate.horizon(**given, structure=structure)
    return generate.broken(sound, breakage, given["seed"])


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
    usual = generate.Breakage()
    for name, causes in _CAUSES.items():
        if given[name] != getattr(usual, name) and not any(given[cause] for cause in causes):
            words = " or ".join(f"--{cause.replace('_', '-')}" for cause in causes)
            raise InputError(f"--{name.replace('_', '-')}", "no such faults", f"{words} with it")


@_generator(
    "sweep",
    options_of(generate.sweep, skip=("like",)),
    options_of(generate.Trials, fusible=click.Choice(("", *generate.SHARED))),
)
def sweep(**given: Any) -> Instance:
    """Generate a search for hyper-parameters: trials submitted at once, and their losses."""
    like = taken(generate.Trials, given)
    return generate.sweep(**given, like=like)


@_generator("ones", options_of(makers.ones))
def ones(**given: Any) -> Instance:
    """Generate an instance of the ONES workload (SC'21): short trainings, minutes apart at most."""
    return makers.ones(**given)


@_generator("mixed", options_of(generate.mixed))
def mixed(**given: Any) -> Instance:
    """Generate sweeps of hyper-parameters, whose trials may share GPUs, among ordinary jobs."""
    return generate.mixed(**given)


@_generator("demand", options_of(generate.demand, skip=("step_s",)))
def demand(**given: Any) -> Demand:
    """Generate a demand series, for ronda sleep: how many nodes jobs need, every ten minutes."""
    return generate.demand(**given)
