"""Types of options: they refuse what cannot be meant, with the words of the rest of ronda."""

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ronda.instances.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])


class Seconds(click.ParamType[float]):
    """A duration above zero."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a number of seconds."""
        number = _number(value)
        if number is None or not 0 < number < math.inf:
            raise InputError(_place(param), repr(value), "a number of seconds above 0")
        return number


class Seed(click.ParamType[int]):
    """A whole number from 0 on."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a seed."""
        if not re.fullmatch(r"\s*\d{1,18}\s*", str(value), re.ASCII):
            raise InputError(_place(param), repr(value), "a whole number from 0 on")
        return int(value)


class Memory(click.ParamType[float]):
    """An amount of memory in MiB: ``4G``, ``1500M``; a bare number counts GiB."""

    name = "size"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a size; returns MiB."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"\s*([\d.]+)\s*([MG]?)(?:i?B)?\s*", str(value), re.IGNORECASE)
        number = _number(match[1]) if match else None
        if match is None or number is None or not 0 < number < math.inf:
            raise InputError(_place(param), repr(value), "a size such as 4G or 1500M")
        return number if match[2].upper() == "M" else number * 1024


class Nodes(click.ParamType[int | dict[str, int]]):
    """A number of nodes, or numbers by partition: ``vcvGl=20,vcvLy=2``."""

    name = "nodes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | dict[str, int]:
        """Read the number, or the numbers."""
        if re.fullmatch(r"[1-9]\d{0,8}", str(value), re.ASCII):
            return int(value)
        pairs = [part.strip().rpartition("=") for part in str(value).split(",")]
        good = all(name and re.fullmatch(r"[1-9]\d{0,8}", number) for name, _, number in pairs)
        if not good or len({name for name, _, _ in pairs}) < len(pairs):
            raise InputError(_place(param), repr(value), "a number, or NAME=NUMBER,NAME=NUMBER")
        return {name: int(number) for name, _, number in pairs}


class Target(click.Path):
    """A file to write. Nothing that exists is overwritten without ``--force``."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)


class Source(click.ParamType[str]):
    """A packaged name or a file; completes both."""

    name = "name or file"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the packaged names, then the shell's own file names."""
        from ronda.instances.files.catalogue import entries

        names = [entry.name for entry in entries() if entry.name.startswith(incomplete)]
        return [*map(CompletionItem, names), CompletionItem(incomplete, type="file")]


class PolicyName(click.ParamType[str]):
    """A policy with its parameters; completes the names."""

    name = "policy"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the names of the policies; in a list, for the word after the last comma."""
        from ronda.solvers.registry import POLICIES

        head, comma, word = incomplete.rpartition(",")
        return [CompletionItem(head + comma + name) for name in POLICIES if name.startswith(word)]


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _place(param: click.Parameter | None) -> str:
    """Name an option as the user writes it."""
    return max(param.opts, key=len) if param is not None else "value"


policy_option = click.option(
    "--policy",
    type=PolicyName(),
    default="milp",
    show_default=True,
    help=(
        "Who decides: fifo, sjf, srtf, milp, prices, genetic, ones, evolve, powerflow, "
        "powerflow-prices, milp-energy, tiresias, optimus, pollux-like, elasticflow-like, "
        "race-to-idle, fifo+zeus, sjf+zeus, srtf+zeus, tiresias+zeus, optimus+zeus, "
        "pollux-like+zeus, elasticflow-like+zeus; "
        "parameters as 'milp(gap=1e-3)'."
    ),
)
seed_option = click.option(
    "--seed", type=Seed(), default=0, show_default=True, help="Same seed, same result."
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="For programs: one JSON object on the last line."
)
force_option = click.option("--force", is_flag=True, help="Replace what an earlier command wrote.")
policies_option = click.option(
    "--policies",
    type=PolicyName(),
    default="fifo,srtf,milp,genetic",
    show_default=True,
    help="Separated by commas; parameters in brackets.",
)
seeds_option = click.option(
    "--seeds",
    default="0",
    show_default=True,
    metavar="LIST",
    help="As in 0-4 or 0,3,5. A policy without randomness runs once.",
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    default=lambda: os.cpu_count() or 1,
    show_default="one per core",
    help="Runs side by side. For exact solve times, leave a core free.",
)
timeout_option = click.option(
    "--timeout",
    type=Seconds(),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="For each run; then it is killed and counted as TIME.",
)
memory_option = click.option(
    "--memory",
    type=Memory(),
    default="4G",
    show_default=True,
    metavar="SIZE",
    help="For each run; then it is killed and counted as OOM.",
)
figures_option = click.option(
    "--figures/--no-figures", default=True, show_default=True, help="Draw figures."
)
instance_argument = click.argument("source", metavar="INSTANCE", type=Source())
round_argument = click.argument("source", metavar="ROUND", type=Source())
instances_argument = click.argument(
    "sources", metavar="INSTANCE...", type=Source(), nargs=-1, required=True
)


def time_limit_option(default: float, help: str) -> Callable[[Command], Command]:
    """Return the option ``--time-limit`` with a default in seconds and what it limits."""
    return click.option(
        "--time-limit",
        type=Seconds(),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help=help,
    )


def out_option(default: str) -> Callable[[Command], Command]:
    """Return the option ``--out`` of commands that make many runs."""
    return click.option(
        "--out",
        type=click.Path(path_type=Path),
        default=Path(default),
        show_default=True,
        metavar="FOLDER",
        help="For results, table and figures; what is there already is not run again.",
    )
