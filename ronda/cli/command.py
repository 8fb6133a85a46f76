"""Commands with examples to copy at the end of their help."""

from collections.abc import Callable, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from ronda.instances.errors import InputError
from ronda.solvers.plugins import Kind, Plugin, find, known

FORCED = "ronda.forced"
"""The key of a context's ``meta`` that is present if files may be replaced."""


def forced() -> bool:
    """Return whether the running command, if there is one, may replace files."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and FORCED in ctx.meta


class Taught(click.Command):
    """A command with examples, which are shown verbatim, and optionally a list of terms.

    `terms` are the title of the list, and the meanings of its names.
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
        """Run the command; refuse ``--force`` if nothing is written."""
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
    """Return a decorator that turns a function into a command with examples."""
    return click.command(name=name, cls=Taught, examples=examples)


class OpenGroup(Taught, click.Group):
    """A group of the core's commands and of commands from other packages (`plugins`).

    A command is imported when it is used, but not for help.

    Parameters
    ----------
    own
        The core's commands, in addition to those added as usual.
    kind
        The kind of plugins; those whose names begin with `head` are in the group, under the rest of
        their name.
    make
        Makes the command from a plugin and its name in the group; by default, the plugin is one.
    """

    def __init__(
        self,
        *args: Any,
        own: Mapping[str, Plugin] | None = None,
        kind: Kind = "commands",
        head: str = "",
        make: Callable[[str, Plugin], click.Command] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.own, self.kind, self.head, self.make = own or {}, kind, head, make

    def lines(self) -> dict[str, str]:
        """Return the commands with their lines in the help, the core's first.

        At the root, the groups for instances and models come last.
        """
        lines = {name: plugin.about for name, plugin in self.own.items()}
        lines |= {name: each.get_short_help_str(80) for name, each in self.commands.items()}
        others = {
            name: plugin.about
            for words, plugin in known(self.kind).items()
            if words.startswith(self.head) and " " not in (name := words.removeprefix(self.head))
        }
        names = [*lines]
        at = names.index("instances") if "instances" in names else len(names)
        return {name: (others | lines)[name] for name in [*names[:at], *others, *names[at:]]}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of `lines`."""
        return [*self.lines()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported if necessary."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        plugin = self.own.get(cmd_name) or find(self.kind, f"{self.head}{cmd_name}")
        if plugin is None or self.make is not None:
            return self.make(cmd_name, plugin) if plugin and self.make else None
        found: Any = plugin.load(place := f"ronda {self.head}{cmd_name}")
        if not isinstance(found, click.Command):
            raise InputError(place, type(found).__name__, "a command of click")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([*self.lines().items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the commands of the group."""
        lines = self.lines().items()
        found = [CompletionItem(name, help=line) for name, line in lines]
        found = [item for item in found if item.value.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)
