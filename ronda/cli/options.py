"""Options and their types, which refuse wrong values in the same words as the rest of ronda."""

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from ronda.cli.command import FORCED
from ronda.cli.output import figure_files, refuse_existing
from ronda.instances.errors import InputError, need
from ronda.instances.files.packaged import entries
from ronda.instances.files.storage import packer
from ronda.instances.instance import DECLARED, Knowledge
from ronda.instances.tasks.files import SUFFIXES, holds_arrays, is_npz
from ronda.solvers.registry import POLICIES

Command = TypeVar("Command", bound=Callable[..., Any])
T = TypeVar("T")


class Parsed(click.ParamType[T]):
    """A value that `read` parses from a text; an invalid text gives None or an error.

    Help shows its `name` in capitals.
    """

    def __init__(self, name: str, expected: str, read: Callable[[str], T | None]) -> None:
        self.name, self.expected, self.read = name, expected, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Return the value of a text; any other value is a default and stays as it is."""
        try:
            found: T | None = self.read(value) if isinstance(value, str) else value
        except (ValueError, LookupError, OSError):
            found = None
        if found is None:
            place = max(param.opts, key=len) if param is not None else "value"
            raise InputError(place, repr(value), self.expected)
        return found


def _above_zero(text: str) -> float | None:
    return number if 0 < (number := float(text)) < math.inf else None


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\s*\d{1,18}\s*", text, re.ASCII) else None


def _mib(text: str) -> float | None:
    match = re.fullmatch(r"\s*([\d.]+)\s*([MG]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if match is None or (number := _above_zero(match[1])) is None:
        return None
    return number if match[2].upper() == "M" else number * 1024


def lasting(text: str) -> float | None:
    """Return a time above 0 in seconds, such as that of ``15min``; None for anything else."""
    match = re.fullmatch(r"\s*(\d{0,9}\.?\d{1,9})\s*(s|m|min|h|d)?\s*", text, re.ASCII)
    units_s = {"m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
    return float(match[1]) * units_s.get(match[2], 1.0) or None if match else None


def _levels(text: str) -> tuple[str, ...] | None:
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    return parts if set(parts) <= {*get_args(Knowledge)} else None


def _nodes(text: str) -> int | dict[str, int] | None:
    if re.fullmatch(r"[1-9]\d{0,8}", text, re.ASCII):
        return int(text)
    pairs = [part.strip().rpartition("=") for part in text.split(",")]
    good = all(name and re.fullmatch(r"[1-9]\d{0,8}", number) for name, _, number in pairs)
    if not good or len({name for name, _, _ in pairs}) < len(pairs):
        return None
    return {name: int(number) for name, _, number in pairs}


def _needs(package: str) -> Callable[[click.Context, click.Parameter, T], T]:
    """Return a callback that refuses a given option if its package is missing."""

    def checked(_ctx: click.Context, option: click.Parameter, value: T) -> T:
        if value:
            need(option.opts[0], package)
        return value

    return checked


SECONDS = Parsed("seconds", "a number of seconds above 0", _above_zero)
SEED = Parsed("integer", "a whole number from 0 on", _whole)
MEMORY = Parsed("size", "a size such as 4G or 1500M", _mib)
"""A size in MiB; a number without a unit is in GiB."""
NODES = Parsed("nodes", "a number, or NAME=NUMBER,NAME=NUMBER", _nodes)
FOLDER = click.Path(path_type=Path)
"""A folder to write into."""


class Target(click.Path):
    """A file to write; a file that exists (without ``--force``) or is not writable is refused.

    `files` returns the files that belong to a name, and refuses an unsuitable name.
    """

    def __init__(self, files: Callable[[Path], Iterable[Path]]) -> None:
        super().__init__(path_type=Path)
        self.files = files

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Read a name; refuse a file that must not be written."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        for each in self.files(path):
            refuse_existing(each)
        return path


def _packed(path: Path) -> Iterator[Path]:
    yield path
    packer(path)  # refuses other suffixes


def _arrayed(path: Path) -> Iterator[Path]:
    yield path
    is_npz(path)  # refuses other suffixes


def _either(path: Path) -> Iterator[Path]:
    return _arrayed(path) if holds_arrays(path) else _packed(path)


TARGET, DOCUMENT, FIGURE = Target(lambda path: [path]), Target(_packed), Target(figure_files)
"""Types for any file, for a document that ronda can read, and for a picture with its numbers."""


class Source(click.ParamType[str]):
    """A packaged name, by default of an instance, or a file, with completion of both."""

    name = "name or file"

    def __init__(self, packaged: Callable[[], Iterable[str]] | None = None) -> None:
        self.packaged = packaged or (lambda: (entry.name for entry in entries()))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the packaged names, then the shell's own file names."""
        names = [name for name in self.packaged() if name.startswith(incomplete)]
        return [*map(CompletionItem, names), CompletionItem(incomplete, type="file")]


class PolicyName(click.ParamType[str]):
    """A policy with its parameters, with completion of names."""

    name = "policy"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the names of the policies; in a list, complete the word after the last comma."""
        head, comma, word = incomplete.rpartition(",")
        return [CompletionItem(head + comma + name) for name in POLICIES if name.startswith(word)]


def picture_option(
    help: str, metavar: str = "FILE", flag: str = "--picture"
) -> Callable[[Command], Command]:
    """Return the option for a picture with its numbers."""
    return click.option(flag, type=FIGURE, metavar=metavar, help=help)


def decided_by(default: str, help: str) -> Callable[[Command], Command]:
    """Return the option ``--policy`` with its default."""
    return click.option("--policy", type=PolicyName(), default=default, help=help)


policy_option = decided_by(
    "milp",
    f"Who decides: {', '.join(POLICIES)}; parameters as 'milp(gap=1e-3)'; a class of your own "
    "as './mine.py:Mine'.",
)
with_option = click.option(
    "--with",
    "extra",
    metavar="FILE.py",
    default="",
    show_default=False,
    help="Rules of your own that the plan keeps: functions of the round and its options "
    "(docs/own_rules.md). For milp and prices.",
)
seed_option = click.option("--seed", type=SEED, default=0, help="Same seed, same result.")
_LEVELS = get_args(Knowledge)
_KNOWLEDGE = (
    "What policies know of jobs: true sizes (oracle), the estimates of the instance (declared), "
    "sizes and speeds learnt from jobs that ran (history), or speeds and the progress of live jobs "
    "alone (none)"
)
knowledge_option = click.option(
    "--knowledge", type=click.Choice(_LEVELS), default=DECLARED, help=f"{_KNOWLEDGE}."
)
levels_option = click.option(
    "--knowledge",
    "levels",
    type=Parsed("levels", f"some of {', '.join(_LEVELS)}", _levels),
    default=DECLARED,
    help=f"{_KNOWLEDGE}; several side by side as in oracle,history.",
)
predictor_option = click.option(
    "--predictor",
    type=click.Path(path_type=Path),
    metavar="FILE",
    callback=_needs("lightgbm"),
    help="What tells sizes with --knowledge history, by: ronda predict train.",
)
bound_option = click.option(
    "--bound",
    type=click.Choice(["quick", "tight"]),
    default="quick",
    help="Bound the mean JCT in seconds, or by a search of minutes, kept with its certificate. "
    "Packaged instances have tight bounds already.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="For programs: one JSON object on the last line."
)


def _remembered(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[FORCED] = True


force_option = click.option(
    "--force",
    is_flag=True,
    is_eager=True,  # is read before the files that it concerns
    expose_value=False,
    callback=_remembered,
    help="Replace what an earlier command wrote.",
)
seeds_option = click.option(
    "--seeds",
    default="0",
    metavar="LIST",
    help="As in 0-4 or 0,3,5. A policy without randomness runs once.",
)
dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Have the runs carried out by the workers of a Dask cluster, such as "
    "tcp://127.0.0.1:8786, or of one that is started here with --jobs workers: local.",
)
timeout_option = click.option(
    "--timeout",
    type=SECONDS,
    default=3600.0,
    help="For each run; then it is killed and counted as TIME.",
)
memory_option = click.option(
    "--memory",
    type=MEMORY,
    default="4G",
    help="For each run; then it is killed and counted as OOM.",
)
figures_option = click.option("--figures/--no-figures", default=True, help="Draw figures.")


parquet_option = click.option(
    "--parquet",
    is_flag=True,
    callback=_needs("pyarrow"),
    help="Write results.parquet beside results.csv: a row a run.",
)
instance_argument = click.argument("source", metavar="INSTANCE", type=Source())
round_argument = click.argument("source", metavar="ROUND", type=Source())
instances_argument = click.argument(
    "sources", metavar="INSTANCE...", type=Source(), nargs=-1, required=True
)


def was_given(option: str) -> bool:
    """Return whether the running command was given the option with the given parameter name."""
    source = click.get_current_context().get_parameter_source(option)
    return source is ParameterSource.COMMANDLINE


def stacked(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds arguments and options, listed in the help in the given order."""

    def add(command: Command) -> Command:
        return reduce(lambda made, option: option(made), reversed(options), command)

    return add


policy_options = stacked(policy_option, with_option)
output_options = stacked(force_option, json_option)
"""The last options of a command that may write files."""


def out_file_options(
    kind: Target, help: str, *, required: bool = False
) -> Callable[[Command], Command]:
    """Return the last options of a command that writes one file: ``--out`` comes first."""
    out = click.option("--out", type=kind, required=required, metavar="FILE", help=help)
    return stacked(out, output_options)


write_options = out_file_options(DOCUMENT, "A .json, .json.gz or .json.zst.", required=True)
array_options = out_file_options(Target(_arrayed), f"A {' or '.join(SUFFIXES)}.", required=True)
"""The options of a command that writes one file, of a document or of arrays."""
plan_options = out_file_options(DOCUMENT, "Write the plan: .json, .json.gz or .json.zst.")
either_plan_options = out_file_options(
    Target(_either), "Write the plan: .json, .json.gz or .json.zst; of tasks .npz or .parquet."
)
"""The options of a command that can write a plan, and of one that also plans tasks."""


def policies_option(default: str) -> Callable[[Command], Command]:
    """Return the option ``--policies`` with its default."""
    return click.option(
        "--policies",
        type=PolicyName(),
        default=default,
        help="Separated by commas; parameters in brackets.",
    )


def jobs_option(
    default: int | Callable[[], int] = lambda: os.cpu_count() or 1,
    shown: str | bool = "one per core",
    help: str = "Runs side by side. For exact solve times, leave a core free.",
) -> Callable[[Command], Command]:
    """Return the option ``--jobs`` with its default."""
    return click.option(
        "--jobs", type=click.IntRange(1, 1024), default=default, show_default=shown, help=help
    )


def time_limit_option(default: float, help: str) -> Callable[[Command], Command]:
    """Return the option ``--time-limit`` with a default in seconds and its help."""
    return click.option("--time-limit", type=SECONDS, default=default, help=help)


at_option = click.option(
    "--at",
    type=SECONDS,
    help="Of an instance: which decision of a run. Without it, the one with most live jobs.",
)


def out_option(default: str) -> Callable[[Command], Command]:
    """Return the option ``--out`` of commands that make many runs."""
    return click.option(
        "--out",
        type=FOLDER,
        default=Path(default),
        metavar="FOLDER",
        help="For results, table and figures; what is there already is not run again.",
    )


def into_option(part: str) -> Callable[[Command], Command]:
    """Return the option ``--into`` of commands that write their tables into pages."""
    return click.option(
        "--into",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        multiple=True,
        metavar="PAGE",
        help=f"Write the tables into a page, between <!-- {part} --> and <!-- end of {part} -->; "
        "again for more pages.",
    )
