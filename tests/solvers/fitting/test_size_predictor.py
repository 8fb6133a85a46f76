"""Training a predictor of sizes: what it sees, how right it says it is, what its file keeps."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.formulations.prediction.qssf_service import Service
from ronda.horizon.driver import run
from ronda.instances.errors import InputError
from ronda.instances.files import fits as predictors
from ronda.instances.files.packaged import load
from ronda.instances.job import Job, Truth
from ronda.solvers.fitting.size_predictor import train
from ronda.solvers.policies.rigid.queues import Fifo


@pytest.fixture(scope="module")
def trace(make_instance):
    """400 jobs of two users, one with long and one with short ones, on 1 or 2 of 4 GPUs."""
    rng = np.random.default_rng(5)
    rows, users = [], []
    for k in range(400):
        long = k % 3 == 0
        users.append("ann" if long else "bob")
        mean_s = 300.0 if long else 10.0
        rows.append((f"j{k}", 40.0 * k, 1 + k % 2, float(mean_s * rng.lognormal(sigma=0.3))))
    made = make_instance(rows)
    jobs = tuple(replace(j, user=u) for j, u in zip(made.jobs, users, strict=True))
    return replace(made, jobs=jobs)


@pytest.fixture(scope="module")
def predictor(trace):
    """A predictor trained on the trace."""
    return train(trace)


def test_training_finds_who_runs_long_jobs(predictor):
    """Two users, 30 times apart: sizes are ranked, and quantiles are about right."""
    found = predictor.calibration
    assert found.jobs == 40
    assert found.correlation > 0.6
    assert 0.6 <= found.coverage <= 0.95


def test_the_mean_is_the_published_mixture(predictor):
    """0.1 of the rolling estimate, 9e6, and 0.9 of what the trees say."""
    service = Service(replace(predictor, errors={}, past=()))
    asked = Job(id="a", submit_s=0, profile="p", gpus=1, user="new")
    (trees,) = service.submit([asked], 0.0)
    service.forget(asked)
    service.end(replace(asked, id="b", user="else", partition="q"), 9e6)
    (mixed,) = service.submit([replace(asked, id="c", user="newer")], 0.0)
    assert mixed.left()[0] == pytest.approx(0.1 * 9e6 + 0.9 * trees.left()[0])


def test_errors_are_learnt_from_completions(predictor):
    """A job 7 times as large as the trees said: the next belief is 7 times theirs, of all."""
    service = Service(replace(predictor, errors={}, past=(), alpha=0))
    asked = Job(id="a", submit_s=0, profile="p", gpus=1, user="ann")
    (trees,) = service.submit([asked], 0.0)
    service.end(asked, 7.0 * trees.left()[0])
    (later,) = service.submit([replace(asked, id="b", user="new", partition="q")], 0.0)
    assert later.share(6.99 * trees.left()[0]) < 0.5
    assert later.work[-1] == pytest.approx(7.0 * trees.left()[0])  # nothing larger was seen


def test_same_seed_same_predictor(trace, predictor):
    """To the last digit of the trees."""
    assert train(trace) == predictor


def test_a_file_keeps_it_and_refuses_a_change(tmp_path, predictor):
    """The text model comes back; one changed number is seen."""
    path = tmp_path / "sizes.json"
    predictors.write_predictor(predictor, path)
    assert predictors.read_predictor(path) == predictor
    assert predictor.versions["lightgbm"]
    path.write_bytes(path.read_bytes().replace(b'"coverage":', b'"coverage":1'))
    with pytest.raises(InputError, match="checksum"):
        predictors.read_predictor(path)


def test_elastic_jobs_and_few_jobs_are_refused(trace):
    """The sizes of neither tell how long jobs run."""
    with pytest.raises(InputError, match="elastic"):
        train(load("pollux-1"))
    with pytest.raises(InputError, match="at least 50"):
        train(replace(trace, jobs=trace.jobs[:49]))


def test_a_predictor_needs_the_level_that_it_tells(trace, predictor):
    """Where sizes are declared, nobody predicts them."""
    with pytest.raises(InputError, match="history"):
        run(trace, "qssf", predictor=predictor)


@dataclass(frozen=True)
class Watched(Fifo):
    """Decides as ``fifo`` does, and looks at what it is told of the jobs that run."""

    told: ClassVar[list[tuple[float, float]]] = []

    def plan(self, round, **how):
        """Keep the work done, and the size that is believed, of each."""
        self.told += [(s.done_at(round.now_s), s.job.estimate.work) for s in round.running]
        return super().plan(round, **how)


def test_a_job_is_believed_to_be_larger_than_what_it_has_done(trace, predictor):
    """Also one that has outlived what was told when it came."""
    jobs = tuple(replace(j, truth=Truth(work=5 * j.truth.work)) for j in trace.jobs[:60])
    Watched.told.clear()
    run(replace(trace, jobs=jobs), Watched(), knowledge="history", predictor=predictor)
    assert len(Watched.told) > 60
    assert all(done < work for done, work in Watched.told)


def before(schedule, until_s):
    """Return what was decided until a time: what started, and where."""
    return [
        (job.id, segment.start_s, segment.placement)
        for job in schedule.jobs
        for segment in job.segments
        if segment.start_s <= until_s
    ]


@pytest.mark.parametrize("policy", ["qssf", "qssf(backfill=conservative)"])
def test_the_truth_of_jobs_that_are_not_complete_decides_nothing(trace, predictor, policy):
    """Longer jobs from half of the horizon on: what was decided until then stays the same."""
    crowded = tuple(replace(j, submit_s=j.submit_s / 1.3) for j in trace.jobs[:150])
    given, until_s = replace(trace, jobs=crowded), 2000.0

    def drive(instance):
        return run(instance, policy, knowledge="history", predictor=predictor)

    schedule = drive(given)
    ends_s = {job.id: job.end_s for job in schedule.jobs}
    jobs = tuple(
        replace(j, truth=Truth(work=3 * j.truth.work)) if ends_s[j.id] > until_s else j
        for j in given.jobs
    )
    assert before(drive(replace(given, jobs=jobs)), until_s) == before(schedule, until_s)


def test_sizes_are_believed_as_predicted(trace, predictor):
    """In a run of its own trace the believed sizes are ranked as the true ones mostly are."""
    schedule = run(trace, "qssf", knowledge="history", predictor=predictor)
    told = [each for each in schedule.forecasts if each.what == "size"]
    assert len(told) == len(trace.jobs)
    by = np.array([(each.believed, each.real) for each in told])
    assert np.corrcoef(np.log(by.T))[0, 1] > 0.8
