"""The group of all commands: loaded when they are used, and errors in one line."""

import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, cast

import click
from click.shell_completion import CompletionItem

from ronda.cli.command import Taught
from ronda.cli.program import finish
from ronda.instances.errors import InputError, InterruptedRunError
from ronda.solvers.plugins import find, known

PACKAGE = "ronda.cli.commands"

COMMANDS = {
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
}
"""The commands of the core, each with its line in the help; a module has each as ``command``."""

STUDIES = {name: f"studies.{name}" for name in ("init", "report", "reproduce")}
"""Commands whose modules stand in a room."""


class Branch(NamedTuple):
    """A command that is a group: its help, its commands with their lines in it, and examples."""

    about: str
    commands: dict[str, str]
    examples: tuple[str, ...]


GROUPS = {
    "bench": Branch(
        "Compare results with earlier ones.",
        {"diff": "Say what changed between two folders of results."},
        ("ronda bench diff results-0.1 results-0.2",),
    ),
    "instances": Branch(
        "List, show, check, convert and generate instances and rounds.",
        {
            "list": "List the packaged instances.",
            "show": "Show what an instance or a round holds.",
            "check": "Check a file, or an answer to it.",
            "convert": "Convert a published trace.",
            "generate": "Generate a round or a horizon.",
        },
        (
            "ronda instances list",
            "ronda instances show pollux-1",
            "ronda instances convert helios cluster_log.csv --nodes vcvGl=20 --out vcvgl.json.zst",
            "ronda instances generate round --jobs 64 --out round.json",
            "ronda instances check venus-vcvly results/schedule.json.zst",
        ),
    ),
    "profile": Branch(
        "Fit models of speed, power and sharing to measurements, and look at fitted ones.",
        {
            "fit": "Fit models to a table of measurements.",
            "list": "List the packaged models and their errors.",
            "show": "Show a model and how far to trust it.",
        },
        (
            "ronda profile fit steps.csv --gpus-per-node 8 --out profile.json",
            "ronda profile list bert",
            "ronda profile show elasticflow-bert-A100",
        ),
    ),
    "predict": Branch(
        "Predict how large jobs are from those that ran before.",
        {
            "train": "Train a predictor of sizes on an instance.",
            "errors": "Make declared sizes as wrong as published.",
        },
        (
            "ronda predict train venus-vcvgl --out sizes.json.zst",
            "ronda run venus-vcvly --policy qssf --knowledge history --predictor sizes.json.zst",
            "ronda predict errors venus-vcvgl --out wrong.json.zst",
        ),
    ),
}
"""Commands that are groups."""


class LazyGroup(Taught, click.Group):
    """A group that imports a command's module only when the command is used, not for help.

    Besides commands of the core it has those that other packages bring (`ronda.solvers.plugins`).
    """

    def __init__(
        self, *args: Any, lazy: dict[str, str], package: str = PACKAGE, **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self.lazy, self.package = lazy, package
        self.head = "" if package == PACKAGE else f"{self.name} "

    def lines(self) -> dict[str, str]:
        """Return the commands with their lines, in the order in which a user meets them.

        What other packages bring comes last, but before the groups about instances and models.
        """
        found = {
            name: plugin.about
            for words, plugin in known("commands").items()
            if words.startswith(self.head) and " " not in (name := words.removeprefix(self.head))
        }
        names = [*self.lazy]
        at = names.index("instances") if "instances" in names else len(names)
        order = [*names[:at], *found, *names[at:]]
        return {name: (found | self.lazy)[name] for name in order}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands' names, in this order."""
        return [*self.lines()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        module = f"{self.package}.{STUDIES.get(cmd_name, cmd_name).replace('-', '_')}"
        if self.package == PACKAGE and cmd_name in GROUPS:
            about, lazy, examples = GROUPS[cmd_name]
            return LazyGroup(cmd_name, lazy=lazy, package=module, help=about, examples=examples)
        if cmd_name in self.lazy:
            found: Any = importlib.import_module(module).command
        elif (plugin := find("commands", f"{self.head}{cmd_name}")) is not None:
            found = plugin.load(place := f"ronda {self.head}{cmd_name}")
            if not isinstance(found, click.Command):
                raise InputError(place, type(found).__name__, "a command of click")
        else:
            return None
        return cast(click.Command, found)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table."""
        with formatter.section("Commands"):
            formatter.write_dl([*self.lines().items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the commands of the table."""
        found = [
            CompletionItem(name, help=brief)
            for name, brief in self.lines().items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)


@contextmanager
def _interrupts() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise InterruptedRunError("interrupted") from None


class Root(LazyGroup):
    """The outermost group: turns errors into one line on stderr and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line; does not return unless `standalone_mode` is False."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        words = sys.argv[1:] if args is None else list(args)
        extra.setdefault("obj", time.perf_counter())  # a program's call, not the process's first
        call = partial(super().main, words or ["--help"], prog_name, complete_var, False, **extra)
        sys.exit(finish(call))

    def make_context(self, *words: Any, **extra: Any) -> click.Context:
        """Read the arguments; click would put an empty line before that of an interrupt."""
        with _interrupts():
            return super().make_context(*words, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, likewise."""
        with _interrupts():
            return super().invoke(ctx)


@click.group(
    cls=Root,
    lazy=COMMANDS,
    examples=(
        "ronda instances list                       the packaged instances",
        "ronda run venus-vcvly --policy fifo        drive a policy over a whole trace",
        "ronda compare pollux-1 --policies srtf,milp,genetic --seeds 0-4 --out results",
        "ronda solve round.json --policy milp       decide a single round",
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="ronda", message="ronda %(version)s")
def cli() -> None:
    """Cast every scheduling round of a GPU cluster as an optimisation problem, and solve it.

    Every command takes --json, for programs: one object on the last line of stdout.
    """
