"""Make the packaged profiles: ``python -m ronda.solvers.fitting.packaged --source DATA --out F``.

The same data give the same parameters; they are rounded to six digits, less than the spread of
any measurement.
"""

import argparse
import sys
from pathlib import Path
from typing import TypeVar

from msgspec import structs

from ronda.instances.errors import RondaError
from ronda.instances.files import fits as profiles
from ronda.instances.fit import Fit, FitErrors, FitParameter, Fits
from ronda.instances.profile import Parametric, PowerCurve
from ronda.solvers.fitting.sources import Progress, all_fits


def build(source: Path, progress: Progress) -> Fits:
    """Return all profiles to package, ordered by name and batch size.

    Parameters
    ----------
    source
        Folder of the public data.
    progress
        Told what is fitted next.

    Raises
    ------
    InputError
        If anything in the data is missing or not as expected.
    """
    fits = [packed(fit) for fit in all_fits(source, progress)]
    return Fits(fits=tuple(sorted(fits, key=_order)))


def _order(fit: Fit) -> tuple[str, float]:
    """Return the key by which fits are ordered: batch sizes as numbers."""
    return fit.family, fit.batch or 0.0


def packed(fit: Fit) -> Fit:
    """Return a fit with short numbers and without its residuals."""
    return structs.replace(
        fit,
        throughput=None if fit.throughput is None else _shorten(fit.throughput),
        power=None if fit.power is None else _shorten(fit.power),
        measured={axis: (_short(low), _short(high)) for axis, (low, high) in fit.measured.items()},
        errors=_shorten(fit.errors),
        parameters=tuple(_shorten(p) for p in fit.parameters),
        residuals=(),
    )


def _short(value: float) -> float:
    """Return a number with six significant digits."""
    return float(f"{value:.6g}")


Shortened = TypeVar("Shortened", Parametric, PowerCurve, FitErrors, FitParameter)


def _shorten(record: Shortened) -> Shortened:
    """Return a record with its numbers shortened."""
    values = {name: getattr(record, name) for name in record.__struct_fields__}
    floats = {name: _short(v) for name, v in values.items() if isinstance(v, float)}
    return structs.replace(record, **floats)


def _tell(name: str) -> None:
    """Say on stderr what is fitted next."""
    sys.stderr.write(f"{name}\n")


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
        fits = build(options.source, _tell)
        profiles.write(fits, options.out)
    except RondaError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{options.out}: {len(fits.fits)} fits\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
