"""HFHT's waves, and what they cost."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.fusion.waves import (
    DryRun,
    best_wave_s,
    class_sizes,
    dry_runs,
    hyperband,
    profiling_s,
    random_search,
    tuning_s,
    wave_s,
)
from ronda.instances.errors import InputError
from ronda.instances.models.sharing import step_s
from ronda.instances.profile import AffineTime, MeasuredTime, Sharing

FUSED = Sharing(mode="fused", time=AffineTime(alpha_s=1.0, beta_s=0.5))
PACKED = Sharing(mode="packed", time=AffineTime(alpha_s=1.0, beta_s=0.5))


def test_wave_table():
    """HFHT's: 177 trial-runs and 579 epochs of Hyperband, 810 epochs of random search."""
    waves = hyperband()
    assert [(w.trials, w.epochs, w.fresh) for w in waves] == [
        *((81, 1, True), (27, 3, False), (9, 9, False)),
        *((34, 3, True), (11, 9, False)),
        (15, 9, True),
    ]
    assert sum(w.trials for w in waves) == 177
    assert sum(w.trials * w.epochs for w in waves) == 579
    (wave,) = random_search()
    assert wave.trials * wave.epochs == 810


def test_all_rungs():
    """Without leaving any out each bracket ends at R epochs: 81 81 81 81 81, for 5 8 15 34 81."""
    waves = hyperband(skip_last=0)
    assert [w.trials for w in waves if w.fresh] == [81, 34, 15, 8, 5]
    assert max(w.epochs for w in waves) == 81
    assert len(waves) == 5 + 4 + 3 + 2 + 1


def test_parts_of_epochs_are_refused():
    """80 is no power of 3."""
    for epochs, eta in ((80, 3), (81, 1)):
        with pytest.raises(InputError, match="hyperband"):
            hyperband(epochs, eta)


def test_wave_by_hand():
    """Classes of 4 and 1, at most 3: fused 3 + 1 + 1; processes 3 + 2 of either class."""
    assert wave_s((4, 1), FUSED, 3) == 2.5 + 1.5 + 1.5
    assert wave_s((4, 1), PACKED, 3) == 2.5 + 2.0


def by_brute_force(sizes, fused, packed, most):
    """Return the least seconds over what each class gives to the pool, and all splits."""

    def least(number, time):
        if number == 0:
            return 0.0
        return min(
            step_s(time, k) + least(number - k, time) for k in range(1, min(most, number) + 1)
        )

    return min(
        least(sum(pool), packed.time)
        + sum(least(n - q, fused.time) for n, q in zip(sizes, pool, strict=True))
        for pool in product(*(range(n + 1) for n in sizes))
    )


seconds = st.sampled_from((0.25, 0.5, 1.0, 2.0))


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
    st.tuples(seconds, seconds, seconds, seconds),
    st.integers(1, 4),
)
def test_best_wave_is_brute_force(sizes, numbers, most):
    """And no mode by itself is better."""
    alphas, betas = numbers[:2], numbers[2:]
    fused, packed = (
        Sharing(mode=mode, time=AffineTime(alpha_s=a, beta_s=b))
        for mode, a, b in zip(("fused", "packed"), alphas, betas, strict=True)
    )
    best = best_wave_s(sizes, {"fused": fused, "packed": packed}, {"fused": most, "packed": most})
    assert best == pytest.approx(by_brute_force(sizes, fused, packed, most))
    assert best <= min(wave_s(sizes, s, most) for s in (fused, packed)) + 1e-9


def test_the_rest_joins_the_pool():
    """Classes of 3 and 1, at most 3: fused 1 + 1.5, and the single trial 1 s by itself."""
    alone = Sharing(mode="exclusive", time=MeasuredTime(models=(1,), step_s=(1.0,)))
    both = {"fused": FUSED, "exclusive": alone}
    assert best_wave_s((3, 1), both, {"fused": 3, "exclusive": 1}) == 2.5 + 1.0


def test_epochs_multiply():
    """27 trials of 3 epochs take three times those of one."""
    waves = [(w, (w.trials,)) for w in hyperband()]
    alone = Sharing(mode="exclusive", time=MeasuredTime(models=(1,), step_s=(2.0,)))
    assert tuning_s(waves, alone, 1) == 2.0 * 579


@given(st.integers(0, 100), st.integers(1, 12))
def test_class_sizes(seed, number):
    """Each wave has its trials; survivors come from the wave before."""
    drawn = class_sizes(hyperband(), number, np.random.default_rng(seed))
    for (_, before), (wave, sizes) in zip([(None, ()), *drawn], drawn, strict=False):
        assert sum(sizes) == wave.trials
        assert wave.fresh or all(n <= m for n, m in zip(sizes, before, strict=True))


def test_profiling_by_hand():
    """k_max 3: tried are 1, 2, 4 (fails), 3: 2 times 5 steps of 1.5 + 2 + 2.5 s."""
    assert profiling_s(FUSED, 3, DryRun(2, 5)) == 10 * 6.0


def test_dry_runs_double_and_bisect():
    """k_max 9: 1, 2, 4, 8 fit, 16 does not; then 12, 10, 9."""
    assert dry_runs(9) == (1, 2, 4, 8, 16, 12, 10, 9)
    assert dry_runs(0) == (1,)


@given(most=st.integers(1, 300))
def test_dry_runs_end_at_the_most_that_fit(most):
    """The widest that fitted is k_max, and one more was seen to fail."""
    tried = dry_runs(most)
    assert max(k for k in tried if k <= most) == most
    assert most + 1 in tried
    assert len(set(tried)) == len(tried)
