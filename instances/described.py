"""What the docstring of a record, or of a function, says about each field or parameter."""

import inspect
from typing import Any


def described(thing: Any) -> dict[str, str]:
    """Return the words of a docstring's section ``Attributes`` or ``Parameters``, by name."""
    title = "Attributes" if isinstance(thing, type) else "Parameters"
    _, _, section = _docstring(thing).partition(f"\n{title}\n{'-' * len(title)}\n")
    section, _, _ = section.partition("\n\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(",")]
        for name in names if line.startswith(" ") else []:
            found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return found


def summary(thing: Any) -> str:
    """Return what a docstring says before its sections."""
    return _docstring(thing).partition("\nAttributes\n----------\n")[0].strip()


def _docstring(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "")
