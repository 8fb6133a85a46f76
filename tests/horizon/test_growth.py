"""A decision costs what changes: with more jobs that run, it reads no more of them."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from ronda.formulations import holdings
from ronda.horizon.driver import run
from ronda.horizon.energy import Meter
from ronda.instances import generate
from ronda.instances.check import incremental
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.job import Option
from ronda.instances.schedule import Segment


def reads(monkeypatch, gpus):
    """Return how many jobs run on average, and how often a job is read for each that changes."""
    count = 0
    read, row = holdings.read, incremental.ExpectedEnds._row
    judge = incremental.allocation_violations

    def counted_read(cluster, pairs):
        nonlocal count
        pairs = list(pairs)
        count += len(pairs)
        return read(cluster, pairs)

    def counted_row(self, *args):
        nonlocal count
        count += 1
        return row(self, *args)

    def counted_judge(*args):
        nonlocal count
        count += 1
        return judge(*args)

    monkeypatch.setattr(holdings, "read", counted_read)
    monkeypatch.setattr(incremental.ExpectedEnds, "_row", counted_row)
    monkeypatch.setattr(incremental, "allocation_violations", counted_judge)
    instance = generate.horizon(gpus, gpus, "loose", 0)
    schedule = run(instance, "fifo", time_limit_s=None)
    monkeypatch.undo()
    changes = sum(r.started + r.stopped + r.changed for r in schedule.rounds)
    running = sum(r.running for r in schedule.rounds) / len(schedule.rounds)
    return running, count / changes


def test_a_decision_reads_no_more_where_more_runs(monkeypatch):
    """More than twice as many jobs run, under a power cap and an energy budget."""
    few, reads_few = reads(monkeypatch, 32)
    many, reads_many = reads(monkeypatch, 128)
    assert many > 2 * few
    assert reads_many < 1.2 * reads_few < 12


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.floats(0.1, 300.0)), max_size=30))
def test_joules_are_those_of_all_segments(steps):
    """Whatever begins and ends, open segments are added up in the order of submission."""
    gpu = GpuType(name="A", memory_gib=40.0, idle_w=50.0)
    meter, running, now_s = Meter(uniform_cluster(gpu, 4, 2, host_idle_w=100.0).topology), {}, 0.0
    closed_j = 0.0
    for place, step in steps:
        now_s += step
        option = Option(pool=0, gpus=1 + place % 2, power_w=37.7 * (place + 1), rate=1.0)
        idle_w = 50.0 * option.gpus
        if place in running:
            since_s = running.pop(place)
            segment = Segment(
                start_s=since_s - 5.0,
                resume_s=min(since_s, now_s),
                end_s=now_s,
                done=0.0,
                option=option,
                placement=((0, 1),),
            )
            meter.end(place, segment)
            closed_j += (option.power_w - idle_w) * max(0.0, now_s - since_s)
        else:
            running[place] = now_s + 5.0
            meter.begin(place, option, now_s + 5.0)
        open_w = [37.7 * (p + 1) - 50.0 * (1 + p % 2) for p in sorted(running)]
        open_s = [max(0.0, now_s - running[p]) for p in sorted(running)]
        used_j = closed_j + sum(w * s for w, s in zip(open_w, open_s, strict=True))
        assert meter.used_j(now_s) == pytest.approx(800.0 * now_s + used_j, rel=1e-9)
        assert meter.watts == pytest.approx(800.0 + sum(open_w), abs=1e-6)
