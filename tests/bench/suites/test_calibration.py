"""How far replays are from a record, by hand."""

import pytest
from msgspec.structs import replace

from ronda.bench.figures.calibration import calibration
from ronda.bench.suites.calibration import (
    Replayed,
    distance_table,
    distances,
    starts_off_s,
)
from ronda.horizon.driver import run
from ronda.instances.schedule import RECORDED


class Run:
    """A run's figures."""

    def __init__(self, **metrics):
        self.metrics = metrics


@pytest.fixture
def pair(make_instance):
    """Four jobs start at 0, 100, 200 and 300 s in the record, and 50, 100, 30 and 430 s in ours."""
    made = make_instance([(name, 0.0, 4, 100.0) for name in "abcd"])
    schedule = run(made, "fifo")
    started = zip(schedule.jobs, (50.0, 100.0, 30.0, 430.0), strict=True)
    jobs = tuple(
        replace(each, segments=(replace(each.segments[0], start_s=at),)) for each, at in started
    )
    return replace(schedule, policy=RECORDED), replace(schedule, jobs=jobs)


def test_starts_are_held_against_the_record(pair):
    """Off by 50, 0, 170 and 130 s: the median is 90, and 170 s are too soon."""
    record, replay = pair
    assert starts_off_s(record, replay).tolist() == [50.0, 0.0, -170.0, 130.0]
    found = distances(record, replay)
    assert found["start_off_s"] == 90.0
    assert found["start_off_p90_s"] == pytest.approx(158.0)  # at 2.7 of 0, 50, 130, 170
    assert (found["started_sooner"], found["started_later"]) == (0.25, 0.25)
    assert distances(record, record) == {}
    without = replace(replay.jobs[0], segments=())
    assert len(starts_off_s(record, replace(replay, jobs=(without, *replay.jobs[1:])))) == 3


def test_the_table_and_the_picture(pair):
    """The record has no distance of its own; it is the ground of the picture."""
    record, replay = pair
    figures = Run(mean_queue_s=1.0, mean_jct_s=2.0, gpu_utilisation=0.5)
    schedules = {RECORDED: record, "mine": replay}
    table = distance_table(Replayed("log", schedules, dict.fromkeys(schedules, figures)))
    assert table.title == "log: replays against the record"
    assert table.rows[0] == (RECORDED, "1", "2", "50.0", "–", "–", "–", "–")
    assert table.rows[1][4:] == ("90", "158", "25.0", "25.0")
    assert table.records[1]["start_off_s"] == 90.0
    chart = calibration([("log", schedules, {"mine": starts_off_s(record, replay)})])
    queue, starts = chart.panels
    assert [marks.name for marks in queue.marks] == [RECORDED, "mine"]
    (line,) = starts.marks
    assert line.x.tolist() == [1.0, 1.0, 50.0, 130.0, 170.0]  # at least the log's second
    assert [*chart.rows][-1] == ("log", "mine", 170.0)
