"""The group of all commands, which loads commands on use and reports errors in one line."""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from ronda.cli.command import OpenGroup
from ronda.instances.errors import InterruptedRunError, RondaError, explained, printable, short
from ronda.solvers.plugins import Plugin


def _own(room: str, lines: Mapping[str, str]) -> dict[str, Plugin]:
    """Return the core's commands in a package, each with its line in the help."""
    return {
        name: Plugin(f"ronda.cli.commands.{room}{name.replace('-', '_')}:command", line)
        for name, line in lines.items()
    }


def _group(name: str, help: str, lines: Mapping[str, str], *examples: str) -> OpenGroup:
    own = _own(f"{name}.", lines)
    return OpenGroup(name, own=own, head=f"{name} ", help=help, examples=examples)


bench = _group(
    "bench",
    "Compare results with earlier ones.",
    {"diff": "Say what changed between two folders of results."},
    "ronda bench diff results-0.1 results-0.2",
)
instances = _group(
    "instances",
    "List, show, check, convert and generate instances and rounds.",
    {
        "list": "List the packaged instances.",
        "show": "Show what an instance or a round holds.",
        "check": "Check a file, or an answer to it.",
        "audit": "Say what a log is worth before it is simulated.",
        "convert": "Convert a published trace.",
        "generate": "Generate a round or a horizon.",
    },
    "ronda instances list",
    "ronda instances show pollux-1",
    "ronda instances convert helios cluster_log.csv --nodes vcvGl=20 --out vcvgl.json.zst",
    "ronda instances generate round --jobs 64 --out round.json",
    "ronda instances check venus-vcvly results/schedule.json.zst",
)
profile = _group(
    "profile",
    "Fit models of speed, power and sharing to measurements, and look at fitted ones.",
    {
        "fit": "Fit models to a table of measurements.",
        "list": "List the packaged models and their errors.",
        "show": "Show a model and how far to trust it.",
    },
    "ronda profile fit steps.csv --gpus-per-node 8 --out profile.json",
    "ronda profile list bert",
    "ronda profile show elasticflow-bert-A100",
)
predict = _group(
    "predict",
    "Predict how large jobs are from those that ran before.",
    {
        "train": "Train a predictor of sizes on an instance.",
        "errors": "Make declared sizes as wrong as published.",
    },
    "ronda predict train venus-vcvgl --out sizes.json.zst",
    "ronda run venus-vcvly --policy qssf --knowledge history --predictor sizes.json.zst",
    "ronda predict errors venus-vcvgl --out wrong.json.zst",
)

COMMANDS = _own(
    "",
    {
        "init": "Lay a small study of your own in a new folder.",
        "solve": "Decide one round.",
        "run": "Drive a policy over a whole horizon.",
        "compare": "Compare policies by quality and solve time.",
        "reproduce": "Hold published figures against ours.",
        "frontier": "Sweep the energy budget of instances.",
        "anytime": "Draw plan quality against time on rounds.",
        "bench": "Compare results with earlier ones.",
        "report": "Show results as one HTML page.",
        "export": "Write a model or a schedule for other tools.",
        "import-solution": "Make a plan of another solver's solution.",
        "explain": "Say which limits of a round conflict.",
        "instances": "List, check, convert, make instances.",
        "profile": "Fit models of speed and power.",
        "predict": "Predict sizes from jobs that ran.",
        "show-versions": "Show what a bug report needs.",
        "completion": "Print a shell's completion script.",
    },
)
for _name in ("init", "report", "reproduce"):
    COMMANDS |= _own("studies.", {_name: COMMANDS[_name].about})
for _name in ("bench", "instances", "profile", "predict"):
    COMMANDS |= {_name: Plugin(f"ronda.cli.app:{_name}", COMMANDS[_name].about)}


@contextmanager
def _interrupts() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise InterruptedRunError("interrupted") from None


class Root(OpenGroup):
    """The outermost group, which turns errors into one line on stderr and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line; return only if `standalone_mode` is False."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        words = sys.argv[1:] if args is None else list(args)
        extra.setdefault("obj", time.perf_counter())  # a program's call, not the process's first
        call = partial(super().main, words or ["--help"], prog_name, complete_var, False, **extra)
        sys.exit(finish(call))

    def make_context(self, *words: Any, **extra: Any) -> click.Context:
        """Read the arguments; avoid click's empty line before the message of an interrupt."""
        with _interrupts():
            return super().make_context(*words, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command with the same handling of interrupts."""
        with _interrupts():
            return super().invoke(ctx)


@click.group(
    cls=Root,
    own=COMMANDS,
    examples=(
        "ronda instances list                       the packaged instances",
        "ronda run venus-vcvly --policy fifo        drive a policy over a whole trace",
        "ronda compare pollux-1 --policies srtf,milp,genetic --seeds 0-4 --out results",
        "ronda solve round.json --policy milp       decide a single round",
    ),
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.version_option(package_name="ronda", message="ronda %(version)s")
def cli() -> None:
    """Cast every scheduling round of a GPU cluster as an optimisation problem, and solve it.

    Every command takes --json, for programs: it prints one object on the last line of stdout.
    """


WRITING = {errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC}
"""The errors of writing; one without a file name concerns the standard output."""


def finish(call: Callable[[], Any]) -> int:
    """Return the exit code of a command's call; print an error as one line on stderr."""
    try:
        code = call()
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        ctx = getattr(error, "ctx", None)
        where = f" (see '{ctx.command_path} --help')" if ctx is not None else ""
        return _failed(error.format_message().rstrip(".") + where, error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _failed("interrupted", 130)  # as in shells: 128 + SIGINT
    except RondaError as error:
        return _failed(str(error), error.exit_code)
    except BrokenPipeError:  # the reader (say, `head`) has read enough
        _give_up_stdout()
        return 1
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return _failed(f"{place}: {reason}" if (place := _place(error)) else reason, 2)
    except MemoryError:
        return _failed("not enough memory", 1)
    except ModuleNotFoundError as error:
        if (said := explained(error)) is None:
            raise
        return _failed(str(said), said.exit_code)
    return code if isinstance(code, int) else 0


def _place(error: OSError) -> str:
    """Return the file of an error, or the standard output if a failed write names no file."""
    if error.filename:
        from ronda.instances.files.storage import label  # not for every --help

        return label(error.filename)
    if error.errno not in WRITING:
        return ""
    _give_up_stdout()
    return "standard output"


def _give_up_stdout() -> None:
    """Drop the remaining output, so that Python does not report it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(message: str, code: int) -> int:
    click.echo("error: " + short(printable(" ".join(message.split())), 3500), err=True)
    return code
