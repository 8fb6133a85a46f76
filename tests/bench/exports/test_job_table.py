"""A row for each job, in numbers that can be read again."""

import csv
import io

import pytest
from msgspec.structs import replace

from ronda.bench.exports.job_table import job_table
from ronda.instances.outcome.metrics import job_figures, summarise


def rows(instance, schedule):
    """Return the rows by column."""
    return list(csv.DictReader(io.StringIO(job_table(instance, schedule))))


def test_by_hand(two_nodes, by_hand):
    """Job c waits from 10 to 150 and runs for 10 s at 60 W."""
    *_, row = rows(two_nodes, by_hand)
    expected = {
        **{"id": "c", "state": "completed", "partition": "default", "profile": "rigid"},
        **{"submit_s": "10.0", "start_s": "150.0", "end_s": "160.0", "jct_s": "150.0"},
        **{"queue_s": "140.0", "held_s": "10.0", "pause_s": "0.0", "gpus_asked": "1"},
        **{"gpus_most": "1", "gpu_s": "10.0", "energy_j": "600.0", "work_done": "10.0"},
        **{"work": "10.0", "weight": "1.0", "allocations": "1", "preemptions": "0"},
        **{"restarts": "0", "user": "", "name": "", "sweep": "", "deadline_s": ""},
    }
    assert row == expected


def test_sums_are_those_of_the_run(loads):
    """GPU-seconds, joules of jobs, restarts, and every completion time to the last digit."""
    instance, schedule = loads
    made, metrics = rows(instance, schedule), summarise(instance, schedule)
    assert [float(row["jct_s"]) for row in made] == job_figures(schedule).jct_s.tolist()
    assert sum(float(row["gpu_s"]) for row in made) == pytest.approx(metrics["gpu_s"], rel=1e-12)
    assert sum(int(row["restarts"]) for row in made) == metrics["restarts"]
    energy_j = sum(float(row["energy_j"]) for row in made)
    assert energy_j == pytest.approx(schedule.energy.busy_j + schedule.energy.paused_j, rel=1e-9)


def test_names_are_data(two_nodes, by_hand):
    """Commas, quotes and lines in a name stay in its cell; what is not known is empty."""
    a, *others = two_nodes.jobs
    named = replace(two_nodes, jobs=(replace(a, user='x,"y"\n\x1b[31m'), *others))
    first, *more = by_hand.jobs
    cut = replace(by_hand, jobs=(replace(first, end_s=None), *more))
    row, *_ = rows(named, cut)
    assert row["user"] == r'x,"y"\n\x1b[31m'
    assert (row["state"], row["end_s"], row["jct_s"]) == ("unfinished", "", "")
