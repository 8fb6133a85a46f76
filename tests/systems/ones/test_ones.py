"""ONES as a policy: dynamics of limits, deployment, determinism, resumption."""

import msgspec
import numpy as np
import pytest

from ronda.bench.runs.single import measure
from ronda.formulations.options.application import Application, pool_shapes
from ronda.horizon.driver import run
from ronda.horizon.solve import solve
from ronda.horizon.state import ClusterState
from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Costs, Job, Truth
from ronda.instances.learning import LearningCurve
from ronda.instances.profile import NoiseCurve, Parametric, Profile
from ronda.instances.round import Round
from ronda.instances.rules.validate import problems
from ronda.instances.traces.rigid import make_cluster
from ronda.solvers.registry import policy
from ronda.systems.ones.genome import IDLE
from ronda.systems.ones.limits import Candidate, candidates
from ronda.systems.ones.memory import PAST, FinishedLog, JobMemory, OnesMemory
from ronda.systems.ones.policy import account, update
from ronda.systems.ones.subproblem import OnesJob, Subproblem, subproblems
from ronda.systems.ones.trace import LONGHORN_NODE, ones_workload


def small(jobs=12, seed=3):
    """Return the shortest jobs of a workload on 4 nodes, submitted twenty times as fast."""
    whole = ones_workload(40, seed, nodes=4)
    short = sorted(whole.jobs, key=lambda j: j.truth.work)[:jobs]
    kept = sorted(short, key=lambda j: j.submit_s)
    begin = kept[0].submit_s
    moved = tuple(msgspec.structs.replace(j, submit_s=(j.submit_s - begin) // 20) for j in kept)
    return msgspec.structs.replace(whole, jobs=moved)


@pytest.fixture(scope="module")
def schedule():
    """One run of the small workload."""
    return run(small(), "ones", seed=1, time_limit_s=None)


def test_every_plan_is_accepted_and_the_schedule_too(schedule):
    """The independent checker finds nothing, in no round and in the whole."""
    assert not any(r.violations for r in schedule.rounds)
    assert measure(small(), schedule, wall_s=0.0).metrics["violations"] == 0


def test_jobs_start_on_one_gpu_and_never_more_than_double(schedule):
    """R starts at 1 and doubles; 4 x the request is never passed."""
    requested = {job.id: job.gpus for job in small().jobs}
    for outcome in schedule.jobs:
        sizes = [s.option.gpus for s in outcome.segments]
        assert sizes[0] == 1
        assert max(sizes) <= 4 * requested[outcome.id]
        largest = 1
        for gpus in sizes:
            assert gpus <= 2 * largest
            largest = max(largest, gpus)


def test_batches_follow_the_gpus_up_to_the_learning_rate_s_cap(schedule):
    """Global batch = base x min(GPUs, max_lr / lr)."""
    instance = small()
    profile = {job.id: instance.profiles[job.profile] for job in instance.jobs}
    for outcome in schedule.jobs:
        base, largest = profile[outcome.id].base_batch, profile[outcome.id].batches[-1]
        for segment in outcome.segments:
            assert segment.option.batch == min(base * segment.option.gpus, largest)


def test_same_seed_same_trajectory_and_after_a_kill(schedule, tmp_path):
    """The journal is cut after 60 decisions, the last one half written: the run ends the same."""
    instance, journal = small(), tmp_path / "journal.jsonl"
    whole = run(instance, "ones", seed=1, time_limit_s=None, journal=journal)
    assert whole.jobs == schedule.jobs
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:61]) + lines[61][:40])
    again = run(instance, "ones", seed=1, time_limit_s=None, journal=journal)
    assert again.jobs == whole.jobs
    other = run(instance, "ones", seed=2, time_limit_s=None)
    assert other.jobs != whole.jobs


def test_the_journal_does_not_repeat_what_stays(tmp_path):
    """The predictor's weights are written when they change, not at every tick."""
    journal = tmp_path / "journal.jsonl"
    run(small(4), "ones", seed=1, time_limit_s=None, journal=journal)
    lines = journal.read_bytes().splitlines()[1:]
    assert len(lines) > 20
    assert sum(b'"weights"' in line for line in lines) <= 2


def test_pools_share_the_power():
    """What is given to the first of two virtual clusters leaves the watts that the second uses."""
    structure = generate.Structure(partitions=2)
    made = generate.horizon(16, 16, "tight", 2, structure)
    capped = msgspec.structs.replace(made.budget, energy=None)
    instance = msgspec.structs.replace(made, budget=capped)
    schedule = run(instance, "ones", time_limit_s=None)
    assert not any(r.violations for r in schedule.rounds)


@pytest.mark.parametrize("spec", ["ones(refit=2)", "ones(population=3)"])
def test_parameters_that_cannot_be_are_refused(spec):
    """A share is at most 1; sizes and probabilities are the artifact's, and no parameters."""
    with pytest.raises(InputError, match=spec[5:10]):
        policy(spec)


def test_it_waits_while_a_job_pauses(schedule):
    """ONES blocks until all workers run: what runs is left as it is, and nothing starts."""
    round_ = _round()
    first = solve(round_, policy("ones"))
    running = [
        msgspec.structs.replace(s, allocation=first.allocations[s.job.id], since_s=5.0)
        for s in round_.waiting[:1]
    ]
    paused = msgspec.structs.replace(
        round_, running=tuple(running), waiting=round_.waiting[1:], now_s=2.0
    )
    plan = policy("ones").plan(paused, deadline=Deadline(None), seed=0, initial=first)
    assert list(plan.allocations) == [running[0].job.id]
    assert check(paused, plan) == []


# -- limits and deployment, by hand ---------------------------------------------------------------


def _instance(jobs=4, nodes=2):
    """Return jobs of 10 samples an epoch, request 2 GPUs, on nodes of 4."""
    profile = Profile(
        name="p",
        throughput={"V100": Parametric(alpha_c_s=0.0, beta_c_s=1.0)},
        base_batch=1.0,
        batches=(1.0, 2.0, 4.0),
    )
    made = tuple(
        Job(
            id=f"j{k}",
            submit_s=0.0,
            profile="p",
            gpus=2,
            min_gpus=1,
            max_gpus=8,
            epoch=10.0,
            truth=Truth(work=1000.0, curve="c"),
        )
        for k in range(jobs)
    )
    return Instance(
        name="made",
        cluster=make_cluster(LONGHORN_NODE, nodes),
        profiles={"p": profile},
        jobs=made,
        curves={"c": NoiseCurve(until=(1.0,), batches=(1.0,), scale=((100.0,),))},
        costs=Costs(restart_s=30.0, scale_s=2.0),
        cadence=Cadence(period_s=1.0, on_event=False),
    )


def _round():
    """Return the first round of `_instance`."""
    state = ClusterState(_instance())
    state.advance(0.0)
    made: Round = state.snapshot(1.0)
    return made


def _problem(genome):
    """Return a subproblem of 8 GPUs that runs a genome (-1 idle, else the number of a job)."""
    round_ = _round()
    (empty,) = subproblems(round_, {})
    running = empty.placements(np.array(genome))
    jobs = [
        OnesJob(
            msgspec.structs.replace(
                job.state,
                allocation=job.on(round_, running[j]) if j in running else None,
                started=j in running,
            ),
            job.of,
        )
        for j, job in enumerate(empty.jobs)
    ]
    return Subproblem(0, empty.node, tuple(jobs), np.array(genome))


def _memory(**samples):
    """Return a memory of jobs by samples, R, epochs when placed and when scaled."""
    return OnesMemory(
        jobs={
            name: JobMemory(limit=limit, samples=y, ran_s=ran_s, placed=placed, scaled=scaled)
            for name, (y, limit, ran_s, placed, scaled) in samples.items()
        }
    )


o = IDLE

FIRST = [9.9, 2.0, 1.0, 0.5, 0.7]


@pytest.mark.parametrize(
    ("epochs", "scaled", "limit", "target"),
    [
        (1, 0, 2, 2),  # executed for one epoch only
        (2, 0, 4, 4),  # doubled
        (3, 2, 2, 2),  # one epoch since it was scaled
    ],
)
def test_doubling_needs_two_epochs(epochs, scaled, limit, target):
    """Job 0 runs on R = 2 GPUs; a waiting job that never ran has nothing to keep."""
    problem = _problem([0, 0, o, o, o, o, o, o])
    memory = _memory(
        j0=(10.0 * epochs, 2, 50.0, 0, scaled),
        **dict.fromkeys(("j1", "j2", "j3"), (0.0, 1, 0.0, 0, 0)),
    )
    found = candidates(problem, memory.jobs)
    assert (found[0].known.limit, found[0].target) == (limit, target)
    assert [each.target for each in found[1:]] == [0, 0, 0]
    assert [each.new for each in found] == [False, True, True, True]


def test_the_dominant_job_is_scaled_down():
    """Job 0 has 6 of 8 GPUs and ran 300 s, the median is 100 s: floor(12 / 4) = 3, made even: 4."""
    problem = _problem([0, 0, 0, 0, 0, 0, 1, 2])
    memory = _memory(
        j0=(50.0, 8, 300.0, 0, 0),
        j1=(50.0, 1, 100.0, 0, 0),
        j2=(50.0, 1, 50.0, 0, 0),
        j3=(0.0, 1, 0.0, 0, 0),
    )
    found = candidates(problem, memory.jobs)
    assert [each.target for each in found] == [4, 2, 2, 0]


def _candidates(problem, epochs, placed):
    """Return candidates by epochs now and when last placed."""
    return [
        Candidate(job, JobMemory(limit=4, samples=10.0 * e, placed=p), e, most=8, start=1)
        for job, e, p in zip(problem.jobs, epochs, placed, strict=True)
    ]


def test_the_whole_genome_waits_for_an_epoch_of_every_job_that_changes():
    """Job 0 would shrink: after an epoch all is deployed; before, only 3 starts on idle GPUs."""
    problem = _problem([0, 0, 1, 1, o, o, 2, 2])
    wanted = np.array([0, 1, 1, 1, 3, 3, 2, 2])
    ready = _candidates(problem, [3, 3, 9, 0], [2, 2, 9, 0])
    genome, whole = update(problem, wanted, ready)
    assert whole
    assert genome.tolist() == wanted.tolist()
    early = _candidates(problem, [2, 3, 9, 0], [2, 2, 9, 0])
    genome, whole = update(problem, wanted, early)
    assert not whole
    assert genome.tolist() == [0, 0, 1, 1, 3, 3, 2, 2]


def test_a_deployment_halves_the_limits_of_those_that_wait_to_resume():
    """Job 1 waits with R = 4; job 0 moves from 2 to 1 GPU; job 2, never started, keeps R."""
    problem = _problem([0, 0, o, o, o, o, o, o])
    jobs = list(problem.jobs)
    jobs[1] = OnesJob(msgspec.structs.replace(jobs[1].state, started=True), jobs[1].of)
    problem = Subproblem(0, problem.node, tuple(jobs), problem.deployed)
    found = _candidates(problem, [5, 4, 0, 0], [1, 1, 0, 0])
    known = {f"j{k}": each.known for k, each in enumerate(found)}
    memory = OnesMemory(jobs=known, speeds={"j2": {1: [3.0]}})
    wanted = np.array([0, o, o, o, 3, o, o, o])
    after = account(problem, wanted, found, memory, whole=True)
    limits = [after.jobs[f"j{k}"].limit for k in range(4)]
    assert limits == [4, 2, 4, 4]
    assert (after.jobs["j0"].scaled, after.jobs["j0"].placed) == (5, 5)
    # The part of an epoch that the change ended: 2 samples in 1 s on 2 GPUs, batch 2.
    assert after.speeds == {"j0": {2: [2.0]}, "j2": {1: [3.0]}}
    part = account(problem, wanted, found, memory, whole=False)
    assert part.jobs["j1"].limit == 4  # not the whole genome


def test_jobs_lie_within_a_node_as_they_were_deployed():
    """GPUs of a node are interchangeable: the order of before is kept where the node still agrees.

    On the second node job 2 had one GPU more than it has.
    """
    problem = _problem([0, 0, 1, 1, 2, 2, o, o])
    states = tuple(job.state for job in problem.jobs)
    round_ = msgspec.structs.replace(_round(), running=states[:3], waiting=states[3:])
    last = {0: [["0", "j1", "j0", "j0", "j1"], ["1", "j2", "", "j2", "j2"]]}
    (found,) = subproblems(round_, last)
    assert found.deployed.tolist() == [1, 0, 0, 1, 2, 2, o, o]
    assert found.written(found.deployed) == [
        ["0", "j1", "j0", "j0", "j1"],
        ["1", "j2", "j2", "", ""],
    ]


def test_an_epoch_is_logged_with_its_speed():
    """Two GPUs, batch 2: 2 samples in a second, so 10 samples an epoch are done after 5 s."""
    (job, *_) = _problem([0, 0, o, o, o, o, o, o]).jobs
    memory = _memory(j0=(8.0, 2, 0.0, 0, 0))
    memory = memory.at(job.state.since_s + 0.9, {"j0": job})
    assert memory.speeds == {}
    memory = memory.at(job.state.since_s + 2.0, {"j0": job})
    assert memory.speeds == {"j0": {2: [2.0]}}
    assert len(memory.rows["j0"]) == 1


def test_a_job_that_ends_is_history():
    """Its logs but the last teach progress: 10 of 20 samples. The oldest history is forgotten."""
    before = OnesMemory(
        ended=300,
        jobs={"a": JobMemory(limit=1, samples=20.0)},
        rows={"a": [[*FIRST, 10.0], [*FIRST, 20.0]]},
        past={f"p{k}": FinishedLog([], []) for k in range(PAST)},
    )
    after = before.at(5.0, {})
    assert (after.ended, after.jobs, after.rows) == (301, {}, {})
    assert after.past["a"] == FinishedLog([FIRST], [0.5])
    assert len(after.past) == PAST
    assert "p0" not in after.past
    assert list(before.jobs) == ["a"]


def test_batches_beyond_what_is_offered_are_frozen():
    """Base batch 1, offered up to 4: on 3 GPUs 2 (3 is not offered), from 4 on 4."""
    state = _round().waiting[0]
    (shape,) = pool_shapes(_instance().cluster)
    job = OnesJob(state, Application(_instance().profiles["p"], shape))
    assert [job.batch(c) for c in (1, 2, 3, 4, 8)] == [1, 2, 2, 4, 4]
    # At most 4 x 2 requested GPUs; the pool has 8.
    assert job.sizes.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_scaling_in_place_costs_less_than_a_restart():
    """j0: 0 s to start; a change while it runs 2 s, a resumption 30 s."""
    costs = _instance().costs
    assert (costs.pause(4, running=True), costs.pause(4)) == (2.0, 30.0)
    schedule = run(_instance(2), "ones", seed=0, time_limit_s=None)
    pauses = {
        round(b.resume_s - b.start_s, 6)
        for job in schedule.jobs
        for a, b in zip(job.segments, job.segments[1:], strict=False)
        if a.end_s == b.start_s and a.option.gpus != b.option.gpus and b.resume_s < b.end_s
    }
    assert pauses == {2.0}
    assert check(_instance(2), schedule) == []
    strict = msgspec.structs.replace(_instance(2), costs=Costs(restart_s=30.0, scale_s=2.5))
    assert {v.code for v in check(strict, schedule)} >= {"delay"}
    without = msgspec.structs.replace(_instance(2), costs=Costs(restart_s=30.0))
    assert {v.code for v in check(without, schedule)} >= {"delay"}


def test_losses_need_an_epoch():
    """A learning curve on a job that does not tell its epoch is refused when the file is read."""
    instance = ones_workload(1)
    (job,) = instance.jobs
    broken = msgspec.structs.replace(job, epoch=None)
    (problem,) = problems(msgspec.structs.replace(instance, jobs=(broken,)))
    assert problem.place.startswith("jobs[0].truth.learning")


def test_rounds_show_losses_after_each_epoch_and_no_truth():
    """10 samples an epoch at 1 sample/s: nothing before 10 s, then the log of epochs 1 and 3."""
    learning = LearningCurve(initial_loss=2.0, final_loss=1.0, final_accuracy=0.5, steepness=4.0)
    jobs = tuple(
        msgspec.structs.replace(job, truth=msgspec.structs.replace(job.truth, learning=learning))
        for job in _instance(1).jobs
    )
    state = ClusterState(msgspec.structs.replace(_instance(1), jobs=jobs))
    state.advance(0.0)
    round_ = state.snapshot(1.0)
    plan = solve(round_, policy("ones"))
    state.ledger.accept(plan)
    state.apply(state.difference(plan))
    seen = []
    for now_s in (9.0, 10.0, 39.5):
        state.advance(now_s)
        (running,) = state.snapshot(1.0).running
        assert running.job.truth is None
        seen.append(running.log and running.log.epochs)
    assert seen == [None, 1, 3]
