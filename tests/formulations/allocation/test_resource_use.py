"""What options use of many resources is kept in few slots, and read as the matrix it stands for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.allocation.resource_use import Uses


def matrix(resources: int, options: int, share: float, seed: int) -> np.ndarray:
    """Draw whole uses, of which a share is 0; the first resource is used by all."""
    rng = np.random.default_rng(seed)
    use = rng.integers(-2, 9, (resources, options)) * (rng.random((resources, options)) < share)
    use[:1] = 1
    return use.astype(float)


matrices = st.builds(
    matrix, st.integers(1, 9), st.integers(1, 20), st.floats(0.05, 1), st.integers(0, 99)
)


def kept(use: np.ndarray, repeats: int) -> tuple[np.ndarray, Uses]:
    """Return a matrix of repeated columns, mixed, and its uses; by kinds if repeated."""
    order = np.random.default_rng(0).permutation(use.shape[1] * repeats)
    use = np.tile(use, repeats)[:, order]
    uses = Uses.of(use)
    if repeats == 1:
        return use, uses
    kinds = uses.by_kinds()
    assert kinds.amount.shape[1] == len(np.unique(use, axis=1).T)
    return use, kinds


@given(matrices, st.sampled_from([1, 5]))
def test_slots_hold_the_matrix(use, repeats):
    """Each entry stands in one slot, once for equal options; whatever is read is the matrix's."""
    use, uses = kept(use, repeats)
    prices, value = np.arange(len(use)) / 2.0, np.arange(use.shape[1], dtype=float)
    some = np.arange(use.shape[1])[::2]
    assert (uses.dense() == use).all()
    assert (np.asarray(uses) == use).all()
    assert (uses.net(value, prices) == value - prices @ use).all()
    assert (uses.cost(prices) == prices @ use).all()
    assert (uses.total(some) == use[:, some].sum(axis=1)).all()
    assert (uses.largest() == np.abs(use).max(axis=1)).all()
    assert all((uses.of_resource(r) == row).all() for r, row in enumerate(use))
    assert all((uses.column(k) == use[:, k]).all() for k in range(use.shape[1]))
    assert (uses.picked(some).dense() == use[:, some]).all()
    assert (uses.plain().dense() == use).all()
    assert (uses.sparse().toarray() == use).all()
    room = np.arange(len(use)) / 2.0
    fits = ((use <= room[:, None]) | (use == 0)).all(axis=0)
    assert (uses.each(uses.below(room)) == fits).all()
    left = np.where(fits, value - prices @ use, -np.inf)
    assert (uses.net(value, prices, uses.below(room)) == left).all()
    fewer = np.arange(len(use))[1::2]
    assert (uses.only(fewer).dense() == use[fewer]).all()
    first = np.arange(use.shape[1])[::3]  # three options a job
    most = np.maximum(np.maximum.reduceat(use, first, axis=1), 0)
    assert (uses.most(uses.amount, first) == most).all()


@given(matrices, st.integers(0, 99), st.sampled_from([1, 5]))
def test_room_counts_what_is_given_up(use, seed, repeats):
    """An option fits where its job's other one, or nothing, makes way for it."""
    rng = np.random.default_rng(seed)
    use, uses = kept(use, repeats)
    options = use.shape[1]
    rows, instead = rng.integers(0, options, 12), rng.integers(-1, options, 12)
    room = rng.integers(0, 6, len(use)).astype(float)
    freed = np.where(instead >= 0, use[:, instead], 0.0)
    fits = (use[:, rows] <= room[:, None] + freed) | (use[:, rows] == 0)
    taken = uses.fits(rows, instead, room)
    # What gives up a negative use takes more: only then may an unused resource forbid.
    plain = (freed >= 0).all(axis=0)
    assert (taken[plain] == fits.all(axis=0)[plain]).all()


def test_many_resources_need_few_slots():
    """1,000 options, each on one of 100 GPU types and all with watts: two slots."""
    use = np.zeros((101, 1000))
    use[np.arange(1000) % 100, np.arange(1000)] = 4.0
    use[100] = 250.0
    uses = Uses.of(use)
    assert uses.amount.shape == (2, 1000)
    assert (uses.dense() == use).all()
    assert uses.single == (100, None)  # watts have a slot of their own


def test_options_of_their_own_have_no_kinds():
    """Twenty options of ten kinds: a number for each would take as much as it saves."""
    uses = Uses.of(np.tile(np.arange(1.0, 11.0), (1, 2)))
    assert uses.by_kinds() is uses
    assert Uses.of(np.tile(np.arange(1.0, 11.0), (1, 4))).by_kinds().amount.shape == (1, 10)
