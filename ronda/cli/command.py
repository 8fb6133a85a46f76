"""Commands whose help ends with examples to copy."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from ronda.instances.errors import InputError
from ronda.solvers.plugins import Kind, Plugin, find, known

FORCED = "ronda.forced"
"""Key of a context's ``meta`` that is there if files may be replaced."""


def forced() -> bool:
    """Return whether files may be replaced by the running command, if there is one."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and FORCED in ctx.meta


class Taught(click.Command):
    """A command with examples, command lines that are shown as they are, and terms if it has some.

    `terms` are the title of a list, and what its names mean.
    """

    def __init__(
        self,
        *args: Any,
        examples: tuple[str, ...] = (),
        terms: tuple[str, dict[str, str]] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.examples, self.terms = examples, terms

    def invoke(self, ctx: click.Context) -> Any:
        """Carry it out; refuse ``--force`` where nothing is written."""
        if forced() and ctx.params.get("out", ...) is None:
            raise InputError("--force", "no --out", "what it is to replace")
        return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the terms and the examples."""
        if self.terms is not None:
            title, meanings = self.terms
            same: dict[str, list[str]] = {}
            for name, words in meanings.items():
                same.setdefault(words.replace("`", ""), []).append(name)
            with formatter.section(title):
                formatter.write_dl([(", ".join(names), words) for words, names in same.items()])
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(" " * formatter.current_indent + example + "\n")
        super().format_epilog(ctx, formatter)


def taught(name: str, *examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command with examples."""
    return click.command(name=name, cls=Taught, examples=examples)


class TaughtGroup(Taught, click.Group):
    """A group with examples."""


class OpenGroup(TaughtGroup):
    """A group with a command for each plugin of a kind, besides those of the core.

    `make` makes the command of a plugin, by its name, and so of those that are `own`, the core's;
    help does not import what it lists.
    """

    def __init__(
        self,
        *args: Any,
        kind: Kind,
        make: Callable[[str, Plugin], click.Command],
        own: Mapping[str, Plugin] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.kind, self.make, self.own = kind, make, own or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in alphabetical order."""
        return sorted({*self.commands, *self.own, *known(self.kind)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command of the core, or make that of a plugin."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        plugin = self.own.get(cmd_name) or find(self.kind, cmd_name)
        return None if plugin is None else self.make(cmd_name, plugin)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table."""
        lines = {name: plugin.about for name, plugin in {**known(self.kind), **self.own}.items()}
        lines |= {name: own.get_short_help_str(80) for name, own in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(lines.items()))
