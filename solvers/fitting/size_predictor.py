"""The training of a predictor of job sizes on an instance, and its test on the last jobs.

Jobs are replayed in order of time, so that each prediction uses only jobs that had ended before the
job's submission. As a trace does not record starts, a job counts as complete when it would be
without queueing.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from ronda.formulations.prediction.features import CATEGORIES, COLUMNS, Features
from ronda.formulations.prediction.qssf_service import Service
from ronda.instances.base import Floats
from ronda.instances.errors import InputError
from ronda.instances.files.fits import sealed
from ronda.instances.files.json import fingerprint
from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.models.fits import Calibration, Past, Predictor
from ronda.instances.profile import Rigid
from ronda.solvers.versions import versions

Told = TypeVar("Told")

PARAMETERS = {
    "objective": "regression",
    "learning_rate": 0.05,
    "num_leaves": 31,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}


def train(instance: Instance, *, alpha: float = 0.1, seed: int = 0) -> Predictor:
    """Return a predictor of sizes for jobs like an instance's, the same for the same seed.

    Raises InputError for an instance with too few jobs, or with elastic applications, where sizes
    do not determine run times.
    """
    jobs = _rigid(instance)
    features = Features(*_words(jobs))
    rows = np.array([row for _, row in _gone_through(jobs, features.submit, features.end)])
    first = int(0.8 * len(jobs))  # the trees are fitted to earlier jobs
    logs = np.log([_work(job) for job in jobs[:first]])
    learner = Predictor(
        instance=instance.name,
        fingerprint=fingerprint(instance),
        alpha=alpha if alpha else 0,
        users=_words(jobs)[0],
        partitions=_words(jobs)[1],
        names=_words(jobs)[2],
        model=_trees(rows[:first], logs, seed),
        calibration=Calibration(jobs=1, correlation=0, service_correlation=0, error=0, coverage=0),
        versions=versions(),
    )
    service = Service(learner)
    calibration = _judged(jobs, service, first)
    until_s = jobs[-1].submit_s
    ended = sorted((j for j in jobs if j.submit_s + _work(j) <= until_s), key=_end_s)
    past = tuple(
        Past(gpus=j.gpus, work=_work(j), partition=j.partition, user=j.user, name=j.name)
        for j in ended[-2000:]
    )
    errors = service.errors.known()
    return sealed(replace(learner, errors=errors, past=past, calibration=calibration))


def _rigid(instance: Instance) -> tuple[Job, ...]:
    """Return the jobs of an instance in order of submission; refuse elastic jobs."""
    for job in instance.jobs:
        models = instance.profiles[job.profile].throughput.values()
        if not all(isinstance(each, Rigid) for each in models):
            raise InputError(instance.name, f"the elastic job {job.id!r}", "rigid jobs, of a trace")
    if len(instance.jobs) < 50:
        raise InputError(instance.name, f"{len(instance.jobs)} jobs", "at least 50")
    return instance.jobs


def _work(job: Job) -> float:
    assert job.truth is not None
    return job.truth.work


def _end_s(job: Job) -> float:
    return job.submit_s + _work(job)


def _words(jobs: tuple[Job, ...]) -> tuple[tuple[str, ...], ...]:
    users = sorted({job.user for job in jobs if job.user})
    names = Counter(job.name for job in jobs if job.name)
    frequent = tuple(sorted(name for name, _ in names.most_common(100)))  # as in Helios
    return tuple(users), tuple(sorted({job.partition for job in jobs})), frequent


def _gone_through(
    jobs: tuple[Job, ...],
    submit: Callable[[Job, float], Told],
    end: Callable[[Job, float], object],
) -> Iterator[tuple[Job, Told]]:
    """Yield each job with its prediction on submission, after the ends of earlier jobs."""
    running: list[tuple[float, int]] = []
    for k, job in enumerate(jobs):
        while running and running[0][0] <= job.submit_s:
            gone = jobs[heapq.heappop(running)[1]]
            end(gone, _work(gone))
        yield job, submit(job, job.submit_s)
        heapq.heappush(running, (_end_s(job), k))


def _trees(rows: Floats, logs: Floats, seed: int) -> str:
    """Fit trees to rows (J, F) and log sizes (J,), and return them as text."""
    import lightgbm  # only predictors need it

    data = lightgbm.Dataset(rows, logs, feature_name=[c.replace(" ", "_") for c in COLUMNS])
    data.set_categorical_feature([k for k in CATEGORIES if not np.isnan(rows[:, k]).all()])
    text: str = lightgbm.train(PARAMETERS | {"seed": seed}, data, 200).model_to_string()
    return text


def _judged(jobs: tuple[Job, ...], service: Service, first: int) -> Calibration:
    """Replay all jobs, with errors from `first` on, and test the predictions of the last jobs."""
    from scipy.stats import spearmanr

    judged = int((1.0 - 0.1) * len(jobs))  # the last tenth
    work, believed, shares = [], [], []
    places = {job.id: k for k, job in enumerate(jobs)}

    def submit(job: Job, now_s: float) -> None:
        k, of = places[job.id], service.submit([job], now_s)[0]
        if k < first:
            service.forget(job)
        if k >= judged and of is not None:
            true = _work(job)
            work.append((job.gpus, true))
            believed.append(of.left()[0])
            shares.append(of.share(true))

    for _ in _gone_through(jobs, submit, service.end):
        pass
    within = sum(0.1 <= share <= 0.9 for share in shares)
    gpus, true = np.array(work).T
    told = np.array(believed)

    def correlation(a: Floats, b: Floats) -> float:
        """Return the correlation of a and b, or 0 if one of them is constant."""
        return float(spearmanr(a, b)[0]) if np.ptp(a) and np.ptp(b) else 0.0

    return Calibration(
        jobs=len(told),
        correlation=correlation(told, true),
        service_correlation=correlation(told * gpus, true * gpus),
        error=float(np.abs(np.log(told / true)).mean()),
        coverage=within / len(told),
        shares=tuple(sorted(shares)),
    )
