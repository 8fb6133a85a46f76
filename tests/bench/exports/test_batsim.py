"""Batsim's table of jobs: its documented columns, and what they say of each other."""

import csv
import io

import pytest
from msgspec.structs import replace

from ronda.bench.exports.job_table import batsim_jobs, intervals
from ronda.instances.outcome.metrics import job_figures, summarise

# docs/output-jobs.rst of Batsim; consumed_energy stands where src/export.cpp of 4.2.1 writes it.
DOCUMENTED = (
    "job_id workload_name profile submission_time requested_number_of_resources requested_time "
    "success final_state starting_time execution_time finish_time waiting_time turnaround_time "
    "stretch allocated_resources consumed_energy metadata"
)


def rows(instance, schedule):
    """Return the rows by column."""
    return list(csv.DictReader(io.StringIO(batsim_jobs(instance, schedule))))


def resources(text):
    """Return the numbers of an interval set."""
    found = set()
    for part in text.split():
        first, _, last = part.partition("-")
        found |= {*range(int(first), int(last or first) + 1)}
    return found


def test_by_hand(two_nodes, by_hand):
    """Job b: 8 GPUs from 100 to 150 at 480 W; it waited for 100 s."""
    made = rows(two_nodes, by_hand)
    assert " ".join(made[0]) == DOCUMENTED
    assert list(made[1].values()) == [
        *("b", "two-nodes", "rigid", "0", "8", "-1", "1", "COMPLETED_SUCCESSFULLY"),
        *("100", "50", "150", "100", "150", "3", "0-7", "24000", ""),
    ]


def test_what_columns_say_of_each_other(loads):
    """As the documentation has them equal; parts of a job follow each other and add up."""
    instance, schedule = loads
    made = rows(instance, schedule)
    own = {}
    for row in made:
        submit, start, run, finish, wait, turnaround, stretch = (
            float(row[name])
            for name in (
                *("submission_time", "starting_time", "execution_time", "finish_time"),
                *("waiting_time", "turnaround_time", "stretch"),
            )
        )
        assert run == pytest.approx(finish - start, abs=3e-6)
        assert wait == pytest.approx(start - submit, abs=3e-6)
        assert turnaround == pytest.approx(finish - submit, abs=3e-6)
        assert stretch == pytest.approx(turnaround / run, rel=1e-5)
        name, _, part = row["job_id"].partition("#")
        own.setdefault(name, []).append(row)
        assert int(part or 0) == len(own[name]) - 1
        assert row["success"] == str(int(row["final_state"] == "COMPLETED_SUCCESSFULLY"))
    assert [*own] == [job.id for job in instance.jobs]
    assert max(map(len, own.values())) > 1
    for parts, jct_s in zip(own.values(), job_figures(schedule).jct_s, strict=True):
        assert [p["final_state"] for p in parts[:-1]] == ["COMPLETED_KILLED"] * (len(parts) - 1)
        assert parts[-1]["success"] == "1"
        assert sum(float(p["turnaround_time"]) for p in parts) == pytest.approx(jct_s, abs=1e-4)
    gpu_s = sum(float(r["execution_time"]) * len(resources(r["allocated_resources"])) for r in made)
    assert gpu_s == pytest.approx(summarise(instance, schedule)["gpu_s"], abs=0.01)
    energy_j = sum(float(row["consumed_energy"]) for row in made)
    parts_j = schedule.energy.busy_j + schedule.energy.paused_j
    assert energy_j == pytest.approx(parts_j, rel=1e-9)


def test_no_resource_has_two_jobs_at_a_time(loads):
    """Rows that overlap in time share no resource."""
    spans = [
        (float(r["starting_time"]), float(r["finish_time"]), resources(r["allocated_resources"]))
        for r in rows(*loads)
    ]
    for k, (start, end, held) in enumerate(spans):
        for other_start, other_end, other in spans[:k]:
            if start < other_end - 1e-6 and other_start < end - 1e-6:
                assert not held & other


def test_how_jobs_end(two_nodes, by_hand):
    """A job that never ran is rejected, with nothing from its start on."""
    a, b, c = by_hand.jobs
    jobs = replace(a, failed=True), replace(b, discarded=True, segments=()), replace(c, end_s=None)
    made = rows(two_nodes, replace(by_hand, jobs=jobs))
    states = ["COMPLETED_FAILED", "REJECTED", "COMPLETED_KILLED"]
    assert [row["final_state"] for row in made] == states
    assert [row["success"] for row in made] == ["0"] * 3
    assert {*[*made[1].values()][8:]} == {""}


def test_jobs_of_an_array_share_a_resource(shared):
    """Both have GPU 0; the one that goes on alone has one row."""
    made = rows(*shared)
    assert [(r["job_id"], r["allocated_resources"]) for r in made] == [("j0", "0"), ("j1", "0")]


def test_intervals_are_canonical():
    """As the example of Batsim's documentation."""
    assert intervals((1, 2, 3, 5, 7)) == "1-3 5 7"
    assert intervals(tuple(range(37, 43))) == "37-42"
    assert intervals(()) == ""
