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
        Its value if the job, which has it, moves to other nodes. None for other options.
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


class CertifiedJob(Record, frozen=True, kw_only=True):
    """A job of the round.

    Attributes
    ----------
    id
        Id of the job.
    options
        All ways to run it. Not to run is worth 0.
    """

    id: Name
    options: tuple[CertifiedOption, ...]


class CertifiedRow(Record, frozen=True, kw_only=True):
    """A limit of the site, or of the user, on what chosen options use together.

    Attributes
    ----------
    name
        Name in prices.
    limit
        The most that they use.
    penalty
        Cost of a unit beyond the limit. None for a limit that is never exceeded.
    counts
        Rows before it whose excess counts as well, with the amount for each unit.
    """

    name: Name
    limit: float
    penalty: float | None = None
    counts: dict[str, float] = {}


class RoundCertificate(Record, frozen=True, kw_only=True):
    """A proof of how far a plan of a round is from the best, for readers who trust no solver.

    Attributes
    ----------
    format
        Version of the file format.
    round
        SHA-256 of the round as ronda writes it, whose first digits are ronda's fingerprint.
    model
        SHA-256 of ``jobs`` and ``rows``.
    objective
        Name of the objective.
    worth
        The plan is worth no less.
    bound
        No plan is worth more.
    prices
        Worth of one more unit of each row, by name.
    jobs
        The jobs of the round, running ones first.
    rows
        The rows of the site and of the user.
    """

    format: Literal["ronda/round-certificate/1"] = "ronda/round-certificate/1"
    round: str
    model: str
    objective: Name
    worth: float
    bound: float
    prices: dict[str, NonNegative]
    jobs: tuple[CertifiedJob, ...]
    rows: tuple[CertifiedRow, ...]

    def text(self) -> bytes:
        """Return the certificate as JSON, as `verify` reads it."""
        return encode(self)
