"""Two trials of power flexibility, made after published figures: Phoenix and London, 2025.

Published are the clusters, the reductions and their times, and (of Phoenix) six jobs with their
classes. The watts, sizes and speeds of jobs are made, with ronda's fits for an A100, stretched.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import structs

from ronda.instances.budget import Budget, StepSeries
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.generate.applications import APPLICATIONS
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.models.throughput import plain_speed
from ronda.instances.profile import Profile
from ronda.instances.site import Site, Tenant
from tools.recipes.made_power import ZEUS_CITATION, stretch
from tools.recipes.structured import GENERATED

HOUR_S = 3600.0
_CLOCKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_BATCH = 1024.0  # of every job
_A100_W = 400.0  # the power limit that ronda's fits are for


class _Run(NamedTuple):
    """A job: its tenant, GPUs at most and at least, application, and seconds at full speed."""

    name: str
    tenant: str
    gpus: int
    least: int
    like: str
    hours: float
    restart_s: float = 120.0


_PHOENIX = (
    _Run("ft-llama-8b", "flex-2", 64, 32, "bert", 12.0),
    _Run("infer-llama-8b-32", "flex-3", 32, 32, "gpt2", 12.0, 20.0),
    _Run("infer-llama-8b-48a", "flex-1", 48, 48, "gpt2", 12.0, 20.0),
    _Run("infer-llama-8b-48b", "flex-2", 48, 48, "gpt2", 12.0, 20.0),
    _Run("pt-mpt-13b", "flex-3", 24, 8, "gpt2", 12.0),
    _Run("pt-mpt-7b", "flex-3", 40, 8, "bert", 12.0),
)
_WEIGHTS = {"flex-1": 4.0, "flex-2": 2.0, "flex-3": 1.0, "high": 4.0, "low": 1.0}

_PHOENIX_WORDS = """\
256 A100 in Phoenix, asked for 25 % less power for three hours: made after published figures
PUBLISHED (Colangelo et al., arXiv 2507.00909; their data, github.com/ai-emerald): a cluster of 256
A100 held its power 25 % lower for three hours on 2025-05-03, with six jobs in classes that tolerate
10, 25 and 50 % less speed (Flex 1, 2 and 3). These ran at 1.00 (inference, Flex 1), 0.992
(inference, Flex 2), 0.940 (fine-tuning, Flex 2), 0.973 (inference, Flex 3), 0.743 and 0.667
(pre-training, Flex 3) of their speed. Here a class is a tenant.
MADE: the GPUs of jobs (where names tell none, such that the published speeds have about their
published weighted mean, 0.910); all jobs last twelve hours; speeds are ronda's fits to
ElasticFlow's A100 tables, watts its fits to Zeus's V100 traces, stretched; 4, 2 and 1 weigh the
classes, as no field of the format says how much speed a job may lose. The event is the power cap:
from 2 h to 5 h it is 75 % of what the jobs draw."""

_LONDON_WORDS = """\
96 Blackwell Ultra near London, asked for 30 % less within 30 s: made after published figures
PUBLISHED (National Grid, Emerald AI, EPRI, Nebius and NVIDIA, March 2026, by way of Computer Weekly
and T&D World): in December 2025 a cluster of 96 GPUs that trained models such as Llama, Qwen and
GPT-OSS followed more than 200 signals, among them one for about 30 % less in some 30 s, and
ones for less power for up to 10 hours. Here one event has both. That it draws some
130 kW is said by one report of the white paper alone.
MADE: all of the jobs (24 of 2 to 8 GPUs, eight of them urgent); their speeds (an A100's); watts
(ronda's fits to Zeus's V100 traces, stretched to 1,400 W a GPU; hosts draw the rest of 130 kW); a
restart takes 20 s for half of the jobs and 120 s for the others. The event is the power cap: from
2 h to 12 h it is 70 % of what the jobs draw."""


class _Trial(NamedTuple):
    """A trial: its cluster of nodes of eight GPUs, what its jobs draw, and its event."""

    name: str
    words: str
    cited: str
    gpu: str
    limit_w: float  # of a GPU
    nodes: int
    host_w: float
    drawn_w: float  # by all jobs at full speed
    less: float
    hours: float


_IN_PHOENIX = _Trial(
    name="event-phoenix",
    words=_PHOENIX_WORDS,
    cited="Colangelo et al., arXiv 2507.00909",
    gpu="A100",
    limit_w=_A100_W,
    nodes=32,
    host_w=500.0,
    drawn_w=79_426.0,
    less=0.25,
    hours=3.0,
)
_IN_LONDON = _Trial(
    name="event-london",
    words=_LONDON_WORDS,
    cited="National Grid, Emerald AI, EPRI, Nebius, NVIDIA: trial of December 2025",
    gpu="B300",
    limit_w=1400.0,
    nodes=12,
    host_w=2592.0,
    drawn_w=130_000.0,
    less=0.30,
    hours=10.0,
)


def phoenix() -> Instance:
    """Return the cluster of the trial in Phoenix with its event."""
    return _event(_IN_PHOENIX, _PHOENIX)


def london() -> Instance:
    """Return the cluster of the trial in London with its event."""
    kinds = (("llama", "gpt2"), ("qwen", "bert"), ("gpt-oss", "resnet50"))
    runs = [
        _Run(
            name=f"{kinds[k % 3][0]}-{k}",
            tenant="low" if k % 3 else "high",
            gpus=(8, 4, 2, 2)[k % 4],
            least=(4, 2, 2, 1)[k % 4],
            like=kinds[k % 3][1],
            hours=14.0,
            restart_s=20.0 if k % 2 else 120.0,
        )
        for k in range(24)
    ]
    return _event(_IN_LONDON, runs)


def _event(trial: _Trial, runs: Sequence[_Run]) -> Instance:
    """Return jobs whose power is capped from 2 h on for some hours."""
    gpu, ratio = trial.gpu, trial.limit_w / _A100_W
    kind = GpuType(name=gpu, memory_gib=80.0, idle_w=50.0 * ratio, clocks=_CLOCKS)
    profiles = {like: _profile(like, gpu, ratio) for like in sorted({run.like for run in runs})}
    ends_s = (0.0, 2 * HOUR_S, (2 + trial.hours) * HOUR_S)
    free_w = round(1.05 * trial.drawn_w)
    caps_w = (free_w, round((1 - trial.less) * trial.drawn_w), free_w)
    tenants = dict.fromkeys(run.tenant for run in runs)
    nodes = {"host_idle_w": trial.host_w, "sleep_w": 30.0}
    return Instance(
        name=trial.name,
        cluster=uniform_cluster(kind, trial.nodes, 8, **nodes),
        profiles=profiles,
        jobs=tuple(_job(run, profiles[run.like], gpu) for run in runs),
        site=Site(tenants=(Tenant(name="all"), *(Tenant(name=t, parent="all") for t in tenants))),
        budget=Budget(power_cap_w=StepSeries(times_s=ends_s, values=caps_w)),
        costs=Costs(restart_s=120.0),
        cadence=Cadence(period_s=900.0),
        description=trial.words,
        source=f"made after published figures of a trial; {GENERATED}",
        licence="Apache-2.0",
        citation=f"{trial.cited}; {ZEUS_CITATION}",
        made={"recipe": "grid", "less": trial.less, "hours": trial.hours},
    )


def _profile(like: str, gpu: str, ratio: float) -> Profile:
    """Return the profile of one of the generated applications on another GPU."""
    known = next(a.profile for a in APPLICATIONS if a.profile.name == like)
    (model,), (power,) = known.throughput.values(), known.power.values()
    own = {"throughput": {gpu: model}, "power": {gpu: stretch(power, ratio)}}
    return structs.replace(known, base_batch=_BATCH, batches=(), **own)


def _job(run: _Run, profile: Profile, gpu: str) -> Job:
    speed = plain_speed(profile, gpu, run.gpus, -(-run.gpus // 8), profile.base_batch)
    work = round(run.hours * HOUR_S * speed)
    return Job(
        id=run.name,
        submit_s=0.0,
        profile=profile.name,
        gpus=run.gpus,
        min_gpus=run.least,
        max_gpus=run.gpus,
        weight=_WEIGHTS[run.tenant],
        tenant=run.tenant,
        costs=Costs(restart_s=run.restart_s),
        estimate=Estimate(work=work),
        truth=Truth(work=work),
    )
