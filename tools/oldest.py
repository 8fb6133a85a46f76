"""The oldest versions that pyproject.toml allows of what ronda needs, as constraints for pip.

``python tools/oldest.py > constraints-oldest.txt``; `make test-oldest` runs the tests with them.
What only developers need (the extras `dev` and `docs`) is left to pip.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"

NOT_RONDAS = ("dev", "docs")
"""Extras of developers."""


def oldest(project: Mapping[str, Any]) -> Iterator[str]:
    """Yield ``name==version`` for every requirement of a project's table that has a lower bound."""
    extras = project["optional-dependencies"]
    lists = [project["dependencies"], *(extras[name] for name in extras if name not in NOT_RONDAS)]
    for requirement in sorted({one for each in lists for one in each}):
        if bound := re.match(r"([\w-]+)>=([\d.]+)", requirement):
            yield f"{bound[1]}=={bound[2]}"


if __name__ == "__main__":
    print("\n".join(oldest(tomllib.loads(PYPROJECT.read_text())["project"])))
