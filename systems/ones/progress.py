"""The training progress of a job as a Beta posterior, predicted from the job's log.

ONES models the completed share of a job's training as ``rho ~ Beta(a, b)``. ``a`` is the number of
epochs done, and a small network predicts ``b``, roughly the number of epochs left, from the log:
E[rho] = a / (a + b). Features, network and likelihood are those of the artifact (src/monitor.py),
but L-BFGS replaces Adam and features are standardised.
"""

from dataclasses import dataclass
from math import log
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import betaln, digamma

from ronda.instances.base import Floats
from ronda.instances.clock import checkpoint
from ronda.instances.errors import InputError

FEATURES = ("log dataset size", "initial loss", "epochs done", "loss decrease", "accuracy")
"""The columns of a feature matrix."""

EPOCHS = FEATURES.index("epochs done")
SMALLEST = 1e-9
"""Least distance of samples of rho from 0 and 1, where the remaining work is infinite or 0."""

HIDDEN = 64

MAX_ROWS = 2000
"""Largest number of training rows, which are drawn at random without replacement."""

WEIGHT_DECAY = 1e-2
"""Factor of the penalty on the weights: half of it times their squared norm is added to the loss.

On jobs held out of ``ones-history``, 1e-2 predicts better than the 1e-4 of the artifact, which
stops its training early.
"""


def features(
    dataset_size: float, initial_loss: float, epochs: float, loss: float, accuracy: float
) -> list[float]:
    """Return a job's features, in the order of `FEATURES`.

    `initial_loss` is the positive loss before (or in) the first epoch, capped at 100. `epochs` is
    the positive number of samples seen / dataset size, which need not be whole. An `accuracy` above
    1, as in logs in percent, counts as 1.
    """
    first = min(initial_loss, 100.0)
    decrease = max(-1e6, 1.0 - loss / first)  # it stays finite if the loss explodes
    return [log(dataset_size), first, epochs, decrease, min(1.0, accuracy)]


def checked(rows: ArrayLike) -> Floats:
    """Return a feature matrix as floats; raise InputError for a wrong shape or invalid values."""
    matrix = np.asarray(rows, dtype=float)
    if matrix.ndim != 2 or matrix.shape[1] != len(FEATURES):
        raise InputError("features", f"shape {matrix.shape}", f"(jobs, {len(FEATURES)})")
    wrong = ~np.isfinite(matrix)
    wrong[:, EPOCHS] |= matrix[:, EPOCHS] <= 0
    wrong[:, -1] |= (matrix[:, -1] < 0) | (matrix[:, -1] > 1)
    for row, column in np.argwhere(wrong).tolist():
        special = {EPOCHS: "a finite number above 0", 4: "a share between 0 and 1"}
        place = f"features[{row}]: {FEATURES[column]}"
        raise InputError(place, f"{matrix[row, column]:g}", special.get(column, "a finite number"))
    return matrix


@dataclass(frozen=True, slots=True, eq=False)
class BetaProgress:
    """The distribution of the progress of independent jobs: rho_j ~ Beta(a_j, b_j), both (J,)."""

    a: Floats
    b: Floats

    def mean(self) -> Floats:
        """Return E[rho] = a / (a + b), shape (J,)."""
        return self.a / (self.a + self.b)

    def work_left(self, rng: Generator) -> Floats:
        """Draw 1/rho - 1, the remaining work divided by the work done, shape (J,).

        SRUF is linear in this factor. The artifact draws it once per tick, which explores as
        Thompson sampling does.
        """
        rho = np.clip(rng.beta(self.a, self.b), SMALLEST, 1.0 - SMALLEST)
        return np.asarray(1.0 / rho - 1.0)


@dataclass(frozen=True, eq=False)
class ProgressPredictor:
    """A predictor of b from a job's log: ``b = 1 + ReLU(w2 tanh(W1 x + c1) + c2)``.

    a is the number of epochs done. `weights` (7 H + 1,) holds W1 (5, H), c1 (H,), w2 (H,) and c2. x
    is the features less `shift` (5,), divided by `scale` (5,).
    """

    weights: Floats
    shift: Floats
    scale: Floats

    @classmethod
    def fit(cls, rows: ArrayLike, progress: ArrayLike, *, seed: int) -> Self:
        """Train on finished jobs by maximum likelihood; the same arguments give the same weights.

        `rows` (N, 5) are features after some epochs of finished jobs, and `progress` (N,) is the
        share of a job's total work done by then. InputError is raised without rows or for shares
        outside (0, 1).
        """
        x, y = checked(rows), np.asarray(progress, dtype=float)
        if y.shape != (len(x),) or not len(x):
            raise InputError("progress", f"shape {y.shape}", f"({max(len(x), 1)},), one a row")
        for row in np.flatnonzero(~((y > 0) & (y < 1))):
            raise InputError(f"progress[{row}]", f"{y[row]:g}", "a share above 0 and below 1")
        rng = np.random.default_rng(seed)
        if len(x) > MAX_ROWS:
            taken = rng.choice(len(x), MAX_ROWS, replace=False)
            x, y = x[taken], y[taken]
        inner = rng.standard_normal(5 * HIDDEN) / np.sqrt(5)
        outer = rng.standard_normal(HIDDEN) / np.sqrt(HIDDEN)
        a = x[:, EPOCHS]
        to_come = np.mean(a * (1.0 / y - 1.0))  # the ReLU opens there
        start = np.concatenate((inner, np.zeros(HIDDEN), outer, [to_come]))
        shift, deviation = x.mean(axis=0), x.std(axis=0)
        scale = np.where(deviation > 0, deviation, 1.0)
        data = ((x - shift) / scale, y, a)
        # More iterations predict no better on held-out jobs.
        found = minimize(loss, start, data, "L-BFGS-B", True, options={"maxiter": 30})
        return cls(found.x, shift, scale)

    def predict(self, rows: ArrayLike) -> BetaProgress:
        """Return the posterior for features (J, 5) of jobs; raise InputError for invalid ones."""
        x = checked(rows)
        _, out = _forward(self.weights, (x - self.shift) / self.scale)
        return BetaProgress(x[:, EPOCHS], 1.0 + np.maximum(out, 0))


def _parts(weights: Floats) -> list[Floats]:
    """Return W1 (5, H), c1 (H,), w2 (H,) and c2 (1,)."""
    hidden = len(weights) // 7
    inner, *rest = np.split(weights, [5 * hidden, 6 * hidden, 7 * hidden])
    return [inner.reshape(5, hidden), *rest]


def _forward(weights: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return the hidden units (J, H) and the output (J,) before the ReLU.

    `einsum` is used because the sums of BLAS depend on its number of threads.
    """
    w1, c1, w2, c2 = _parts(weights)
    hidden = np.tanh(np.einsum("nf,fh->nh", x, w1) + c1)
    return hidden, np.einsum("nh,h->n", hidden, w2) + c2


def loss(weights: Floats, x: Floats, y: Floats, a: Floats) -> tuple[float, Floats]:
    """Return the mean of -log Beta(y; a, b) over (N,) rows, with weight decay, and its gradient.

    Terms that do not depend on b are left out. The derivative in b is ``digamma(b) - digamma(a + b)
    - log(1 - y)``.
    """
    checkpoint()
    hidden, out = _forward(weights, x)
    b, left = 1.0 + np.maximum(out, 0.0), -np.log1p(-y)
    value = np.mean(betaln(a, b) + (b - 1.0) * left)
    slope = digamma(b) - digamma(a + b) + left
    slope = np.where(out > 0, slope, 0.0) / len(x)
    inner = slope[:, None] * _parts(weights)[2] * (1.0 - hidden * hidden)
    to_w1, to_w2 = np.einsum("nf,nh->fh", x, inner), np.einsum("n,nh->h", slope, hidden)
    gradient = np.concatenate((to_w1.ravel(), inner.sum(axis=0), to_w2, [slope.sum()]))
    decay = WEIGHT_DECAY / 2 * np.square(weights).sum()
    return float(value + decay), gradient + WEIGHT_DECAY * weights
