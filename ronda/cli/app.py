"""The group of all commands: loaded when they are used, and errors in one line."""

import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

from ronda.bench.program import finish
from ronda.cli.command import Taught
from ronda.instances.errors import InterruptedRunError

COMMANDS = {
    "solve": ("ronda.cli.commands.solve", "Decide one round."),
    "run": ("ronda.cli.commands.run", "Drive a policy over a whole horizon."),
    "compare": ("ronda.cli.commands.compare", "Compare policies by quality and solve time."),
    "frontier": ("ronda.cli.commands.frontier", "Sweep the energy budget of instances."),
    "anytime": ("ronda.cli.commands.anytime", "Draw plan quality against time on rounds."),
    "sleep": (
        "ronda.cli.commands.sleep",
        "Let the nodes sleep that a demand series does not need.",
    ),
    "serve": ("ronda.cli.commands.serve", "Decide rounds over HTTP."),
    "export": ("ronda.cli.commands.export", "Write a round's model for other solvers."),
    "import-solution": (
        "ronda.cli.commands.import_solution",
        "Make a plan of another solver's solution.",
    ),
    "explain": ("ronda.cli.commands.explain", "Say which limits of a round conflict."),
    "instances": ("ronda.cli.commands.instances.group", "List, check, convert, make instances."),
    "profile": ("ronda.cli.commands.profile.group", "Fit models of speed and power."),
    "predict": ("ronda.cli.commands.predict.group", "Predict sizes from jobs that ran."),
    "show-versions": ("ronda.cli.commands.versions", "Show what a bug report needs."),
    "completion": ("ronda.cli.commands.completion", "Print a shell's completion script."),
}
"""Name of each command, the module that has it as ``command``, and its line in the help."""


class LazyGroup(Taught, click.Group):
    """A group that imports a command's module only when the command is used, not for help."""

    def __init__(self, *args: Any, lazy: dict[str, tuple[str, str]], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which a user meets them."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self.lazy:
            return None
        found: click.Command = importlib.import_module(self.lazy[cmd_name][0]).command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, brief) for name, (_, brief) in self.lazy.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the commands of the table."""
        found = [
            CompletionItem(name, help=brief)
            for name, (_, brief) in self.lazy.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)


@contextmanager
def _interrupts() -> Iterator[None]:
    """Make an error of an interrupt."""
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
