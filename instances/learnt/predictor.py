"""What a predictor of job sizes has learnt from the jobs of an instance: a file of its own kind."""

from typing import Literal

from ronda.instances.base import Count, Name, NonNegative, Positive, Record, Share


class Past(Record, frozen=True, kw_only=True):
    """A job that is complete, as predictors remember it: who asked for what, and its `work`."""

    gpus: Count
    work: Positive
    partition: Name = "default"
    user: str | None = None
    name: str | None = None


class Calibration(Record, frozen=True, kw_only=True):
    """How right a predictor was on jobs that it was not fitted to.

    Attributes
    ----------
    jobs
        How many there were.
    correlation
        Spearman's rank correlation of predicted and true work.
    service_correlation
        Likewise of GPUs times work.
    error
        Mean of ``|log(predicted / true)|``.
    coverage
        Share of jobs whose work is between the believed quantiles of 10 and 90 %.
    shares
        Of each job, the believed probability of a size that is not larger; ascending.
    """

    jobs: Count
    correlation: float
    service_correlation: float
    error: NonNegative
    coverage: NonNegative
    shares: tuple[NonNegative, ...] = ()


class Predictor(Record, frozen=True, kw_only=True):
    """Believes in sizes of jobs by who asks for what, and by how like jobs went before.

    Attributes
    ----------
    format
        Version of the file format.
    instance, fingerprint
        What it was trained on.
    alpha
        Weight of the rolling estimate beside the model's.
    users, partitions, names
        What the model tells apart, by place; of names the most frequent.
    model
        The regression of log work, in LightGBM's text form.
    errors
        True over predicted work of jobs that were not fitted, by the decade of what was predicted:
        the last ones.
    past
        The last jobs that were complete.
    calibration
        How right it was.
    versions
        Of what trained it.
    checksum
        Of all the rest.
    """

    format: Literal["ronda/predictor/1"] = "ronda/predictor/1"
    instance: Name
    fingerprint: str
    alpha: Share | Literal[0] = 0.1
    users: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    model: str
    errors: dict[str, tuple[Positive, ...]] = {}
    past: tuple[Past, ...] = ()
    calibration: Calibration
    versions: dict[str, str] = {}
    checksum: str = ""
