"""The search in hindsight: every trial changes the best run known, from a moment on, at random.

Trial number k of a seed draws from a generator of its own, and depends on nothing but the trials
before it. So a search that goes on from its results is one that was never cut.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from lab.hindsight.steering import Nudge, Run, drive
from ronda.bench.runs.results import SealedLines
from ronda.instances.check.checker import check
from ronda.instances.errors import InputError
from ronda.instances.instance import DECLARED, Instance, Knowledge

ONLINE = ("srtf", "powerflow")
"""Policies that are run for comparison only, the second one where power or energy is limited."""

STEERED = ("prices", "prices(horizon_s=300)", "milp(gap=1e-3)", "prices(horizon_s=1500)")
"""Policies that may take over within a run; a search starts from the first three."""

Line = dict[str, Any]


def exact(instance: Instance) -> bool:
    """Return whether all estimates of the jobs' work are true."""
    return all(j.truth and j.estimate and j.estimate.work == j.truth.work for j in instance.jobs)


def starts(instance: Instance) -> list[tuple[str, Knowledge]]:
    """Return the runs without nudges: policies as they are told of jobs, and with true sizes."""
    fused = ("milp+fused",) if any(job.fusible for job in instance.jobs) else ()
    limited = instance.budget.power_cap_w is not None or instance.budget.energy is not None
    online = ONLINE if limited else ONLINE[:1]
    told: list[tuple[str, Knowledge]] = [(p, DECLARED) for p in (*online, *STEERED[:3], *fused)]
    return told if exact(instance) else [*told, *((p, "oracle") for p in (*STEERED[:2], *fused))]


def search(
    instance: Instance,
    lines: SealedLines[Line],
    seed: int,
    trials: int,
    keep: Callable[[Run], None],
) -> Iterator[Line]:
    """Make trials until there are as many as asked for; yield the line of each that is new.

    A trial is a line in the file before the next one begins. `keep` gets each run that is the best
    so far, if the checker finds nothing in its schedule.
    """
    begun, places = starts(instance), [(instance.name, seed, k) for k in range(trials)]
    done = [line for line in map(lines.get, places) if line is not None]
    leader = _again(instance, done)
    for number in range(len(done), trials):
        line: Line = {"instance": instance.name, "seed": seed, "trial": number, "wrong": []}
        nudges = list[Nudge]()
        if number < len(begun):
            line |= {"move": "start", "policy": begun[number][0], "knowledge": begun[number][1]}
            run = drive(instance, *begun[number])
        elif leader is None:
            expected = "an instance of which some policy completes all jobs"
            raise InputError(instance.name, "none that does", expected)
        else:
            line["move"] = "nudges"
            nudges = _drawn(np.random.default_rng([seed, number]), instance, leader)
            run = drive(instance, leader.policy, leader.knowledge, nudges, leader)
        line |= {"nudges": msgspec.to_builtins(nudges), "best": False}
        line["mean_jct_s"] = None if run is None else run.mean_jct_s
        if run is not None and run.policy not in ONLINE and _better(run, leader):
            line["wrong"] = [str(violation) for violation in check(instance, run.schedule)]
            if not line["wrong"]:
                line["best"], leader = True, run
                keep(run)
        lines.append(line)
        yield line


def _better(run: Run, leader: Run | None) -> bool:
    return leader is None or run.mean_jct_s < leader.mean_jct_s * (1.0 - 1e-9)


def _again(instance: Instance, done: Sequence[Line]) -> Run | None:
    """Return the best run of earlier trials, which is made once more and must end the same."""
    best = [line for line in done if line["best"]]
    if not best:
        return None
    first = [line for line in best if line["move"] == "start"][-1]
    nudges = msgspec.convert([nudge for line in best for nudge in line["nudges"]], list[Nudge])
    run = drive(instance, first["policy"], first["knowledge"], nudges)
    before, found = best[-1]["mean_jct_s"], None if run is None else run.mean_jct_s
    if found is None or abs(found - before) > 1e-9 * before:
        place = f"{instance.name}, trial {best[-1]['trial']}"
        raise InputError(place, f"{before:g} s, and now {found} s", "trials of the same ronda")
    return run


def _drawn(rng: np.random.Generator, instance: Instance, leader: Run) -> list[Nudge]:
    """Draw moments in the lives of jobs that stay long, and what is other from then on."""
    jobs, share = instance.jobs, np.sqrt(leader.jct_s)
    submit_s, nudges = np.array([job.submit_s for job in jobs]), list[Nudge]()
    for j in rng.choice(len(jobs), int(rng.integers(1, 4)), p=share / share.sum()).tolist():
        job, own_s, move = jobs[j], float(leader.jct_s[j]), rng.random()
        now_s = job.submit_s + (own_s * float(rng.random()) if rng.random() < 0.5 else 0.0)
        widths = [
            2**k for k in range(10) if (job.min_gpus or job.gpus) <= 2**k < (job.max_gpus or 0)
        ]
        if move < 0.1:
            others = [name for name in STEERED if name != leader.policy]
            nudges.append(Nudge(now_s, policy=str(rng.choice(others))))
        elif move < 0.3:
            until_s = job.submit_s + own_s * 10.0 ** rng.uniform(-2.0, 0.0)
            nudges.append(Nudge(job.submit_s, job.id, until_s=until_s))
        elif move < 0.5 and widths:
            nudges.append(Nudge(now_s, job.id, most_gpus=int(rng.choice(widths))))
        else:
            live = np.flatnonzero((submit_s <= now_s) & (now_s < submit_s + leader.jct_s))
            some = {j, *rng.permutation(live)[: int(rng.integers(3))].tolist()}
            factors = np.exp(rng.normal(0.0, rng.choice([0.5, 1.5]), len(some)))
            nudges += map(Nudge, [now_s] * len(some), [jobs[k].id for k in some], factors.tolist())
    return nudges
