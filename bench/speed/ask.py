"""What a measurement of speed is asked for, and how it says how far it is."""

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ask:
    """One measurement.

    Attributes
    ----------
    jobs
        How many.
    trace
        A log of Helios in place of random jobs.
    baseline
        Whether to measure the monolithic model beside the price engine.
    gap
        Relative gap that both are to reach.
    instance
        A packaged horizon; None: the case's usual one.
    seed
        Of what is generated, and of the search.
    limit_s
        Seconds that the monolithic model gets; of a decision, each of the policies.
    """

    jobs: int
    trace: Path | None = None
    baseline: bool = False
    gap: float = 1e-4
    instance: str | None = None
    seed: int = 0
    limit_s: float = 600.0


def tell(text: str) -> None:
    """Say on stderr how far a measurement is."""
    print(text, file=sys.stderr, flush=True)
