"""Training progress as a Beta posterior, predicted from what a job's log says.

ONES (Bian et al., SC'21) takes the share of its training that a job has behind it as ``rho ~
Beta(a, b)``, with ``a`` the epochs done and ``b``, about the epochs to come, predicted by a small
network from the log: E[rho] = a / (a + b). Network, likelihood and optimiser have the form of the
authors' artifact (kurisusnowdeng/ones_sc21, src/monitor.py).
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from ronda.formulations.prediction.training import Network, forward, train
from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError

FEATURES = ("log dataset size", "initial loss", "epochs done", "loss decrease", "accuracy")
"""Columns of a feature matrix."""

EPOCHS = FEATURES.index("epochs done")
MAX_INITIAL_LOSS = 100.0
SMALLEST = 1e-9
"""Samples of rho are kept this far from 0 and 1, where the work to come is infinite or none."""


def features(
    dataset_size: ArrayLike,
    initial_loss: ArrayLike,
    epochs: ArrayLike,
    loss: ArrayLike,
    accuracy: ArrayLike,
) -> Floats:
    """Return (J, 5) features of jobs, in the order of `FEATURES`.

    `initial_loss`, positive, is that before (or in) the first epoch, capped at 100. `epochs` done
    are positive and not necessarily whole: samples seen / dataset size. `accuracy` is a share in
    0..1. InputError for values that are not finite, or out of these ranges.
    """
    columns = [np.atleast_1d(np.asarray(c, dtype=float)) for c in (dataset_size, initial_loss)]
    size, first = columns[0], np.minimum(columns[1], MAX_INITIAL_LOSS)
    _positive("dataset size", size)
    _positive("initial loss", first)
    decrease = 1.0 - np.asarray(loss, dtype=float) / first
    made = np.broadcast_arrays(np.log(size), first, epochs, decrease, accuracy)
    return checked_features(np.stack(made, axis=-1).astype(float))


def checked_features(rows: ArrayLike) -> Floats:
    """Return a feature matrix as floats; InputError for a wrong shape or values out of range."""
    matrix = np.asarray(rows, dtype=float)
    if matrix.ndim != 2 or matrix.shape[1] != len(FEATURES):
        raise InputError("features", f"shape {matrix.shape}", f"(jobs, {len(FEATURES)})")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0].tolist()
        place = f"features[{row}]: {FEATURES[column]}"
        raise InputError(place, f"{matrix[row, column]}", "a finite number")
    _positive("epochs done", matrix[:, EPOCHS])
    accuracy = matrix[:, -1]
    out = np.flatnonzero((accuracy < 0) | (accuracy > 1))
    if len(out):
        found = f"{accuracy[out[0]]:g}"
        raise InputError(f"features[{out[0]}]: accuracy", found, "a share between 0 and 1")
    return matrix


@dataclass(frozen=True, slots=True, eq=False)
class BetaProgress:
    """What is believed of jobs' progress: independently, rho_j ~ Beta(a_j, b_j), (J,) each."""

    a: Floats
    b: Floats

    def __post_init__(self) -> None:
        """Refuse parameters that no Beta distribution has."""
        for name in ("a", "b"):
            array = np.asarray(getattr(self, name), dtype=float)
            if array.ndim != 1:
                raise InputError(f"progress: {name}", f"shape {array.shape}", "one number a job")
            _positive(f"progress: {name}", array)
            object.__setattr__(self, name, array)
        if len(self.a) != len(self.b):
            raise InputError("progress", f"{len(self.a)} a and {len(self.b)} b", "as many of each")

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.a)

    def mean(self) -> Floats:
        """Return (J,) E[rho] = a / (a + b)."""
        return self.a / (self.a + self.b)

    def quantile(self, q: ArrayLike) -> Floats:
        """Return the progress that rho is below with probability `q`: (J,), or (Q, J) for (Q,)."""
        share = np.asarray(q, dtype=float)
        if not ((share >= 0) & (share <= 1)).all():
            raise InputError("quantile", f"{share.tolist()}", "probabilities between 0 and 1")
        return np.asarray(betaincinv(self.a, self.b, share[..., None]))

    def sample(self, rng: Generator, n: int | None = None) -> Floats:
        """Draw progress, strictly within (0, 1), of all jobs: (J,), or (n, J) for `n` draws."""
        if n is not None and n < 1:
            raise InputError("samples", f"{n}", "at least 1")
        shape = len(self) if n is None else (n, len(self))
        return np.clip(rng.beta(self.a, self.b, shape), SMALLEST, 1.0 - SMALLEST)

    def work_left(self, rng: Generator, n: int = 1) -> Floats:
        """Return (J,) 1/rho - 1: the work to come per work done, averaged over `n` common draws.

        SRUF is linear in this factor, so one average serves every
        schedule. With one draw it is the score on progress sampled once, as the artifact does each
        tick (a Thompson-like exploration); the noise of the average falls with sqrt(n).
        """
        return np.asarray((1.0 / self.sample(rng, n) - 1.0).mean(axis=0))

    def expected_work_left(self) -> Floats:
        """Return (J,) E[1/rho - 1] = b / (a - 1), infinite for a <= 1: the average's limit."""
        more = self.a - 1.0
        left = np.full(len(self), np.inf)
        return np.asarray(np.divide(self.b, more, out=left, where=more > 0))


@dataclass(frozen=True, slots=True, eq=False)
class ProgressPredictor:
    """Predicts b from a job's log: ``b = 1 + ReLU(w2 tanh(W1 x + c1) + c2)``, a = epochs done.

    With `artifact` from the raw dataset size where its logarithm was trained on (it saturates the
    tanh).
    """

    network: Network
    artifact: bool = False

    @classmethod
    def fit(
        cls, rows: ArrayLike, progress: ArrayLike, *, seed: int, artifact: bool = False
    ) -> "ProgressPredictor":
        """Train on finished jobs by maximum likelihood; the same arguments, the same weights.

        `rows` (N, 5) are features after some epochs of finished jobs (`features`, `finished_rows`),
        and `progress` (N,) the share of a job's whole work that was done then. `artifact` is told
        in `ronda.formulations.prediction.training`. InputError without rows, or for shares beyond
        (0, 1).
        """
        x, y = checked_features(rows), np.asarray(progress, dtype=float)
        if y.shape != (len(x),) or not len(x):
            raise InputError("progress", f"shape {y.shape}", f"({max(len(x), 1)},), one a row")
        bad = np.flatnonzero(~((y > 0) & (y < 1)))
        if len(bad):
            found = f"{y[bad[0]]:g}"
            raise InputError(f"progress[{bad[0]}]", found, "a share above 0 and below 1")
        return cls(train(x, y, x[:, EPOCHS], seed, artifact=artifact), artifact)

    def predict(self, rows: ArrayLike) -> BetaProgress:
        """Return the posterior of jobs with (J, 5) features; InputError for those out of range."""
        x = checked_features(rows)
        a = x[:, EPOCHS].copy()
        if self.artifact:
            x = x.copy()
            x[:, 0] = np.exp(x[:, 0])
        return BetaProgress(a, forward(self.network, x))


def finished_rows(
    dataset_size: float, initial_loss: float, losses: ArrayLike, accuracies: ArrayLike
) -> tuple[Floats, Floats]:
    """Return what a finished job's log teaches: features (E - 1, 5) and progress (E - 1,).

    One row after each epoch but the last, whose progress is 1 (the artifact leaves it out too).
    `losses` and `accuracies` are (E,) after every epoch; the others as in `features`.
    """
    loss = np.asarray(losses, dtype=float)
    epochs = np.arange(1, len(loss))
    accuracy = np.asarray(accuracies, dtype=float)[:-1]
    rows = features(dataset_size, initial_loss, epochs, loss[:-1], accuracy)
    return rows, epochs / len(loss)


def _positive(place: str, array: Floats) -> None:
    """Refuse anything that is not a positive finite number."""
    bad = np.flatnonzero(~(np.isfinite(array) & (array > 0)))
    if len(bad):
        raise InputError(f"{place}[{bad[0]}]", f"{array[bad[0]]:g}", "a finite number above 0")
