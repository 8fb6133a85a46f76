"""Command line of the recipes."""

import argparse
import sys
from pathlib import Path

from ronda.instances.errors import RondaError
from tools.recipes.build import build


def main() -> int:
    """Rebuild the packaged instances and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.recipes",
        description="Rebuild the packaged instances from public data; same data, same files.",
        epilog="example: python -m tools.recipes --source data --out instances/data",
    )
    parser.add_argument("--source", type=Path, required=True, help="folder of the public data")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    options = parser.parse_args()
    try:
        for name in build(options.source, options.out):
            sys.stdout.write(f"{name}\n")
    except RondaError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
