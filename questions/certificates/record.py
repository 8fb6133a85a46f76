"""The record of a round certificate, which `ronda.questions.certificates.verify` reads as JSON."""

from typing import Literal

from ronda.instances.base import Name, NonNegative, Record
from ronda.instances.files.canonical import encode
from ronda.instances.job import Option


class CertifiedOption(Record, frozen=True, kw_only=True):
    """A way to run a job.

    Attributes
    ----------
    option
        The option, as in a plan.
    value
        Its value, in units of the objective.
    moved
        Its value if the job, which has it now, moves to other nodes. None for other options.
    lasts_s
        Seconds for which it draws power. None for the whole energy window.
    uses
        What it uses of the rows of the site, by name.
    """

    option: Option
    value: float
    moved: float | None = None
    lasts_s: NonNegative | None = None
    uses: dict[str, float] = {}


class RoundCertificate(Record, frozen=True, kw_only=True):
    """A proof of how far a plan of a round is from the best, for readers who trust no solver.

    Attributes
    ----------
    format
        Version of the file format.
    round
        SHA-256 of the round; the first digits are ronda's fingerprint.
    model
        SHA-256 of the options and rows.
    objective
        Name of the objective.
    worth
        The plan is worth no less.
    bound
        No plan is worth more.
    prices
        Worth of one more unit of each row, by name.
    jobs
        All options of each job, by id, running jobs first. Not to run is worth 0.
    limits
        The most that chosen options use of each row of the site and of the user, by name.
    penalties
        Cost of a unit beyond a limit, for the limits that may be exceeded.
    counts
        Limits before one whose excess counts for it as well, with the amount for each unit.
    """

    format: Literal["ronda/round-certificate/1"] = "ronda/round-certificate/1"
    round: str
    model: str
    objective: Name
    worth: float
    bound: float
    prices: dict[str, NonNegative]
    jobs: dict[str, tuple[CertifiedOption, ...]]
    limits: dict[str, float] = {}
    penalties: dict[str, NonNegative] = {}
    counts: dict[str, dict[str, float]] = {}

    def text(self) -> bytes:
        """Return the certificate as JSON."""
        return encode(self) + b"\n"
