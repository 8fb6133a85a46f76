"""The price engine on real worker processes: the same answer, whatever happens to them."""

import os
import signal
import subprocess
import sys
import time
from functools import cache
from threading import Timer

import dask.config
import numpy as np
import psutil
import pytest

from ronda.bench.speed.reference import reference
from ronda.formulations.allocation.separable import Separable
from ronda.instances.errors import InputError
from ronda.solvers.dask.cluster import connect
from ronda.solvers.prices import dask_jobs
from ronda.solvers.prices.dask_jobs import ClusterError, DaskJobs
from ronda.solvers.prices.engine import solve_separable
from ronda.solvers.prices.jobs import LocalJobs
from ronda.solvers.prices.search import Search

PRICES = (np.zeros(2), np.array([0.3, 2e-3]), np.array([1.0, 0.0]), np.array([7.0, 0.05]))


@pytest.fixture(scope="module")
def client():
    """Give the tests two worker processes."""
    with connect(workers=2) as client:
        yield client


@cache
def in_process(jobs):
    """Return the reference round of so many jobs and its answer by this process alone."""
    problem = reference(jobs)
    return problem, solve_separable(problem)


def assert_same(answer, expected):
    """Both answers are the same, bit for bit: plan, prices, bounds and the way there."""
    assert (answer.chosen == expected.chosen).all()
    assert (answer.dual.prices == expected.dual.prices).all()
    assert answer.objective == expected.objective
    assert (answer.bound, answer.dual.bound) == (expected.bound, expected.dual.bound)
    assert answer.dual.evaluations == expected.dual.evaluations
    assert (answer.stop, answer.cores, answer.columns) == (
        expected.stop,
        expected.cores,
        expected.columns,
    )


def ragged(jobs, seed):
    """Return a problem whose jobs have 0 to 6 options, some with ties, and some jobs must run."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 7, jobs)
    rows = int(counts.sum())
    return Separable(
        start=np.concatenate([[0], np.cumsum(counts)]),
        value=rng.integers(1, 50, rows) / 7,
        use=np.stack([2.0 ** rng.integers(0, 4, rows), rng.uniform(50, 500, rows)]),
        capacity=np.array([2.0 * jobs, 300.0 * jobs]),
        names=("gpus", "power_cap"),
        must=(rng.random(jobs) < 0.1) & (counts > 0),
        block_value=np.zeros(0),
        block_use=np.zeros((2, 0)),
        block_count=np.zeros(0),
        block_integer=np.zeros(0, dtype=bool),
    )


@pytest.mark.parametrize("shards", [1, 2, 3, 7, None])
def test_shards_answer_as_this_process_does_bit_for_bit(client, shards):
    """Sums, best options and least losses of 9,000 uneven jobs (three blocks) at several prices."""
    problem = ragged(9000, seed=1)
    local, spread = LocalJobs(problem), DaskJobs(problem, client, shards)
    for prices in PRICES:
        mine, theirs = local.reply(prices), spread.reply(prices)
        assert mine.value == theirs.value
        assert (mine.use == theirs.use).all()
        for limit, most in ((np.inf, 0), (np.inf, 500), (0.2, 10**6), (0.0, 40)):
            a, b = local.losses(prices, limit, most), spread.losses(prices, limit, most)
            assert a.next_loss == b.next_loss
            for name in ("best", "job", "row", "loss"):
                assert np.array_equal(getattr(a, name), getattr(b, name)), name


@pytest.mark.parametrize("jobs", [1000, 4096, 20000])
def test_same_plan_for_any_number_of_shards(client, jobs):
    """One, two or three shards or none at all: the same plan, prices and bound, bit for bit."""
    problem, expected = in_process(jobs)
    for shards in (1, 2, 3):
        answer = solve_separable(
            problem, Search(jobs=lambda own, n=shards: DaskJobs(own, client, n))
        )
        assert_same(answer, expected)


def test_shards_lie_on_all_workers_and_messages_are_small(client):
    """Each of two workers holds one of two shards of 20,000 jobs; an answer is a few numbers."""
    spread = DaskJobs(reference(20000), client)
    spread.reply(np.zeros(2))
    held = list(client.who_has(spread._shards).values())
    assert len({worker for workers in held for worker in workers}) == 2
    # 20,000 jobs are 5 blocks, of which the shards get 2 and 3 of 4,096 jobs, the last of 3,616;
    # each of their 56 options has 3 numbers of 8 bytes.
    sizes = client.nbytes([shard.key for shard in spread._shards], summary=False)
    options = [sizes[shard.key] / 24 / 56 for shard in spread._shards]
    assert options == pytest.approx([2 * 4096, 2 * 4096 + 3616], rel=0.01)
    answers = client.nbytes([answer.key for answer in spread._answered], summary=False)
    assert max(answers.values()) < 2000


class Killing:
    """Jobs whose workers are killed at the n-th question."""

    def __init__(self, jobs, client, at, *, delay_s=0.0, everyone=False):
        self.jobs, self.client, self.at = jobs, client, at
        self.delay_s, self.everyone = delay_s, everyone
        self.asked, self.killed = 0, []

    def reply(self, prices):
        """Answer, and kill a worker shortly after the question."""
        self.asked += 1
        if self.asked != self.at:
            return self.jobs.reply(prices)
        holders = list(self.client.who_has(self.jobs._shards).values())
        busy = {worker for workers in holders for worker in workers}
        pids = self.client.run(os.getpid, workers=None if self.everyone else sorted(busy) or None)
        self.killed = list(pids.values())[: None if self.everyone else 1]
        timer = Timer(self.delay_s, self.kill)
        timer.start()
        reply = self.jobs.reply(prices)
        timer.join()
        return reply

    def kill(self):
        """Kill as an operator or the kernel's out-of-memory killer does."""
        for pid in self.killed:
            os.kill(pid, signal.SIGKILL)

    def losses(self, prices, limit, most):
        """Answer."""
        return self.jobs.losses(prices, limit, most)


@pytest.mark.parametrize(
    ("at", "delay_s", "everyone"),
    [(1, 0.0, False), (5, 0.0, False), (12, 0.004, False), (20, 0.01, False), (9, 0.0, True)],
)
def test_killed_worker_does_not_change_the_answer(client, at, delay_s, everyone):
    """SIGKILL to a worker that holds a shard, or to all of them, before or amid an evaluation."""
    problem, expected = in_process(20000)
    client.wait_for_workers(2, timeout=60)
    made = []

    def killing(own):
        made.append(
            Killing(DaskJobs(own, client, 3), client, at, delay_s=delay_s, everyone=everyone)
        )
        return made[0]

    answer = solve_separable(problem, Search(jobs=killing))
    assert_same(answer, expected)
    assert made[0].killed
    for pid in made[0].killed:
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_shards_below_one_are_refused(client):
    """The error names the argument."""
    with pytest.raises(InputError, match=r"shards: found 0; expected at least 1"):
        DaskJobs(reference(10), client, 0)


def test_cluster_that_stays_without_workers_is_an_error(monkeypatch):
    """All workers leave for good: no waiting for ever."""
    monkeypatch.setattr(dask_jobs, "WITHOUT_WORKERS_S", 1.0)
    monkeypatch.setattr(dask_jobs, "POLL_S", 0.2)
    with connect(workers=1) as client:
        jobs = DaskJobs(reference(100), client)
        jobs.reply(np.zeros(2))
        client.cluster.scale(0)
        while client.nthreads():
            time.sleep(0.1)
        with pytest.raises(ClusterError, match="no worker for 1 s"):
            jobs.reply(np.zeros(2))
        with pytest.raises(InputError, match="no worker"):
            DaskJobs(reference(100), client)


def test_other_uses_of_dask_see_nothing_of_it(client):
    """Neither the warning that sending shards would give nor the client is anyone else's."""
    key = "distributed.admin.large-graph-warning-threshold"
    before = dask.config.get(key)
    DaskJobs(reference(10), client).reply(np.zeros(2))
    assert dask.config.get(key) == before
    with pytest.raises(ValueError, match="No clients found"):
        dask_jobs.wait([])


def test_dask_is_loaded_only_when_asked_for():
    """The engine in this process needs no Dask."""
    code = (
        "import sys, ronda.solvers.prices.engine; print({'dask', 'distributed'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
