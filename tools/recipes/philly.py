"""Philly's half day with applications whose batch is a decision, and sizes that are not known.

ElasticFlow measured its models with two or three global batches each: they are one table here. How
much more a larger batch needs (gradient noise) was not measured for them; it is that of ronda's
generated applications, an assumption.

Or in a machine room in which things break: no public trace has arrivals, scaling, power and faults
together. How often jobs fail is Philly's; all the rest is made, and faults of nodes are much more
frequent than published ones, so that half a day of eight nodes sees some.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
from msgspec import structs

from ronda.instances.generate.applications import APPLICATIONS
from ronda.instances.generate.common import estimate
from ronda.instances.generate.faults import Breakage, broken
from ronda.instances.instance import Instance
from ronda.instances.job import Job, Truth
from ronda.instances.models.efficiency import efficiency_at
from ronda.instances.profile import NoiseCurve, NoiseScale, Profile, Tabular
from tools.recipes.energy import HALF_DAY, energy

_ERROR, _SEED = 0.5, 1
_SETUP = replace(HALF_DAY, name="philly-batches", restart_s=120.0)
_WORDS = (
    " What differs from `philly-energy-small`: a job may run with any global batch of its "
    "application that was measured (all of them within 32 to 256), its user asks for the one that "
    "was drawn. Larger batches need more samples: by a gradient noise scale that grows in three "
    "stages with a job's progress, an assumption (that of ronda's generated applications; Pollux "
    "measured such growth on other models). Work is in samples of the smallest batch; with its "
    "own batch and GPUs a job takes its traced time if its noise is that of the middle stage. "
    f"Estimates are off by a lognormal factor (sd {_ERROR:g} of the logarithm). The reference "
    "values are ronda's own: fifo, srtf (both at the batch asked for), and the clairvoyant bound."
)


def philly_batches(source: Path) -> Instance:
    """Return the instance."""
    plain = energy(source, _SETUP)
    profiles = dict(_merged(plain.profiles.values()))
    curves = {app.profile.name: app.curve() for app in APPLICATIONS if app.profile.name in profiles}
    rng = np.random.default_rng(_SEED)
    jobs = tuple(
        _job(rng, job, plain.profiles[job.profile], profiles, curves) for job in plain.jobs
    )
    title, _, rest = plain.description.partition("\n")
    return structs.replace(
        plain,
        profiles=profiles,
        curves=curves,
        jobs=jobs,
        description=f"{title}, with batches to choose and noisy estimates\n{rest}{_WORDS}",
        reference={
            "fifo": {"mean_jct_s": 14675.0},
            "srtf": {"mean_jct_s": 13915.7},
            "clairvoyant bound": {"mean_jct_s": 7507.1},
        },
        made={**plain.made, "recipe": "batches", "error": _ERROR},
    )


def _model(profile: Profile) -> str:
    return profile.name.rpartition("-")[0]


def _merged(profiles: Iterable[Profile]) -> Iterable[tuple[str, Profile]]:
    """Yield one application a model, with the measurements of all its batches."""
    ordered = sorted(profiles, key=lambda p: (_model(p), p.base_batch))
    for model, group in groupby(ordered, key=_model):
        each = list(group)
        batches = tuple(p.base_batch for p in each)
        tables = [p.throughput["A100"] for p in each]
        columns = ("gpus", "nodes", "local_batch", "step_s", "sync_s")
        joined = {c: tuple(x for t in tables for x in getattr(t, c)) for c in columns}
        yield (
            model,
            structs.replace(
                each[0],
                name=model,
                throughput={"A100": Tabular(**joined, phi=1.0)},
                base_batch=batches[0],
                batches=batches,
            ),
        )


def _job(
    rng: np.random.Generator,
    job: Job,
    asked: Profile,
    profiles: dict[str, Profile],
    curves: dict[str, NoiseCurve],
) -> Job:
    """Return a job that may choose its batch, with the work of its samples in the asked one."""
    model = _model(asked)
    noise = NoiseScale(batches=curves[model].batches, scale=curves[model].scale[1])
    assert job.truth is not None
    value = efficiency_at(noise, asked.base_batch, profiles[model].base_batch)
    work = float(f"{job.truth.work * value:.9g}")
    return structs.replace(
        job,
        profile=model,
        batch=asked.base_batch,
        estimate=estimate(rng, work, _ERROR),
        truth=Truth(work=work, curve=model),
    )


BREAKAGE = Breakage(
    node_failures=0.5,
    repair_s=7200.0,
    drains=0.5,
    drain_s=7200.0,
    notice_s=3600.0,
    job_failures=0.41,
    retries=3,
    checkpoint_s=1800.0,
    stragglers=0.05,
    slow_s=3600.0,
    slowest=0.5,
    speed_error=0.1,
    power_error=0.05,
    silences=0.05,
    silence_s=1800.0,
    report_s=60.0,
    decision_s=5.0,
)
_BREAK_SEED = 1
_CITATION = (
    "Kokolis et al.: Revisiting Reliability in Large-Scale Machine Learning Research Clusters, "
    "HPCA 2025"
)
_BREAKS = (
    " What differs from `philly-energy-small` is that things break. From the literature: 0.41 "
    "failures a job (Jeon et al.: 39,776 failed trials of 96,260 jobs of Philly), at a uniform "
    "share of its work. MADE: 0.5 failures of a node a day (published: 0.0065 and 0.0023 on A100 "
    "clusters, Kokolis et al.; with these half a day of eight nodes would see none; both figures "
    "as we know the papers, whose texts were not at hand), repair in two "
    "hours; a drain in two days of a node, for two hours, known an hour ahead; a checkpoint each "
    "half hour of progress; three retries; a node is slow for 5 % of the time, at half its speed "
    "or more; true speeds and watts are off the profiles by lognormal factors (sd 0.1 and 0.05); "
    "reports are a minute late, and lost for 5 % of the time; a decision takes effect after five "
    "seconds. All of it is drawn ahead and listed in `faults` and in the jobs' `truth`."
)


def philly_faults(source: Path) -> Instance:
    """Return the instance."""
    plain = energy(source, replace(HALF_DAY, name="philly-faults"))
    title, _, rest = plain.description.partition("\n")
    made = broken(plain, BREAKAGE, _BREAK_SEED)
    return structs.replace(
        made,
        description=f"{title}, where nodes and jobs fail\n{rest}{_BREAKS}",
        citation=f"{plain.citation}; {_CITATION}",
        made={**made.made, "recipe": "faults"},
    )
