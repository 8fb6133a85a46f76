"""Make the packaged profiles: ``python -m ronda.solvers.fitting.packaged --source DATA --out F``.

The same data give the same parameters; they are rounded to six digits, less than the spread of
any measurement.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from ronda.instances.errors import RondaError
from ronda.instances.files import fits as profiles
from ronda.instances.fit import Fit, Fits
from ronda.solvers.fitting.sources import all_fits


def packed(fits: Iterable[Fit]) -> Fits:
    """Return fits by name and batch size, with short numbers and without their residuals."""
    ordered = sorted(fits, key=lambda fit: (fit.family, fit.batch or 0.0))
    bare = Fits(fits=tuple(structs.replace(fit, residuals=()) for fit in ordered))
    return msgspec.convert(_short(msgspec.to_builtins(bare)), Fits)


def _short(value: Any) -> Any:
    """Return a tree of plain values with its numbers rounded to six significant digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _short(inner) for key, inner in value.items()}
    return [_short(inner) for inner in value] if isinstance(value, list | tuple) else value


def main() -> int:
    """Make the file and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m ronda.solvers.fitting.packaged",
        description="Fit the packaged profiles to public data; same data, same file.",
        epilog="example: python -m ronda.solvers.fitting.packaged --source data "
        "--out instances/data/profiles.json",
    )
    parser.add_argument("--source", type=Path, required=True, help="folder of the public data")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    options = parser.parse_args()
    try:
        fits = packed(all_fits(options.source))
        profiles.write(fits, options.out)
    except RondaError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{options.out}: {len(fits.fits)} fits\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
