"""File records of fitted models and of predictors of job sizes.

Models are fitted in `ronda.solvers.fitting`. Sizes are predicted in
`ronda.formulations.prediction`.
"""

from typing import Literal

from ronda.instances.base import Count, Index, Name, NonNegative, Positive, Record, Share
from ronda.instances.profile import Memory, Parametric, PowerCurve, Sharing


class FitErrors(Record, frozen=True, kw_only=True):
    """The relative errors of a fit (0.01 is 1 %).

    `mape` is the mean and `largest` the largest absolute error of the fitted rows. `held_out_mape`
    is the mean error of rows that were left out of a fit and predicted by it (None without such
    rows).
    """

    rows: Count
    mape: NonNegative
    largest: NonNegative
    held_out_rows: Index = 0
    held_out_mape: NonNegative | None = None

    @property
    def ratio(self) -> float | None:
        """The ratio of held-out to fitted error, or None if it has no meaning."""
        if self.held_out_mape is None or self.mape <= 0.0:
            return None
        return self.held_out_mape / self.mape


class FitParameter(Record, frozen=True, kw_only=True):
    """One parameter of a fit.

    Its status is ``fitted``, ``fixed`` or ``at-bound``. A fitted parameter has a standard error
    from the curvature at the optimum (None if unknown). A fixed one is given, or the measurements
    do not determine it. A parameter is at its bound if the fit would otherwise leave the possible
    range.
    """

    name: Name
    value: float
    state: Literal["fitted", "fixed", "at-bound"] = "fitted"
    std_error: NonNegative | None = None


class FitRemark(Record, frozen=True, kw_only=True):
    """A warning with a code such as ``phi-fixed``; ``docs/fitting.md`` lists the codes."""

    code: Name
    message: str


class Residual(Record, frozen=True, kw_only=True):
    """A measurement and its predictions, in seconds per iteration, watts per GPU, or GiB.

    `row` is the line in the file. `at` holds the values of ``gpus``, ``nodes``, ``local_batch``,
    ``clock``, ``speed`` or ``models``. `held_out` is the prediction of a fit without the row (None
    if there are too few other rows).
    """

    row: Index
    at: dict[str, float]
    measured: Positive
    fitted: NonNegative
    held_out: NonNegative | None = None


def batch_suffix(batch: float | None) -> str:
    """Return the batch-size suffix of a fit's name, or an empty string without a batch size."""
    return f"-b{batch:.12g}" if batch else ""


class Fit(Record, frozen=True, kw_only=True):
    """A model of one application on one type of GPU, fitted to measurements.

    It holds the model of its kind: `throughput`, `power` (for one `batch` size if the measurements
    had only one), `sharing` of a GPU in one mode, or `memory` per number of models. `measured`
    holds the smallest and the largest value per axis; the model extrapolates beyond them. Packaged
    fits have no residuals.
    """

    name: Name
    kind: Literal["throughput", "power", "sharing", "memory"]
    application: Name
    gpu_type: Name
    batch: Positive | None = None
    throughput: Parametric | None = None
    power: PowerCurve | None = None
    sharing: Sharing | None = None
    memory: Memory | None = None
    measured: dict[str, tuple[float, float]]
    errors: FitErrors
    parameters: tuple[FitParameter, ...]
    remarks: tuple[FitRemark, ...] = ()
    residuals: tuple[Residual, ...] = ()
    source: str = ""
    licence: str = ""
    citation: str = ""

    @property
    def family(self) -> str:
        """The name without batch size, which all power curves of an application on a GPU share."""
        return self.name.removesuffix(batch_suffix(self.batch))

    def __post_init__(self) -> None:
        """Check that the fit holds the model of its kind and no other model."""
        kinds = ("throughput", "power", "sharing", "memory")
        if [kind for kind in kinds if getattr(self, kind) is not None] != [self.kind]:
            raise ValueError(f"a fit of {self.kind} holds that model and no other")


class Fits(Record, frozen=True, kw_only=True):
    """A file of fits with unique names, in any order."""

    format: Literal["ronda/fits/1"] = "ronda/fits/1"
    fits: tuple[Fit, ...]


class Past(Record, frozen=True, kw_only=True):
    """A past job in the memory of a predictor: its user, request and `work`."""

    gpus: Count
    work: Positive
    partition: Name = "default"
    user: str | None = None
    name: str | None = None


class Calibration(Record, frozen=True, kw_only=True):
    """The accuracy of a predictor on jobs that it was not fitted to.

    Attributes
    ----------
    jobs
        Number of jobs.
    correlation
        Spearman's rank correlation of predicted and true work.
    service_correlation
        The same correlation for GPUs times work.
    error
        Mean of ``|log(predicted / true)|``.
    coverage
        Fraction of jobs whose work is between the predicted 10 % and 90 % quantiles.
    shares
        Predicted probability of a size no larger than the true one, for each job; ascending.
    """

    jobs: Count
    correlation: float
    service_correlation: float
    error: NonNegative
    coverage: NonNegative
    shares: tuple[NonNegative, ...] = ()


class Predictor(Record, frozen=True, kw_only=True):
    """A predictor of job sizes from their users, requests and names, and from earlier jobs.

    Attributes
    ----------
    format
        Version of the file format.
    instance, fingerprint
        Name and fingerprint of the instance that it was trained on.
    alpha
        Weight of the rolling estimate relative to the model.
    users, partitions, names
        Words that the model distinguishes, in the order of their codes. Only the most frequent
        names are included.
    model
        Regression model of log work, in LightGBM's text form.
    errors
        Ratios of true to predicted work for the last jobs that it was not fitted to, per decade of
        the prediction.
    past
        The last completed jobs.
    calibration
        Accuracy of the predictor.
    versions
        Versions of the packages that trained it.
    checksum
        Checksum of all other fields.
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
