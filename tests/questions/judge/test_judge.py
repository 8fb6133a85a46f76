"""The judgement of made logs: its parts, its bounds against every schedule, and what is unknown."""

import random
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_runs import ran, read_runs, scheduled
from ronda.instances.errors import InputError
from ronda.instances.traces.logs.instance import log_instance
from ronda.instances.traces.logs.runs import LogFilter, RowAccount
from ronda.instances.traces.logs.sacct import LogFormat, sacct_runs
from ronda.questions.judge.answer import judge, queues_seen
from ronda.questions.judge.judgement import CAUSES, FULL, PROVEN


def judged(runs, until=None, **more):
    """Return the judgement of a log that begins at 0, which holds together."""
    instance, recorded = read_runs(runs, until)
    found, _, _ = judge(
        instance, recorded, **{"cluster_known": False, "since_s": 0.0, "trust": 0.0} | more
    )
    assert [cause.name for cause in found.causes[: len(CAUSES)]] == list(CAUSES)
    assert sum(c.wait_s for c in found.causes[: len(CAUSES)]) == pytest.approx(found.waited_s)
    for low, high in (found.hindsight, found.same_knowledge):
        assert -1e-6 <= low <= high + 1e-6
    assert found.hindsight[0] >= found.same_knowledge[0] - 1e-6
    parts = {cause.name: cause.wait_s for cause in found.causes}
    assert parts["gap of the bound"] >= -1e-6
    assert parts["delay"] >= 0
    assert parts["unproven capacity"] >= 0
    return found, parts


JOBS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 9), st.integers(1, 3)), min_size=2, max_size=12
)


@settings(max_examples=12, deadline=None)
@given(JOBS, st.integers(1, 5), st.integers(0, 1000))
def test_parts_add_up_to_what_was_waited(jobs, cycle, seed):
    """For any scheduler and any part of its log."""
    runs = scheduled(jobs, {"n1": 3, "n2": 3}, random.Random(seed), cycle)
    shown = [run for run in runs if seed % 3 or run.end_s <= 15]
    if shown:
        judged(shown, topology=bool(seed % 2))


def test_energy_is_said_where_the_log_tells_it_of_all_jobs():
    """The sum of both; and that it is not known, if one job has none."""
    runs = [ran(0, 0, 0, 9, energy_j=1.8e6), ran(1, 0, 9, 18, energy_j=3.6e6)]
    found, _ = judged(runs)
    assert found.energy_j == 5.4e6
    assert not any("energy" in line for line in found.unknown)
    found, _ = judged([*runs, ran(2, 0, 18, 20)])
    assert found.energy_j is None
    assert any("energy" in line for line in found.unknown)


def best_of_all(instance, recorded):
    """Return the least wait of any schedule, by trying all orders and nodes."""
    sizes = dict(enumerate(instance.cluster.topology.node_gpus.tolist()))
    todo = []
    for job in instance.jobs:
        (run,) = recorded.runs[job.id]
        todo.append((job.submit_s, run.end_s - run.start_s, job.gpus))
    horizon = 200

    def tried(left, used, wait, best):
        if wait >= best or not left:
            return min(wait, best)
        for k in left:
            ready, lasts, gpus = todo[k]
            for node in sizes:
                start = int(ready)
                while (used[node, start : start + int(lasts)] + gpus > sizes[node]).any():
                    start += 1
                used[node, start : start + int(lasts)] += gpus
                best = tried(left - {k}, used, wait + start - ready, best)
                used[node, start : start + int(lasts)] -= gpus
        return best

    used = np.zeros((len(sizes), horizon))
    return tried(frozenset(range(len(todo))), used, 0.0, float("inf"))


@pytest.mark.parametrize("seed", range(20))
def test_no_schedule_beats_the_bound_and_none_of_the_replays_beats_all_schedules(seed):
    """On tiny logs, of which every schedule can be tried."""
    rng = random.Random(seed)
    jobs = [(rng.randint(0, 4), rng.randint(1, 9), rng.randint(1, 2)) for _ in range(5)]
    runs = scheduled(jobs, {"n1": 2, "n2": 2} if seed % 2 else {"n1": 2}, rng, cycle=2)
    instance, recorded = read_runs(runs)
    found, parts = judged(runs)
    least = best_of_all(instance, recorded)
    assert parts["unavoidable"] <= least
    whole = [r.wait_s for r in found.replays if r.space == FULL]
    assert min(whole) >= least
    assert min(whole) <= 1.5 * least + 1
    proven = [r.wait_s for r in found.replays if r.space == PROVEN]
    assert all(wait >= least for wait in proven)


def test_a_slow_cycle_is_delay():
    """Every 120 s one job starts, though the node was free for long."""
    runs = [ran(k, 0, 120 * k, 120 * k + 30) for k in range(20)]
    found, parts = judged(runs)
    assert found.waited_s == 120 * sum(range(20))
    assert parts["delay"] == found.waited_s - 30 * sum(range(20))
    assert parts["known order"] == parts["foresight"] == 0
    assert parts["unavoidable"] == pytest.approx(30 * sum(range(20)), abs=0.01)


def test_a_long_job_in_front_of_short_ones_is_foresight():
    """Nobody who does not see run times could have put the short ones in front."""
    runs = [ran(0, 0, 0, 100), *(ran(k, 0, 90 + 10 * k, 100 + 10 * k) for k in range(1, 6))]
    found, parts = judged(runs)
    assert parts["delay"] == parts["known order"] == 0
    assert parts["foresight"] == 5 * 100 - 50
    assert parts["gap of the bound"] == pytest.approx(0.0, abs=0.01)
    assert parts["unproven capacity"] == 0
    assert found.same_knowledge[0] == 0
    assert next(r for r in found.replays if r.name == "shortest first").starts["0"][0] == 50


def test_last_come_first_served_is_an_order_that_was_known_to_be_wrong():
    """First come, first served lets no job wait for those that came after it."""
    lengths = [10, 20, 30, 40]
    order = [0, 3, 2, 1]
    ends = np.cumsum([lengths[k] for k in order])
    runs = [ran(k, k, end - lengths[k], end) for k, end in zip(order, ends.tolist(), strict=True)]
    _, parts = judged(runs)
    assert parts["delay"] == 0
    assert parts["known order"] == (10 + 50 + 80) - (10 + 30 + 60)
    assert parts["foresight"] == 0


def test_backfilling_keeps_the_promise_to_the_first():
    """A job behind the first starts early only if its limit lets it end in time."""
    wide = {"gpus": 2}
    for limit, early in ((10.0, True), (12.0, False)):
        runs = [
            ran(0, 0, 0, 10, limit_s=10.0),
            ran(1, 0, 10, 20, **wide),
            ran(2, 0, 20, 22, limit_s=limit),
        ]
        found, _ = judged(runs)
        starts = next(r.starts for r in found.replays if r.name.startswith("first come"))
        assert starts["1"][0] == 10
        assert starts["2"][0] == (0 if early else 20)


def test_a_promise_counts_only_what_runs_now():
    """A job that ended long before its limit gives nothing back at that limit."""
    runs = [
        ran(0, 0, 0, 2, limit_s=30.0),
        ran(1, 0, 0, 40, limit_s=60.0),
        ran(2, 1, 40, 50, gpus=2, limit_s=10.0),
        ran(3, 3, 50, 90, limit_s=40.0),
        ran(4, 89, 90, 99, gpus=2),
    ]
    found, _ = judged(runs)
    starts = next(r.starts for r in found.replays if r.name.startswith("first come"))
    assert starts["3"][0] == 3
    assert starts["2"][0] == 43


def test_jobs_that_a_replay_cannot_place_keep_their_recorded_starts():
    """Towards the end less is proven, so that the long job cannot wait for the short one."""
    runs = [
        ran(0, 0, 0, 20),
        ran(1, 0, 0, 10, "n2"),
        ran(2, 0, 10, 40, "n2"),
        ran(3, 1, 40, 45, "n2"),
    ]
    found, _ = judged(runs)
    assert all(len(each.starts) == 4 and each.wait_s < float("inf") for each in found.replays)


def test_topology_is_what_fragments_cost():
    """Jobs of others leave one free device on each of two nodes, which hold no job of two."""
    runs = [
        *(ran(f"a{k}", 0, 0, 50, f"n{k}", account="b") for k in (1, 2)),
        *(ran(f"b{k}", 0, 0, 10, f"n{k}") for k in (1, 2)),
        ran("x", 0, 50, 60, "n1", 2),
        ran("y", 0, 50, 60, "n2", 2),
    ]
    _, parts = judged(runs, queue="p/a", topology=True)
    assert parts["topology"] == (50 + 50) - (10 + 20)


def test_a_window_ends_where_too_little_is_proven():
    """One of two nodes is not seen after 40 s, and jobs that start later are not judged."""
    runs = [ran(0, 0, 0, 40, "n1"), *(ran(k, 0, 10 * k, 10 * k + 10, "n2") for k in range(10))]
    found, _ = judged(runs, trust=0.9)
    assert found.jobs == 5
    assert 40 <= found.window_s[1] < 50
    assert "50%" in found.trusted_why


def test_what_a_log_does_not_tell_is_said():
    """Requeues, cut and open runs, holds, other queues, idle nodes and single nodes."""
    runs = [
        ran(0, 0, 0, 10),
        ran(1, 0, 10, 20, state="PREEMPTED"),
        ran(2, 0, 20, 30, state="REQUEUED"),
        ran(2, 30, 30, 40),
        ran(3, 0, 60, 70, eligible_s=45.0),
        ran(4, 0, 70, 80, account="b"),
        ran(5, 0, 600, 610, state="CANCELLED"),
        ran(6, 80, 80, 90, account="b"),
    ]
    found, _ = judged(runs, queue="p/a")
    assert found.jobs == 3
    rests_on, unknown = "\n".join(found.rests_on), "\n".join(found.unknown)
    assert "keep their true times: 1, as they were stopped" in rests_on
    assert "they ran more than once, so that a requeue may hide an earlier wait" in rests_on
    assert "jobs before them): 1. These 0.0 h in all" in rests_on
    assert "cancelled while they ran: 1." in rests_on
    assert "on which other jobs ran, too: 1 of 1." in rests_on
    assert "Sizes of nodes" in rests_on
    assert "longer than 300 s each time" in unknown
    assert "whether one job at once was a limit" in unknown
    assert "energy" in unknown
    assert found.waited_s == (60 - 45) + 600


def test_queues_are_partitions_and_accounts():
    """The one that waited the most comes first, and is judged if none is named."""
    runs = [
        ran(0, 0, 0, 10, partition="p"),
        ran(1, 0, 10, 20, partition="q", node="n1"),
        ran(2, 0, 0, 10, partition="q", node="n2"),
        ran(3, 0, 30, 40, partition="p", account="b"),
    ]
    instance, recorded = read_runs(runs)
    names = [each.name for each in queues_seen(instance, recorded, 0.0)]
    assert names == ["p+q", "p", "p/b", "q", "q/a", "p/a"]
    assert judged(runs)[0].queue == "p"
    with pytest.raises(InputError, match="one of p"):
        judged(runs, queue="r")
    with pytest.raises(InputError, match="no job that can be judged"):
        judged([ran(0, 0, 0, 10), ran(1, 0, 9, 19, state="PREEMPTED")], since_s=8.0)


def test_policies_are_driven_over_the_whole_log():
    """Their waits stand beside the others, and count no pause for a start."""
    runs = [ran(0, 0, 0, 10), ran(1, 0, 20, 24), ran(2, 0, 30, 32)]
    found, _ = judged(runs, policies=("fifo", "sjf"))
    driven = {each.name: each.wait_s for each in found.replays if each.space == "driven"}
    assert driven["fifo"] == 10 + 14


@pytest.mark.slow
def test_a_real_log_of_one_node_is_judged_almost_exactly():
    """XDMoD's phillips: one node with one job at a time; the bound is by SRPT."""
    path = Path(__file__).parents[4] / "shared" / "data" / "xdmod_slurm" / "phillips.log.gz"
    if not path.exists():
        pytest.skip(f"no log at {path}")
    columns = (
        "jobid,jobidraw,cluster,partition,qos,account,group,gid,user,uid,submit,eligible,start,"
        "end,elapsed,exitcode,state,nnodes,ncpus,reqcpus,reqmem,reqtres,alloctres,timelimit,"
        "nodelist,jobname"
    )
    account, form = RowAccount(), LogFormat(zone=ZoneInfo("UTC"), columns=tuple(columns.split(",")))
    runs = sacct_runs([path], form, account, LogFilter(device="cpu"))
    read = log_instance(runs, account, place="log", name="log", source="", instant=True)
    found, _, _ = judge(read.instance, read.recorded, cluster_known=False, trust=0.0)
    hours = [cause.wait_s / 3600 for cause in found.causes]
    assert found.waited_s / 3600 == pytest.approx(18_828.7, abs=0.1)
    assert hours == pytest.approx([462.5, 0.0, 6418.8, 0.0, 4.0, 11_943.4], abs=2.0)
