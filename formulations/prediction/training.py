"""Train the network that predicts progress: maximum likelihood of Beta distributions, by Adam.

Layers, initial weights, loss, optimiser and constants are those of ONES's artifact
(kurisusnowdeng/ones_sc21, src/monitor.py and src/config.py). With `artifact` its oddities are
reproduced: every b of a batch is scored against every a of it; prediction reads the raw dataset
size where training read its logarithm; all weights start from N(0, 1) on features as they are, so
that the ReLU may be dead from the start (then b stays 1). Otherwise pairs are scored, features are
standardised, and the ReLU starts open at the mean number of epochs to come.
"""

from functools import cached_property

import numpy as np
from scipy.special import digamma

from ronda.formulations.clock import checkpoint
from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError

HIDDEN = 64
PASSES = 60
"""Over all rows."""

BATCH = 8
"""Rows in a step."""

MAX_ROWS = 2000
"""No more are taken, drawn at random without replacement."""

RATE = 1e-4
"""Adam's step size."""

WEIGHT_DECAY = 1e-4
"""Of the weights, added to their gradient."""

DECAYS = (0.9, 0.999)
"""Adam's decay rates of the first and second moment (Kingma and Ba 2015)."""

TINY = 1e-8


class Network:
    """The weights (7 H + 1,): W1 (5, H), c1 (H,), w2 (H,), c2; features are (x - shift) / scale."""

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
        inner, outer, end = np.split(self.weights, [6 * self.hidden, 7 * self.hidden])
        matrix = inner[: self.INPUTS * self.hidden].reshape(self.INPUTS, self.hidden)
        return matrix, inner[self.INPUTS * self.hidden :], outer, end


def forward(network: Network, x: Floats) -> Floats:
    """Return (J,) b = 1 + ReLU(w2 tanh(W1 x + c1) + c2) for features (J, 5)."""
    w1, c1, w2, c2 = network.parts
    hidden = np.tanh((x - network.shift) / network.scale @ w1 + c1)
    return np.asarray(1.0 + np.maximum(hidden @ w2 + c2, 0.0))


def train(x: Floats, y: Floats, a: Floats, seed: int, *, artifact: bool) -> Network:
    """Return the network trained on (N, 5) features, (N,) progress y and epochs done a.

    Minimises the mean of -log Beta(y; a, b) in mini-batches; its derivative in b is
    ``digamma(b) - digamma(a + b) - log(1 - y)``.
    """
    rng = np.random.default_rng(seed)
    if len(x) > MAX_ROWS:
        taken = rng.choice(len(x), MAX_ROWS, replace=False)
        x, y, a = x[taken], y[taken], a[taken]
    weights = rng.standard_normal((Network.INPUTS + 2) * HIDDEN + 1)
    network = Network(weights, np.zeros(Network.INPUTS), np.ones(Network.INPUTS))
    if not artifact:
        deviation = x.std(axis=0)
        network = Network(weights, x.mean(axis=0), np.where(deviation > 0, deviation, 1.0))
        w1, c1, w2, c2 = network.parts
        w1 /= np.sqrt(Network.INPUTS)
        c1 *= 0.0
        w2 /= np.sqrt(HIDDEN)
        c2[:] = np.mean(a * (1.0 / y - 1.0))
    x, left = (x - network.shift) / network.scale, -np.log1p(-y)
    adam = _Adam(network.weights)
    gradient = Network(np.empty_like(weights), network.shift, network.scale)
    for _ in range(PASSES):
        checkpoint()
        order = rng.permutation(len(x))
        for begin in range(0, len(x), BATCH):
            rows = order[begin : begin + BATCH]
            _gradient(network, x[rows], left[rows], a[rows], gradient, artifact)
            adam.step(gradient.weights)
    return network


def _gradient(
    network: Network, x: Floats, left: Floats, a: Floats, into: Network, artifact: bool
) -> None:
    """Put the gradient of a batch's mean negative log-likelihood into another network.

    `x` is standardised, `left` is -log(1 - y).
    """
    w1, c1, w2, c2 = network.parts
    hidden = np.tanh(x @ w1 + c1)
    out = hidden @ w2 + c2
    b = 1.0 + np.maximum(out, 0.0)
    sums = digamma(a + b[:, None]).mean(axis=1) if artifact else digamma(a + b)
    slope = np.where(out > 0, (digamma(b) - sums + left) / len(x), 0.0)
    inner = np.multiply.outer(slope, w2) * (1.0 - hidden * hidden)
    to_w1, to_c1, to_w2, to_c2 = into.parts
    np.matmul(x.T, inner, out=to_w1)
    inner.sum(axis=0, out=to_c1)
    np.matmul(slope, hidden, out=to_w2)
    to_c2[0] = slope.sum()


class _Adam:
    """Adam on one vector, which it changes in place."""

    def __init__(self, weights: Floats) -> None:
        self.weights = weights
        self.first, self.second = np.zeros_like(weights), np.zeros_like(weights)
        self.steps = 0

    def step(self, gradient: Floats) -> None:
        """Take one step against a gradient."""
        self.steps += 1
        gradient += WEIGHT_DECAY * self.weights
        for moment, decay, part in (
            (self.first, DECAYS[0], gradient),
            (self.second, DECAYS[1], gradient * gradient),
        ):
            moment *= decay
            moment += (1.0 - decay) * part
        rate = RATE / (1.0 - DECAYS[0] ** self.steps)
        root = np.sqrt(self.second / (1.0 - DECAYS[1] ** self.steps))
        self.weights -= rate * self.first / (root + TINY)
