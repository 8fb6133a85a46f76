"""Timelines: what the Trace Event Format asks of them, and what they say of the schedule."""

import json
import os
import shutil
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.bench.exports.chrome_trace import chrome_trace
from ronda.bench.exports.formats import write_schedule
from ronda.horizon.driver import run
from ronda.instances.budget import StepSeries
from ronda.instances.outcome.metrics import summarise
from ronda.instances.outcome.usage import usage_of

SHELL = os.environ.get("PERFETTO_TRACE_PROCESSOR") or shutil.which("trace_processor_shell")

FIELDS = {
    "M": {"name": str, "pid": int, "args": dict},
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": int, "dur": int, "args": dict},
    "C": {"name": str, "pid": int, "ts": int, "args": dict},
}
"""What an event of each phase must have, and of what type."""


def events(instance, schedule, phase):
    """Return the events of one phase, each checked against the format."""
    document = json.loads(chrome_trace(instance, schedule))
    assert document["displayTimeUnit"] == "ms"
    found = [event for event in document["traceEvents"] if event["ph"] == phase]
    for event in found:
        for name, kind in FIELDS[phase].items():
            assert type(event[name]) is kind, event
        if phase != "M":
            assert event["ts"] >= 0
    return found


def named(instance, schedule, kind):
    """Return what processes or threads are called, by their numbers."""
    told = events(instance, schedule, "M")
    ids = {"process": ("pid",), "thread": ("pid", "tid")}[kind]
    own = [event for event in told if event["name"] == f"{kind}_name"]
    return {tuple(event[i] for i in ids): event["args"]["name"] for event in own}


def counter(instance, schedule, name):
    """Return times in seconds and values of a counter."""
    found = [e for e in events(instance, schedule, "C") if e["name"] == name]
    return [e["ts"] / 1e6 for e in found], [e["args"]["value"] for e in found]


def test_slices_sum_to_the_gpu_seconds(loads):
    """Of the packaged instance, to the microsecond that an end may be rounded by."""
    instance, schedule = loads
    slices = events(instance, schedule, "X")
    held_s = sum(e["dur"] for e in slices) / 1e6
    assert held_s == pytest.approx(summarise(instance, schedule)["gpu_s"], abs=1e-6 * len(slices))
    assert max(len(o.segments) for o in schedule.jobs) > 1
    assert {e["cat"] for e in slices} == {"allocation"}


def test_a_gpu_is_a_thread_of_its_node_with_one_job_at_a_time(loads):
    """64 threads in 8 processes, with numbers that nothing else has; slices follow each other."""
    instance, schedule = loads
    threads = named(instance, schedule, "thread")
    processes = named(instance, schedule, "process")
    assert len(threads) == 64
    assert len({tid for _, tid in threads}) == 64
    assert not {tid for _, tid in threads} & {pid for (pid,) in processes}
    assert processes[1,] == "node 0 (nodes, A100)"
    assert len(processes) == 9
    own = defaultdict(list)
    for event in events(instance, schedule, "X"):
        own[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert own.keys() <= threads.keys()
    for spans in own.values():
        assert all(end <= start for (_, end), (start, _) in pairwise(sorted(spans)))


def test_what_a_slice_says(two_nodes, by_hand):
    """Job b of the schedule by hand: 8 GPUs of 60 W each on both nodes."""
    found = [e for e in events(two_nodes, by_hand, "X") if e["name"] == "b"]
    assert [e["pid"] for e in found] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert {(e["ts"], e["dur"]) for e in found} == {(100_000_000, 50_000_000)}
    assert found[0]["args"] == {
        "job": "b",
        "option": "8 GPUs of default/G, clock 1, batch 1",
        "rate": 1.0,
        "watts": 480.0,
        "work done": 50.0,
        "pause (s)": 0.0,
    }
    a, *others = two_nodes.jobs
    told = replace(two_nodes, jobs=(replace(a, user='eve"\n<b>'), *others))
    assert events(told, by_hand, "X")[0]["args"]["user"] == 'eve"\n<b>'


def test_an_array_is_one_slice(shared):
    """Its GPU-seconds count once, and it names its jobs."""
    instance, schedule = shared
    array, alone = events(instance, schedule, "X")
    assert (array["name"], array["args"]["job"]) == ("a (2 jobs)", "j0, j1")
    assert array["args"]["option"].endswith("2 jobs fused")
    assert alone["args"]["job"] == "j1"
    assert array["ts"] + array["dur"] == alone["ts"]
    gpu_s = summarise(instance, schedule)["gpu_s"]
    assert (array["dur"] + alone["dur"]) / 1e6 == pytest.approx(gpu_s, abs=2e-6)


def test_counters(loads):
    """The integral of the watts is the energy; GPUs, the queue and prices are those of the run."""
    instance, schedule = loads
    time_s, watts = counter(instance, schedule, "power (W)")
    joules = np.diff([*time_s, schedule.end_s]) @ watts
    assert joules == pytest.approx(schedule.energy.total_j, rel=1e-6)
    _, gpus = counter(instance, schedule, "GPUs in use")
    assert max(gpus) == usage_of(instance, schedule).gpus.max()
    time_s, jobs = counter(instance, schedule, "queue (jobs)")
    first = next(r for r in schedule.rounds if r.waiting)
    assert time_s[0] == 0.0
    assert max(jobs) >= first.waiting
    assert min(jobs) == jobs[-1] == 0
    assert counter(instance, schedule, "power cap (W)")[1]


def test_prices_are_counters(two_nodes):
    """Of rounds, by the constraint that they are of, and of a joule."""
    priced = replace(
        two_nodes,
        budget=replace(
            two_nodes.budget,
            energy_price_per_j=StepSeries(times_s=(0.0, 50.0, 1e9), values=(1.0, 2.0, 3.0)),
        ),
    )
    schedule = run(priced, "prices")
    (name,) = {name for r in schedule.rounds for name in r.prices if name.startswith("gpus")}
    found = dict(zip(*counter(priced, schedule, f"price of {name}"), strict=True))
    rounds = {r.now_s: r.prices.get(name, 0.0) for r in schedule.rounds if r.prices}
    assert found
    assert all(rounds[time_s] == price for time_s, price in found.items())
    assert counter(priced, schedule, "energy price (per J)") == ([0.0, 50.0], [1.0, 2.0])


def test_sleeping_nodes_are_counted(two_nodes, by_hand):
    """Node 1 sleeps from 10 to 90."""
    asleep = replace(by_hand, sleeps=((1, 10.0, 90.0),))
    assert counter(two_nodes, asleep, "nodes asleep") == ([0.0, 10.0, 90.0], [0.0, 1.0, 0.0])
    assert counter(two_nodes, by_hand, "nodes asleep") == ([], [])


@pytest.mark.skipif(SHELL is None, reason="no trace_processor_shell: it is downloaded by perfetto")
@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_perfetto_reads_it(loads, tmp_path, suffix):
    """Its own processor finds every slice and counter, and nothing wrong."""
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    instance, schedule = loads
    path = tmp_path / f"trace.{suffix}"
    write_schedule(instance, schedule, path)
    config = TraceProcessorConfig(bin_path=SHELL)
    with TraceProcessor(trace=str(path), config=config) as processor:
        (slices,) = processor.query("select count(*) as n, sum(dur) / 1e9 as s from slice")
        (wrong,) = processor.query(
            "select sum(value) as n from stats where severity in ('error', 'data_loss')"
        )
        (counters,) = processor.query("select count(*) as n from counter")
    assert (slices.n, wrong.n) == (len(events(instance, schedule, "X")), 0)
    assert slices.s == pytest.approx(summarise(instance, schedule)["gpu_s"], abs=1e-6 * slices.n)
    assert counters.n == len(events(instance, schedule, "C"))
