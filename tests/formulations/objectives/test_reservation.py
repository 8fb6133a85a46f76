"""What jobs that nobody may stop take from a gang that waits."""

import msgspec
import numpy as np
import pytest

from ronda.formulations.objectives.outlook import outlook
from ronda.formulations.objectives.reservation import less_reserved, reservation
from ronda.formulations.objectives.switching_cost import horizon_s
from ronda.formulations.options.build import build
from tests.helpers.valued_rounds import cluster, job, rigid, run, snapshot

STAYS = {"preemptible": False}


def lessened(*states, gpus=8):
    """Return which job is at the head, the start in seconds, and what each row loses."""
    round_ = snapshot(*states, on=cluster(gpus))
    table = build(round_, mind_power=None)
    o = outlook(round_, table, horizon_s(round_))
    values = np.full(len(table), 2.0)
    head = reservation(o, values)
    lost = values - less_reserved(o, values, head)
    names = [state.job.id for state in table.jobs]
    by_job = {n: lost[table.job == j].max() for j, n in enumerate(names)}
    return head and (names[head.job], head.in_s), by_job


def held(name, seconds, gpus):
    """Return a running job that nobody may stop."""
    return run(rigid(name, seconds, gpus=gpus, **STAYS), gpus, 1.0)


def test_what_lasts_beyond_the_start_loses_what_it_takes():
    """5 of 8 GPUs run for 100 s: by each of 3 GPUs that are free, 200/300 of the gang's value 2."""
    given = [
        held("runs", 100.0, 5),
        rigid("gang", 50.0, gpus=8, **STAYS),
        rigid("long", 300.0, gpus=2, **STAYS),
        rigid("short", 80.0, gpus=2, **STAYS),
        rigid("stopped", 300.0, gpus=2),
    ]
    head, lost = lessened(*given)
    assert head == ("gang", 100.0)
    assert lost.pop("long") == pytest.approx(2 * 2.0 / 3 * 200 / 300)
    assert set(lost.values()) == {0.0}  # backfill, and what makes room when the gang starts


def test_the_start_is_when_enough_have_ended():
    """Of 2, 2 and 3 GPUs that end after 10, 40 and 90 s a gang of 5 needs the first two."""
    running = [held("a", 90.0, 3), held("b", 10.0, 2), held("c", 40.0, 2)]
    head, lost = lessened(*running, rigid("gang", 9.0, gpus=5), rigid("k", 99.0, **STAYS))
    assert head == ("gang", 40.0)
    assert lost["k"] > 0


def test_gpus_that_the_gang_can_spare_are_free():
    """When 6 GPUs are released, a gang of 5 needs none of the two that are free now."""
    head, lost = lessened(held("a", 90.0, 6), rigid("gang", 9.0, gpus=5), rigid("k", 99.0, **STAYS))
    assert head is None
    assert set(lost.values()) == {0.0}


@pytest.mark.parametrize("fits", [False, True])
def test_elastic_jobs_wait_for_their_fewest_gpus(fits):
    """A job of 6 GPUs or more cannot run on 3; one of 2 or more can."""
    least = 2 if fits else 6
    elastic = job("gang", 50.0, "p0.5", gpus=8, min_gpus=least, max_gpus=8)
    head, _ = lessened(held("runs", 100.0, 5), elastic, rigid("k", 300.0, gpus=2, **STAYS))
    assert head == (None if fits else ("gang", 100.0))


def kept_joules(banked_j, *states, accrues_w=740.0):
    """Return who is at the head and what rows lose, at 100 W a GPU on an idle node of 240 W."""
    joules = {"energy_j": banked_j + 1000.0 * accrues_w, "window_s": 1000.0, "banked_j": banked_j}
    round_ = snapshot(*states, on=cluster(8), **joules)
    table = build(round_, mind_power=True)
    table = msgspec.structs.replace(table, power_w=130.0 * table.gpus)
    o = outlook(round_, table, horizon_s(round_))
    values = np.full(len(table), 2.0)
    head = reservation(o, values)
    lost = values - less_reserved(o, values, head)
    return head and table.jobs[head.job].job.id, {
        (table.jobs[j].job.id, n): x
        for j, n, x in zip(table.job.tolist(), table.gpus.tolist(), lost.tolist(), strict=True)
    }


def test_joules_are_kept_for_a_job_that_lacks_them_alone():
    """500 W accrue beside the idle node: 8 GPUs with 800 W for 100 s need 30 kJ in the bank."""
    jobs = (
        rigid("wide", 100.0, gpus=8),
        run(rigid("runs", 900.0, gpus=2), 2, 1.0),
        rigid("k", 9.0),
    )
    head, lost = kept_joules(29_999.0, *jobs)
    assert head == "wide"
    assert lost == pytest.approx(
        {("wide", 8): 0.0, ("runs", 2): 2 * 200 / 800, ("k", 1): 2 * 100 / 800}
    )
    for enough in (30_000.0, 0.0):  # it can start, or a pace banks nothing
        head, lost = kept_joules(enough, *jobs)
        assert head is None
        assert set(lost.values()) == {0.0}
    assert kept_joules(10.0, *jobs, accrues_w=240.0)[0] is None  # nothing is ever banked
    assert kept_joules(10.0, *jobs[1:])[0] is None
