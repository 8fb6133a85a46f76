"""What a log says about itself: each fault is counted, and the bound is never above brute force."""

import itertools
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ronda
from ronda.instances.cluster import Cluster, NodeGroup, Partition
from ronda.instances.traces.audit.answer import Audit
from ronda.instances.traces.audit.coverage import holes
from ronda.instances.traces.audit.pools import least_behind, pools_of
from ronda.instances.traces.audit.sample import sample_of
from ronda.instances.traces.door import LogReading, read_log
from ronda.instances.traces.rigid import plain_cluster

HEAD = "JobID|State|Submit|Eligible|Start|End|AllocTRES|Partition|User|Timelimit|NodeList"
HOUR, DAY = 3600, 86400
START = datetime(2024, 1, 1, tzinfo=UTC)
NOW_S = (START + timedelta(days=1000)).timestamp()


def at(hours):
    """Return a date, in hours from the start."""
    return (START + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S")


def row(name, submit, start, end, *, eligible=None, **other):
    """Return a row of sacct; times are hours, `None` where there is none."""
    told = {"gpus": 1, "state": "COMPLETED", "user": "ann", "limit": 10, "node": "n1"} | other
    hours = (submit, submit if eligible is None else eligible, start, end)
    times = [at(hour) if hour is not None else "Unknown" for hour in hours]
    cells = [name, told["state"], *times, f"gres/gpu={told['gpus']}", "main", told["user"]]
    return "|".join(map(str, [*cells, f"{told['limit']}:00:00", told["node"]]))


@pytest.fixture
def log(tmp_path):
    """A function that reads rows as a log of sacct."""

    def read(*rows, **how):
        path = tmp_path / "log.txt"
        path.write_text("\n".join([HEAD, *rows, ""]))
        return read_log([path], LogReading(**how))

    return read


def test_each_fault_is_counted(log):
    """A log with one of each: the sums are those of its rows, and none is left out."""
    rows = [
        row("1", 0, 1, 3),
        row("1", 0, 1, 3),  # once more
        row("2", 5, 4, 6),  # starts before its submission
        row("3", 5, 8, 7),  # ends before its start
        row("4", 6, None, None, state="CANCELLED"),
        row("5", 6, 7, 8, gpus=2, state="PREEMPTED", user="bob", limit=1),
        row("5", 6, 9, 10, gpus=2, state="TIMEOUT", user="bob", limit=1),
        row("6", 7, 9, 11, eligible=8.5, limit=3),
        row("7", 7, 9, 11, eligible=8.5, limit=3),  # equal to 6
        row("8", 24_100, 24_101, 24_102, user="cyd"),  # after the present
    ]
    found = Audit(log(*rows), NOW_S)
    assert found.report("log").fields["kinds"] == {
        "doubles": 1,
        "impossible times": 2,
        "unreadable": 0,
        "never ran": 1,
    }
    facts = found.facts
    assert (facts["twins"], facts["future"], facts["later"], facts["later_hours"]) == (1, 1, 2, 3.0)
    assert facts["states"] == {"COMPLETED": 4, "PREEMPTED": 1, "TIMEOUT": 1}
    assert (facts["started"], facts["waited"], facts["waited_hours"]) == (5, 5, 4)
    assert [(user.name, user.jobs, user.gpu_hours) for user in facts["top_users"]] == [
        ("ann", 3, 6.0),
        ("bob", 1, 2.0),
        ("cyd", 1, 1.0),
    ]
    assert [(size.name, size.jobs, size.gpu_hours) for size in facts["sizes"]] == [
        ("1", 4, 7.0),
        ("2", 1, 2.0),
    ]
    assert [(shape.jobs, shape.run_s) for shape in facts["top_shapes"][:1]] == [(2, (7200.0,) * 3)]
    assert (facts["limited"], facts["within_twice"], facts["killed"]) == (5, 3 / 5, 1 / 5)
    assert facts["limit_times"] == tuple(np.quantile([5, 1, 1.5, 1.5, 10], [0.1, 0.5, 0.9]))
    (hole,) = found.holes
    assert (hole.start_s, hole.end_s) == (7 * HOUR, 24_100 * HOUR)
    assert found.months()[:2] == ["2024-02", "2024-03"]
    assert len(found.months()) == 32
    told = found.report("log")
    assert any("32" not in str(part) and "2024-02" in str(part) for part in told.parts)


def brute_behind(jobs, gpus, at):
    """Return the least GPU-seconds behind at a time, of all preemptive plans in whole seconds."""

    @cache
    def most(second, left):
        if second == at:
            return 0
        live = [k for k, (submit, _, _) in enumerate(jobs) if submit <= second and left[k]]
        best = 0
        for count in range(len(live) + 1):
            for chosen in itertools.combinations(live, count):
                done = sum(jobs[k][2] for k in chosen)
                if done <= gpus:
                    after = tuple(n - (k in chosen) for k, n in enumerate(left))
                    best = max(best, done + most(second + 1, after))
        return best

    ahead = sum(g * min(lasts, max(0, at - submit)) for submit, lasts, g in jobs)
    return ahead - most(0, tuple(lasts for _, lasts, _ in jobs))


def bound(jobs, gpus):
    """Return the bound at each second from 0 to 11."""
    seconds = np.arange(12.0)
    wanted = [sum(g for s, lasts, g in jobs if s <= t < s + lasts) for t in range(12)]
    return least_behind(seconds, np.array(wanted, float), gpus)


def test_the_bound_is_never_above_brute_force():
    """On jobs of one GPU it is met nearly everywhere; wider ones may not fit beside each other."""
    random, met, cases = np.random.default_rng(5), 0, 0
    for case in range(60):
        most = 2 if case % 2 else 3
        jobs = [
            (int(s), int(lasts), int(g) if case % 3 else 1)
            for s, lasts, g in zip(
                random.integers(0, 4, 4),
                random.integers(1, 4, 4),
                random.integers(1, most + 1, 4),
                strict=True,
            )
        ]
        found = bound(jobs, most)
        for second in range(8):
            least = brute_behind(jobs, most, second)
            assert found[second] <= least + 1e-9, (jobs, most, second)
            met += bool(abs(found[second] - least) < 1e-9)
            cases += 1
    assert met > 0.8 * cases


def test_an_overload_ends_when_it_is_made_up_for(log):
    """Three hours of 4 GPUs on 2 at once are behind until hour 6, most of all at hour 3."""
    rows = [row("1", 0, 0, 3, gpus=2), row("2", 0, 3, 6, gpus=2), row("3", 9, 9, 10)]
    read = log(*rows, cluster=plain_cluster([(1, 2)]))
    (pool,) = pools_of(read)
    assert (pool.gpus, pool.most_wanted, pool.most_held, pool.gpu_hours) == (2, 4, 2, 13.0)
    assert pool.load == 13 / (9 * 2)
    (over,) = pool.overloads
    assert (over.start_s, over.end_s) == (0.0, 6 * HOUR)
    assert (over.most_gpu_s, over.most_at_s) == (6 * HOUR, 3 * HOUR)
    told = [part for part in Audit(read, NOW_S).report("log").parts if "overload" in str(part)]
    assert (
        "work is behind from 2024-01-01 00:00:00 to 2024-01-01 06:00:00, 6 GPU-hours or more"
        in str(told)
    )


def test_a_pool_has_the_jobs_that_may_use_no_other(tmp_path):
    """Jobs of one GPU type are asked of it; those of any type only of all nodes together."""
    head = "JobID|State|Submit|Start|End|AllocTRES|ReqTRES|Partition|NodeList"
    told = [("gpu:a100", "gpu:a100", "n1", 0), ("gpu:v100", "gpu:v100", "m1", 0)]
    told += [("gpu", "gpu:a100", "n1", 1)]
    lines = [
        f"{k}|COMPLETED|{at(0)}|{at(hour)}|{at(hour + 1)}|gres/{had}=1|gres/{asked}=1|main|{node}"
        for k, (asked, had, node, hour) in enumerate(told)
    ]
    path = tmp_path / "log"
    path.write_text("\n".join([head, *lines, ""]))
    pools = {pool.name: pool for pool in pools_of(read_log([path]))}
    assert {name: (pool.gpus, pool.jobs) for name, pool in pools.items()} == {
        "all": (2, 3),
        "main: a100": (1, 1),
        "main: v100": (1, 1),
    }
    assert pools["main: a100"].most_held == 1


def test_a_week_has_no_holes_and_a_month_without_a_job_is_one():
    """Nights and weekends are the log's own rhythm, however bursty its hours are."""
    office = [
        day * DAY + hour * HOUR + k
        for day in range(84)
        if day % 7 < 5
        for hour in range(9, 17)
        for k in (0, 5, 9, 900)
    ]
    assert list(holes(np.array(office, float))) == []
    missing = [second for second in office if not 20 * DAY < second < 50 * DAY]
    (hole,) = holes(np.array(missing, float))
    assert hole.start_s == max(second for second in missing if second < 30 * DAY)
    assert hole.end_s == min(second for second in missing if second > 30 * DAY)


def test_only_those_that_ended_in_a_window(log):
    """A whole log shows no cut; the rows that ended within two of ten days show both ends."""
    random = np.random.default_rng(3)
    begins, lasts = random.uniform(0, 240, 900), random.exponential(6.0, 900) + 0.01
    times = [*zip(np.sort(begins), lasts, strict=True)]
    every = [row(k, s, s, s + d, limit=99) for k, (s, d) in enumerate(times)]
    whole = Audit(log(*every), NOW_S)
    assert whole.ended == (None, None)
    within = [text for text, (s, d) in zip(every, times, strict=True) if 120 <= s + d < 168]
    cut = Audit(log(*within), NOW_S)
    first = min(s + d for s, d in times if s + d >= 120)
    base = min(s for s, d in times if 120 <= s + d < 168)
    assert cut.ended[0] == pytest.approx((first - base) * HOUR, abs=2.0)
    assert cut.ended[1] == pytest.approx(cut.read.recorded.until_s)
    goes_on = row(5000, 160, 160, None, state="RUNNING", limit=99)
    assert Audit(log(*within, goes_on), NOW_S).ended[1] is None
    words = " ".join(map(str, cut.report("log").parts))
    assert "those before are missing" in words
    assert "those after are missing" in words


def test_a_sample_is_told_by_its_machines_alone(log):
    """Jobs wait although 2 of 100 GPUs are in use; without machines that shows nothing."""
    waits = [row("1", 0, 1, 3), row("2", 0, 2, 3)]
    many = plain_cluster([(25, 4)])
    found = sample_of(log(*waits, cluster=many))
    assert found is not None
    assert found.startswith("at most 2 of 100 GPUs are in use at once, yet 2 jobs waited")
    apart = [row(k, 0, k, k + 1, node=f"n{k}") for k in range(1, 9)]
    assert sample_of(log(*apart)) is None  # 8 nodes are seen, one at a time
    assert sample_of(log(*waits, cluster=plain_cluster([(1, 4)]))) is None
    assert sample_of(log(row("1", 0, 0, 3), cluster=many)) is None
    busy = Cluster(
        gpu_types=many.gpu_types,
        node_groups=tuple(
            NodeGroup(name=p, count=n, gpus_per_node=2, gpu_type="gpu", partition=p)
            for p, n in (("main", 1), ("idle", 50))
        ),
        partitions=(Partition(name="main"), Partition(name="idle")),
    )
    idle = row("3", 0, 0, 1).replace("|main|", "|idle|")
    read = log(*waits, idle, cluster=busy)
    assert sample_of(read) is None  # the nodes of those who waited were busy
    assert [pool.waited for pool in pools_of(read)] == [2, 2, 0]


def test_a_table_without_starts_has_demand_alone(tmp_path):
    """Its machines are unknown until they are given; then its overload is known, too."""
    path = tmp_path / "jobs.csv"
    rows = ("job_id,submit_s,num_gpus,duration_s", "a,0,4,7200", "b,0,4,7200", "c,9000,1,9e3", "")
    path.write_text("\n".join(rows))
    (pool,) = pools_of(read_log([path], LogReading(reader="philly")))
    assert (pool.gpus, pool.most_wanted, pool.most_held, pool.overloads) == (None, 8, None, ())
    words = Audit(read_log([path], LogReading(reader="philly")), NOW_S).report("jobs").parts
    assert any("capacity: unknown" in str(part) for part in words)
    assert Audit(read_log([path], LogReading(reader="philly")), NOW_S).facts["started"] == 0
    given = LogReading(reader="philly", cluster=plain_cluster([(1, 4)]))
    (pool,) = pools_of(read_log([path], given))
    (over,) = pool.overloads
    # 21,600 GPU-seconds are behind at 9,000 s; from then on 3 of 4 GPUs make up for it
    assert (over.start_s, over.end_s) == (0.0, 9000.0 + 21_600.0 / 3)


def test_elastic_jobs_of_a_reader_are_counted_and_not_in_the_demand():
    """How long they run depends on their GPUs, which no log tells of them."""
    reading = LogReading(reader=lambda path: ronda.load("pollux-1"))
    found = Audit(read_log([Path("any")], reading), NOW_S)
    (pool,) = found.pools
    assert (pool.gpus, pool.jobs, pool.gpu_hours, pool.most_held) == (64, 160, 0.0, None)
    assert all(shape.run_s == () and shape.gpu_hours == 0 for shape in found.facts["top_shapes"])
    assert "160 of 160 jobs not told, or by their number of GPUs" in str(found.report("any").parts)
