"""Train the network that predicts progress: maximum likelihood of Beta distributions, by Adam.

Layers, initial weights, loss, optimiser and constants are those of ONES's artifact
(kurisusnowdeng/ones_sc21, src/monitor.py and src/config.py). `Training.artifact` reproduces its
oddities; without it they are mended.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import digamma

from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError

DECAYS = (0.9, 0.999)
"""Adam's decay rates of the first and second moment (Kingma and Ba 2015)."""

TINY = 1e-8


@dataclass(frozen=True, slots=True)
class Training:
    """How to train; the defaults are the artifact's.

    Attributes
    ----------
    hidden
        Units of the hidden layer.
    epochs, batch
        Passes over the rows, and rows in a step.
    rate, weight_decay
        Adam's step size, and the factor of the weights that is added to their gradient.
    max_rows
        No more rows than this are taken, drawn at random without replacement.
    artifact
        Reproduce the artifact's oddities: every b of a batch is scored against every a of it;
        prediction reads the raw dataset size where training read its logarithm; all weights
        start from N(0, 1) on features as they are, so that the ReLU may be dead from the start
        (then b stays 1). Otherwise pairs are scored, features are standardised, and the
        ReLU starts open at the mean number of epochs to come.
    """

    hidden: int = 64
    epochs: int = 60
    batch: int = 8
    rate: float = 1e-4
    weight_decay: float = 1e-4
    max_rows: int = 2000
    artifact: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot train."""
        for name in ("hidden", "epochs", "batch", "max_rows"):
            if getattr(self, name) < 1:
                raise InputError(f"training: {name}", f"{getattr(self, name)}", "at least 1")
        if not (np.isfinite(self.rate) and self.rate > 0):
            raise InputError("training: rate", f"{self.rate:g}", "a finite number above 0")
        if not (np.isfinite(self.weight_decay) and self.weight_decay >= 0):
            found = f"{self.weight_decay:g}"
            raise InputError("training: weight_decay", found, "a finite number, 0 or more")


class Network:
    """The weights of the two layers, in one vector that Adam works on.

    Parameters
    ----------
    weights
        (7 H + 1,): W1 (5, H), c1 (H,), w2 (H,), c2, flat.
    shift, scale
        (5,) features are taken as (x - shift) / scale.
    """

    INPUTS = 5

    def __init__(self, weights: Floats, shift: Floats, scale: Floats) -> None:
        hidden, rest = divmod(len(weights) - 1, self.INPUTS + 2)
        if rest:
            raise InputError("network", f"{len(weights)} weights", "7 for each hidden unit, and 1")
        self.weights, self.shift, self.scale = weights, shift, scale
        self.hidden = hidden

    @cached_property
    def parts(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Views of the weights: W1 (5, H), c1 (H,), w2 (H,), c2 (1,)."""
        return parts(self.weights, self.hidden)


def parts(vector: Floats, hidden: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return views of a vector as the weights' arrays."""
    inner, outer, end = np.split(vector, [6 * hidden, 7 * hidden])
    matrix = inner[: Network.INPUTS * hidden].reshape(Network.INPUTS, hidden)
    return matrix, inner[Network.INPUTS * hidden :], outer, end


def forward(network: Network, x: Floats) -> Floats:
    """Return (J,) b = 1 + ReLU(w2 tanh(W1 x + c1) + c2) for features (J, 5)."""
    w1, c1, w2, c2 = network.parts
    hidden = np.tanh((x - network.shift) / network.scale @ w1 + c1)
    return np.asarray(1.0 + np.maximum(hidden @ w2 + c2, 0.0))


def initial(
    x: Floats, y: Floats, a: Floats, training: Training, rng: np.random.Generator
) -> Network:
    """Return the network before training."""
    weights = rng.standard_normal((Network.INPUTS + 2) * training.hidden + 1)
    if training.artifact:
        return Network(weights, np.zeros(Network.INPUTS), np.ones(Network.INPUTS))
    deviation = x.std(axis=0)
    network = Network(weights, x.mean(axis=0), np.where(deviation > 0, deviation, 1.0))
    w1, c1, w2, c2 = network.parts
    w1 /= np.sqrt(Network.INPUTS)
    c1 *= 0.0
    w2 /= np.sqrt(training.hidden)
    c2[:] = np.mean(a * (1.0 / y - 1.0))
    return network


def train(x: Floats, y: Floats, a: Floats, training: Training, seed: int) -> Network:
    """Return the network after training.

    Minimises the mean of -log Beta(y; a, b) in mini-batches; its derivative in b is
    ``digamma(b) - digamma(a + b) - log(1 - y)``.

    Parameters
    ----------
    x
        (N, 5) features.
    y
        (N,) progress, within (0, 1).
    a
        (N,) epochs done.
    training
        How.
    seed
        Of the initial weights, and of the order of the rows.
    """
    rng = np.random.default_rng(seed)
    if len(x) > training.max_rows:
        taken = rng.choice(len(x), training.max_rows, replace=False)
        x, y, a = x[taken], y[taken], a[taken]
    network = initial(x, y, a, training, rng)
    x, left = (x - network.shift) / network.scale, -np.log1p(-y)
    adam = _Adam(network.weights, training)
    gradient = np.empty_like(network.weights)
    for _ in range(training.epochs):
        order = rng.permutation(len(x))
        for begin in range(0, len(x), training.batch):
            rows = order[begin : begin + training.batch]
            _gradient(network, x[rows], left[rows], a[rows], gradient, training.artifact)
            adam.step(gradient)
    return network


def _gradient(
    network: Network, x: Floats, left: Floats, a: Floats, into: Floats, artifact: bool
) -> None:
    """Put the gradient of the mean negative log-likelihood of a batch into a vector.

    `x` is standardised, `left` is -log(1 - y).
    """
    w1, c1, w2, c2 = network.parts
    hidden = np.tanh(x @ w1 + c1)
    out = hidden @ w2 + c2
    b = 1.0 + np.maximum(out, 0.0)
    sums = digamma(a + b[:, None]).mean(axis=1) if artifact else digamma(a + b)
    slope = np.where(out > 0, (digamma(b) - sums + left) / len(x), 0.0)
    inner = np.multiply.outer(slope, w2) * (1.0 - hidden * hidden)
    to_w1, to_c1, to_w2, to_c2 = parts(into, network.hidden)
    np.matmul(x.T, inner, out=to_w1)
    inner.sum(axis=0, out=to_c1)
    np.matmul(slope, hidden, out=to_w2)
    to_c2[0] = slope.sum()


class _Adam:
    """Adam on one vector, which it changes in place."""

    def __init__(self, weights: Floats, training: Training) -> None:
        self.weights, self.training = weights, training
        self.first, self.second = np.zeros_like(weights), np.zeros_like(weights)
        self.steps = 0

    def step(self, gradient: Floats) -> None:
        """Take one step against a gradient."""
        self.steps += 1
        gradient += self.training.weight_decay * self.weights
        for moment, decay, part in (
            (self.first, DECAYS[0], gradient),
            (self.second, DECAYS[1], gradient * gradient),
        ):
            moment *= decay
            moment += (1.0 - decay) * part
        rate = self.training.rate / (1.0 - DECAYS[0] ** self.steps)
        root = np.sqrt(self.second / (1.0 - DECAYS[1] ** self.steps))
        self.weights -= rate * self.first / (root + TINY)
