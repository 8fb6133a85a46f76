"""Short jobs made of a real trace, for four nodes of eight GPUs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from ronda.instances.errors import InputError
from ronda.instances.files.packaged import load
from ronda.instances.instance import Instance
from ronda.instances.job import Job

Numbers = npt.NDArray[Any]

TRACE, MOST_GPUS, FEWER = "venus-vcvgl", 64, 4
"""Jobs of the trace of at most so many GPUs; each asks for a fourth of them here."""

NODES, NODE_GPUS = 4, 8
SHORTEST_S, LONGEST_S, SHORT_S = 20.0, 180.0, 5.0
"""Seconds of jobs here, the least of which are jobs of at most `SHORT_S` seconds in the trace."""

SPEEDS = {1: 1.0, 2: 1.9, 4: 3.5}
"""Relative speeds of elastic jobs by GPUs."""

LOADS = {"busy": (60, 1.3, 210.0), "calm": (40, 0.5, 300.0)}
"""Jobs, the GPUs that they ask for over those that there are, and seconds of submissions."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A job as it is submitted; its comment says what ronda may do with it."""

    name: str
    user: str
    submit_s: float
    gpus: int
    duration_s: float
    limit_min: int
    comment: str

    @property
    def options(self) -> tuple[str, ...]:
        """The words of sbatch."""
        nodes = ceil(self.gpus / NODE_GPUS)
        each = self.gpus // nodes
        return (
            *(f"--job-name={self.name}", f"--account={self.user}", f"--comment={self.comment}"),
            *(f"--nodes={nodes}", "--ntasks-per-node=1", f"--cpus-per-task={each}"),
            *(f"--gres=gpu:{each}", f"--time={self.limit_min}", "--requeue", "--open-mode=append"),
        )

    @property
    def speeds(self) -> str:
        """Speeds by GPUs, in thousandths of the speed on those that it asks for."""
        own = SPEEDS if "gpus=" in self.comment else {self.gpus: 1.0}
        return " ".join(f"{n}:{round(1000 * v / own[self.gpus])}" for n, v in own.items())


def workload(load_name: str, seed: int) -> tuple[list[Submission], str]:
    """Return jobs of the trace's second half, and a log as sacct's of those of its first half.

    Jobs are each so-manieth one, from one that the seed tells. Times of submission shrink alike.
    Durations grow as a power of those of the trace, the power by which the load is offered. Limits
    are 1.1 to 3 times the duration, in whole minutes; those of elastic jobs last on one GPU, too.
    """
    count, offered, span_s = LOADS[load_name]
    instance = load(TRACE)
    if not isinstance(instance, Instance):
        raise InputError(TRACE, "a round", "an instance")
    fitting = [job for job in instance.jobs if job.gpus <= MOST_GPUS]
    fitting = sorted(fitting, key=lambda job: job.submit_s)
    half = len(fitting) // 2
    step = half // count
    drawn = fitting[half + 2 * seed % step :: step][:count]
    gpus, offered_s = _gpus(drawn), offered * NODES * NODE_GPUS * span_s
    power = min(
        np.linspace(0.0, 1.0, 1001), key=lambda p: abs(offered_s - gpus @ _seconds(drawn, p))
    )
    rng = np.random.default_rng(seed)
    submit_s = np.array([job.submit_s - drawn[0].submit_s for job in drawn])
    submit_s *= span_s / submit_s[-1]
    made = []
    for at, (job, own, last_s) in enumerate(zip(drawn, gpus, _seconds(drawn, power), strict=True)):
        lot = rng.random()
        comment = "" if lot < 0.1 else "ronda:requeue" if lot < 0.3 else "ronda"
        if own in SPEEDS and 0.3 <= lot < 0.5:
            comment += ":gpus=" + "/".join(f"{n}:{speed:g}" for n, speed in SPEEDS.items())
        slowest = SPEEDS[own] if "gpus=" in comment else 1.0
        limit_min = ceil(last_s * slowest * rng.uniform(1.1, 3.0) / 60)
        times = (float(submit_s[at]), int(own), float(last_s), limit_min)
        made.append(Submission(f"{_kind(job)}-{at:02}", str(job.user), *times, comment))
    past = fitting[:half]
    rows = ["JobID|JobName|User|Submit|Start|End|Elapsed|State|AllocTRES"]
    for at, (job, own, last_s) in enumerate(
        zip(past, _gpus(past), _seconds(past, power), strict=True)
    ):
        when = "|".join(["2026-01-01T00:00:00"] * 2 + ["2026-01-01T01:00:00"])
        ran = f"00:{int(last_s) // 60:02}:{int(last_s) % 60:02}"
        rows.append(f"{at + 1}|{_kind(job)}-{at}|root|{when}|{ran}|COMPLETED|gres/gpu={own}")
    return made, "\n".join(rows) + "\n"


def _kind(job: Job) -> str:
    return f"{job.user}.g{job.gpus}"


def _gpus(jobs: Sequence[Job]) -> Numbers:
    """Return the GPUs of jobs here; on two nodes as many on each."""
    gpus = np.array([ceil(job.gpus / FEWER) for job in jobs])
    return gpus + ((gpus > NODE_GPUS) & (gpus % 2 > 0))


def _seconds(jobs: Sequence[Job], power: float) -> Numbers:
    """Return the seconds of jobs here."""
    longer = np.array([job.truth.work / SHORT_S for job in jobs if job.truth])
    return np.clip(SHORTEST_S * longer**power, SHORTEST_S, LONGEST_S).round(3)
