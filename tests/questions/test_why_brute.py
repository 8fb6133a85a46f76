"""Earliest starts and least changes on tiny clusters, against every start and every placement."""

import os

import pytest
from msgspec.structs import replace

from brute_changes import every_change
from brute_start import brute_start, tiny_cluster
from ronda.questions.why.changes import easings
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


@pytest.mark.parametrize("seed", CASES)
def test_the_cheapest_change_is_that_of_all_values(seed):
    """The first change has the cost and the start of the best one, and no less would do."""
    seen, job = tiny_cluster(seed)
    waiting = WaitingJob(FreeRoom(seen), job)
    found = easings(waiting)
    for one in found:
        assert one.start_s == pytest.approx(brute_start(seen, one.job), abs=1e-3)
        assert one.start_s < waiting.start()
    if waiting.start() == 0:
        assert not found
        return
    every = [(cost, brute_start(seen, one)) for cost, one in every_change(job, seen)]
    for one in found:
        if one.kinds == ("limit",):
            every.append((one.cost, one.start_s))
            longer = replace(one.job, limit_s=one.job.limit_s + 60)
            assert brute_start(seen, longer) > one.start_s
    helps = [(start_s > 0, cost, start_s) for cost, start_s in every if start_s < waiting.start()]
    if helps:
        first = found[0]
        assert (first.start_s > 0, first.cost, first.start_s) == pytest.approx(min(helps))
    assert bool(helps) == any(len(one.kinds) == 1 for one in found)
