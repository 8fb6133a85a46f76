"""Earliest starts and least changes on tiny clusters, against every start and every placement."""

import os

import pytest

from brute_start import brute_start, tiny_cluster
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.outlook import FreeRoom

CASES = range(int(os.environ.get("SOAK", 0)) or 100)


@pytest.mark.parametrize("seed", CASES)
def test_the_earliest_start_is_that_of_every_placement(seed):
    """Pieces, limits, outages, licences, slices, exclusive and own nodes."""
    seen, job = tiny_cluster(seed)
    assert WaitingJob(FreeRoom(seen), job).start() == pytest.approx(
        brute_start(seen, job), abs=1e-3
    )
