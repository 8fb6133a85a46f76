"""Records of fits of models, and of predictors of job sizes, which are kept in files.

Models are fitted in `ronda.solvers.fitting`, sizes predicted in `ronda.formulations.prediction`.
"""

from typing import Literal

from ronda.instances.base import Count, Index, Name, NonNegative, Positive, Record, Share
from ronda.instances.profile import Memory, Parametric, PowerCurve, Sharing


class FitErrors(Record, frozen=True, kw_only=True):
    """The errors of a fit; all are relative, 0.01 is 1 %.

    `mape` is the mean and `largest` the largest absolute error of the fitted rows; `held_out_mape`
    that of the rows that were left out of a fit once and predicted by it (None without any).
    """

    rows: Count
    mape: NonNegative
    largest: NonNegative
    held_out_rows: Index = 0
    held_out_mape: NonNegative | None = None

    @property
    def ratio(self) -> float | None:
        """The ratio of held-out to fitted error, None where it has no meaning."""
        if self.held_out_mape is None or self.mape <= 0.0:
            return None
        return self.held_out_mape / self.mape


class FitParameter(Record, frozen=True, kw_only=True):
    """One parameter of a fit.

    It is ``fitted``, with a standard error from the curvature at the optimum (None: unknown);
    ``fixed`` from outside, or for lack of measurements that tell it; or ``at-bound``, if the fit
    would go beyond the possible.
    """

    name: Name
    value: float
    state: Literal["fitted", "fixed", "at-bound"] = "fitted"
    std_error: NonNegative | None = None


class FitRemark(Record, frozen=True, kw_only=True):
    """A named warning such as ``phi-fixed``; ``docs/fitting.md`` lists the codes."""

    code: Name
    message: str


class Residual(Record, frozen=True, kw_only=True):
    """One measurement and its predictions: seconds per iteration, watts per GPU, or GiB.

    `row` is the line in the file, `at` the values of ``gpus``, ``nodes``, ``local_batch``,
    ``clock``, ``speed`` or ``models``; `held_out` is the prediction of a fit without this row (None
    if the other rows are too few).
    """

    row: Index
    at: dict[str, float]
    measured: Positive
    fitted: NonNegative
    held_out: NonNegative | None = None


def batch_suffix(batch: float | None) -> str:
    """Return the suffix for the batch size in the name of a fit, empty if it has none."""
    return f"-b{batch:.12g}" if batch else ""


class Fit(Record, frozen=True, kw_only=True):
    """A model of one application on one type of GPU, fitted to measurements.

    It holds the model of its kind: `throughput`, `power` (for one `batch` size if the measurements
    had one), `sharing` of a GPU in one mode, or `memory` by number of models. `measured` has the
    smallest and the largest value by axis, beyond which the model extrapolates. The packaged fits
    come without residuals.
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
        """The name without batch size, common to all power curves of an application on a GPU."""
        return self.name.removesuffix(batch_suffix(self.batch))

    def __post_init__(self) -> None:
        """Ensure that the fit holds the model of its kind and no other."""
        kinds = ("throughput", "power", "sharing", "memory")
        if [kind for kind in kinds if getattr(self, kind) is not None] != [self.kind]:
            raise ValueError(f"a fit of {self.kind} holds that model and no other")


class Fits(Record, frozen=True, kw_only=True):
    """A file of fits, in any order; names are unique."""

    format: Literal["ronda/fits/1"] = "ronda/fits/1"
    fits: tuple[Fit, ...]


class Past(Record, frozen=True, kw_only=True):
    """A complete job as predictors remember it: its user, request and `work`."""

    gpus: Count
    work: Positive
    partition: Name = "default"
    user: str | None = None
    name: str | None = None


class Calibration(Record, frozen=True, kw_only=True):
    """The accuracy of a predictor on jobs to which it was not fitted.

    Attributes
    ----------
    jobs
        Number of jobs.
    correlation
        Spearman's rank correlation of predicted and true work.
    service_correlation
        Likewise for GPUs times work.
    error
        Mean of ``|log(predicted / true)|``.
    coverage
        Share of jobs whose work is between the believed quantiles of 10 and 90 %.
    shares
        The believed probability of a size that is not larger, for each job; ascending.
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
        Instance on which it was trained.
    alpha
        Weight of the rolling estimate against that of the model.
    users, partitions, names
        Words that the model tells apart, by place; among names the most frequent.
    model
        The regression of log work, in LightGBM's text form.
    errors
        Ratios of true to predicted work of the last jobs that were not fitted, by the decade of the
        prediction.
    past
        The last complete jobs.
    calibration
        Its accuracy.
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
