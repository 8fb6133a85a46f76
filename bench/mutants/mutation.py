"""Mutations: which text of which file becomes what, and which tests should notice."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ronda.instances.errors import InputError

LISTED = Path(__file__).parents[1] / "data" / "mutants.toml"
"""The fixed list."""


class Mutation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One change of the code.

    Attributes
    ----------
    name
        What is broken, in a few words with hyphens.
    file
        Path of the changed file from the root of the tree.
    old, new
        The text that stands there exactly once, and what replaces it.
    tests
        Test files or tests that must fail, as pytest takes them.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, root: Path) -> str:
        """Return the changed text of the file.

        InputError if the old text is not found exactly once, or nothing would change.
        """
        try:
            text = (root / self.file).read_text(encoding="utf-8")
        except OSError as error:
            found = f"{self.file}: {error.strerror}"
            raise InputError(f"mutation {self.name}", found, "a file of the tree") from error
        count = text.count(self.old)
        if count != 1 or self.old == self.new:
            found = f"its old text {count} times in {self.file}"
            raise InputError(f"mutation {self.name}", found, "exactly once, and another new text")
        return text.replace(self.old, self.new)


class _List(msgspec.Struct, forbid_unknown_fields=True):
    mutation: tuple[Mutation, ...]


def read(path: Path, only: Sequence[str] = ()) -> tuple[Mutation, ...]:
    """Return the mutations of a file, or those whose name contains one of the words of `only`.

    InputError if the file is no list of mutations, names one twice, or has none of them.
    """
    try:
        parsed = tomllib.loads(path.read_text(encoding="utf-8"))
        listed = msgspec.convert(parsed, _List).mutation
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise InputError(str(path), str(error), "a list of mutations") from error
    names = [m.name for m in listed]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(str(path), f"{sorted(twice)[0]} twice", "a name of its own for each")
    chosen = tuple(m for m in listed if not only or any(word in m.name for word in only))
    if not chosen:
        raise InputError("--only", ", ".join(only), f"part of a name: {', '.join(names)}")
    return chosen
