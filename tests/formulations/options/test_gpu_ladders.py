"""GPU counts that greedy elastic policies step through."""

import msgspec

from ronda.formulations.options.gpu_ladders import movable, own_batch_ladders
from ronda.instances import generate


def test_counts_and_rates_are_those_of_the_jobs_own_batch():
    """Every count within the job's limits, or powers of two and what it names; all with a speed."""
    round_ = generate.round(jobs=12, severity="loose", seed=1)
    for every in (True, False):
        for ladder in own_batch_ladders(round_, every=every):
            job, profile = ladder.state.job, round_.profiles[ladder.state.job.profile]
            low, high = job.min_gpus or job.gpus, job.max_gpus or job.gpus
            assert all(low <= n <= high for n in ladder.gpus)
            assert list(ladder.gpus) == sorted(set(ladder.gpus))
            assert set(ladder.batch) == {job.batch or profile.base_batch}
            assert min(ladder.rate) > 0
            if not every:
                named = {low, job.gpus, high}
                assert all(n & (n - 1) == 0 or n in named for n in ladder.gpus)


def test_jobs_that_may_not_be_stopped_have_none():
    """Only jobs that wait or may be stopped, in order of submission."""
    round_ = next(
        r
        for r in map(generate.tiny_round, range(100))
        if any(not s.job.preemptible for s in r.running)
    )
    found = movable(round_)
    assert all(s.allocation is None or s.job.preemptible for s in found)
    assert [s.job.submit_s for s in found] == sorted(s.job.submit_s for s in found)
    ids = {ladder.state.job.id for ladder in own_batch_ladders(round_, every=True)}
    assert ids <= {s.job.id for s in found}


def test_a_waiting_job_goes_where_most_gpus_are_not_promised():
    """Two equal pools: the first job belongs to the first one, the second to the other."""
    round_ = generate.round(jobs=2, severity="loose", seed=1)
    cluster = round_.cluster
    group = cluster.node_groups[0]
    twin = msgspec.structs.replace(cluster.gpu_types[0], name="twin")
    two = msgspec.structs.replace(
        cluster,
        gpu_types=(cluster.gpu_types[0], twin),
        node_groups=(group, msgspec.structs.replace(group, name="other", gpu_type="twin")),
    )
    name = cluster.gpu_types[0].name
    profiles = {
        key: msgspec.structs.replace(p, throughput=p.throughput | {"twin": p.throughput[name]})
        for key, p in round_.profiles.items()
    }
    free = [
        msgspec.structs.replace(
            s, allocation=None, job=msgspec.structs.replace(s.job, gpu_types=())
        )
        for s in round_.jobs
    ]
    round_ = msgspec.structs.replace(
        round_, cluster=two, profiles=profiles, running=(), waiting=tuple(free)
    )
    assert [ladder.pool for ladder in own_batch_ladders(round_, every=True)] == [0, 1]
