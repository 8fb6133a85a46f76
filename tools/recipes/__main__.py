"""Command line of the recipes."""

import sys

from tools.program import run
from tools.recipes.build import build


def main() -> int:
    """Rebuild the packaged instances and return the exit code."""
    about = "Rebuild the packaged instances from public data; same data, same files."
    return run("tools.recipes", about, "folder to write to, as instances/data", build)


if __name__ == "__main__":
    sys.exit(main())
