"""Models from measurements: from a table to fitted profiles.

The parts: `columns` and `reading` read, `identify` says what a table can tell,
`throughput` and `power` fit, `report` judges. ``docs/fitting.md`` is their manual.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ronda.instances.fit import Fit, Fits
from ronda.solvers.fitting.power import fit_power
from ronda.solvers.fitting.reading import Reading, kind_of, read_steps, read_watts
from ronda.solvers.fitting.throughput import fit_throughput

Progress = Callable[[str, float], None]
"""Called with the name of what is fitted and the share of all work that is done."""


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """How to fit a table.

    Attributes
    ----------
    kind
        What the table holds; None: told by its columns.
    fixed
        Parameters that are known, by name.
    shared
        Power: whether batch sizes share the shape of their curves.
    held_out
        Whether to predict rows that were left out as well.
    seed
        Same seed, same fits.
    """

    kind: Literal["throughput", "power"] | None = None
    fixed: Mapping[str, float] | None = None
    shared: bool = True
    held_out: bool = True
    seed: int = 0


def fit_table(
    path: str | Path,
    reading: Reading | None = None,
    fitting: Fitting | None = None,
    progress: Progress | None = None,
) -> Fits:
    """Fit every application of a table of measurements.

    Parameters
    ----------
    path
        A CSV file; `docs/fitting.md` lists its columns.
    reading
        What the table does not say itself.
    fitting
        How to fit.
    progress
        Told of what is done.

    Returns
    -------
    Fits
        One fit for each application and GPU, and for power each batch size, ordered as in the
        table.

    Raises
    ------
    InputError
        If the table cannot be used, naming file and row, or cannot tell a parameter, naming it.
    """
    reading, how = reading or Reading(), fitting or Fitting()
    tell = progress or (lambda _name, _share: None)
    if (how.kind or kind_of(path)) == "throughput":
        tables = read_steps(path, reading)
        found: list[Fit] = []
        for k, steps in enumerate(tables):
            found.append(
                fit_throughput(
                    steps,
                    fixed=how.fixed,
                    seed=how.seed,
                    held_out=how.held_out,
                    progress=_share(tell, steps.application, k, len(tables)),
                )
            )
    else:
        found = _power(path, reading, how, tell)
    return Fits(fits=tuple(found))


def _power(path: str | Path, reading: Reading, how: Fitting, tell: Progress) -> list[Fit]:
    """Fit the power curves of a table."""
    tables = read_watts(path, reading)
    found: list[Fit] = []
    for k, watts in enumerate(tables):
        found += fit_power(
            watts,
            fixed=how.fixed,
            shared=how.shared,
            seed=how.seed,
            held_out=how.held_out,
            progress=_share(tell, watts.application, k, len(tables)),
        )
    return found


def _share(tell: Progress, name: str, k: int, count: int) -> Callable[[float], None]:
    """Return the progress of part k of so many."""
    return lambda share: tell(name, (k + share) / count)
