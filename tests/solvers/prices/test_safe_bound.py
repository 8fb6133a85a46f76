"""The bound at any prices, rounded outwards, against the same sum in rationals."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable
from ronda.solvers.prices.dual import bound_at


def spread(rng, size, *, signed=False):
    """Return numbers over ten orders of magnitude, some of them 0."""
    found = 10.0 ** rng.uniform(-5, 5, size) * (rng.random(size) < 0.8)
    return found * rng.choice([1.0, -1.0], size) if signed else found


def drawn(seed):
    """Return a problem of a few jobs and blocks, and prices; the kinds of use are told, or not."""
    rng = np.random.default_rng(seed)
    jobs, resources, blocks = rng.integers(1, [6, 5, 3])
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 5, jobs))])
    use = Uses.of(spread(rng, (resources, start[-1]), signed=bool(rng.random() < 0.5)))
    problem = Separable(
        start=start,
        value=spread(rng, start[-1], signed=True),
        use=use.by_kinds() if rng.random() < 0.5 else use,
        capacity=spread(rng, resources, signed=True),
        names=tuple("abcde"[:resources]),
        must=rng.random(jobs) < 0.3,
        block_value=spread(rng, blocks, signed=True),
        block_use=spread(rng, (resources, blocks), signed=True),
        block_count=rng.integers(0, 9, blocks).astype(float),
        block_integer=np.ones(blocks, dtype=bool),
    )
    return problem, spread(rng, resources)


def exactly(problem, prices):
    """Return D(p) in rationals: sum p c + sum_j max (v - p a) + sum_b n max(0, v - p a)."""
    price = [Fraction(p) for p in prices.tolist()]

    def surplus(value, use):
        pairs = zip(price, use.tolist(), strict=True)
        return Fraction(value) - sum(p * Fraction(a) for p, a in pairs)

    use = problem.use.dense()
    total = -surplus(0.0, problem.capacity)
    for j in range(problem.jobs):
        own = range(problem.start[j], problem.start[j + 1])
        found = [surplus(float(problem.value[k]), use[:, k]) for k in own]
        total += max(found) if problem.must[j] else max(0, *found)
    for b, count in enumerate(problem.block_count.tolist()):
        gain = surplus(float(problem.block_value[b]), problem.block_use[:, b])
        total += Fraction(count) * max(0, gain)
    return total


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_the_bound_is_never_below_the_exact_one(seed):
    """And above it by no more than the last digits of the largest number that is added."""
    problem, prices = drawn(seed)
    exact, found = exactly(problem, prices), bound_at(problem, prices)
    assert Fraction(found) >= exact
    sizes = prices @ np.abs(problem.use.dense()), prices @ np.abs(problem.block_use)
    most = sum(np.abs(problem.value) + sizes[0]) + prices @ np.abs(problem.capacity)
    most += problem.block_count @ (np.abs(problem.block_value) + sizes[1])
    assert found - float(exact) <= 1e-14 * most


def test_prices_below_zero_prove_nothing_and_count_as_zero():
    """Two jobs of one GPU each are worth 3 + 2 without a limit; a price of -1 would say 2 + 5."""
    values, ones = np.array([3.0, 2.0]), np.ones((1, 2))
    problem = Separable.without_blocks(np.arange(3), values, ones, np.ones(1), ("gpus",))
    assert bound_at(problem, np.array([-1.0])) == bound_at(problem, np.zeros(1))
    assert 5.0 <= bound_at(problem, np.zeros(1)) <= 5.0 + 1e-14
