"""Philly's jobs as elastic applications under an energy budget.

No public trace has durations, scaling and power together. Arrivals, requested GPUs and GPU time
are Philly's; the application of a job is drawn with a seed among those of its GPU-time class (the
rule by which Pollux made its workloads), and its work is what that application does on the
requested GPUs in the traced time. Hosts, sleep and limits are assumptions.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.traces.columns import Filters
from ronda.instances.traces.published import DAY_S, PUBLISHED, trace_rows
from ronda.instances.traces.table import rows
from tools.recipes.energy_profiles import GPUS_PER_NODE, Application, applications
from tools.recipes.made_power import ZEUS_CITATION

# GPU-hours below which a job is of the class -> its models (Pollux: cifar10 and ncf, bert and
# deepspeech2, yolov3, imagenet).
_CLASSES = (
    (1.0, ("inception3", "vgg16")),
    (10.0, ("bert", "deepspeech2")),
    (100.0, ("gpt2", "inception3")),
    (float("inf"), ("resnet50", "vgg16")),
)
_GPU = GpuType(name="A100", memory_gib=40.0, idle_w=50.0, clocks=(0.5, 0.6, 0.7, 0.8, 0.9, 1.0))
_HOST_IDLE_W, _SLEEP_W, _WAKE_S = 500.0, 30.0, 300.0  # assumptions


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What makes one instance of the recipe, on nodes of 8 A100.

    Start and end of `filters` bound the horizon of the budget. Jobs are thinned until the GPU time
    they ask for is the share `load` of what the cluster has. Sustained power and power cap are
    shares of its draw with all GPUs busy. `seed` is that of thinning and of the applications.
    """

    name: str
    title: str
    nodes: int
    filters: Filters
    load: float = 0.85
    energy_share: float = 0.85
    cap_share: float = 0.95
    restart_s: float = 30.0
    seed: int = 1

    @property
    def horizon_s(self) -> float:
        """Length of the horizon in seconds."""
        return (self.filters.end_s or 0.0) - (self.filters.start_s or 0.0)

    @property
    def gpus(self) -> int:
        """GPUs of the cluster."""
        return self.nodes * GPUS_PER_NODE


WEEK = Setup(
    name="philly-energy",
    title="Philly, the week from 2017-10-23",
    nodes=16,
    filters=Filters(
        start_s=49 * DAY_S,
        end_s=56 * DAY_S,
        min_duration_s=60.0,
        max_duration_s=4 * DAY_S,
        max_gpu_hours=1000.0,
        max_gpus=64,
    ),
)
HALF_DAY = Setup(
    name="philly-energy-small",
    title="Philly, Thursday 2017-10-26 from 8 to 20 hours",
    nodes=8,
    filters=Filters(
        start_s=52 * DAY_S + 8 * 3600.0,
        end_s=52 * DAY_S + 20 * 3600.0,
        min_duration_s=1800.0,
        max_duration_s=43_200.0,
        max_gpu_hours=1000.0,
        max_gpus=64,
    ),
)


def energy(source: Path, setup: Setup) -> Instance:
    """Return an instance of elastic jobs under a power cap and an energy budget."""
    path = source / "philly" / "jobs_canonical.csv.gz"
    rng = np.random.default_rng(setup.seed)
    frame = _thin(trace_rows("philly", path, filters=setup.filters), setup, rng)
    # Scaling tables have powers of two: 12 becomes 16, 24 becomes 32 (nearest by ratio).
    frame["num_gpus"] = 2 ** np.log2(frame.num_gpus).round().astype(int)
    chosen = _assign(frame, applications(source), rng)
    jobs = tuple(_job(row, app, setup) for row, app in zip(rows(frame), chosen, strict=True))
    busy_w = _mean_busy_w(frame, chosen)
    budget = _budget(setup, busy_w)
    load = float((frame.num_gpus * frame.duration_s).sum() / (setup.gpus * setup.horizon_s))
    return Instance(
        name=setup.name,
        cluster=uniform_cluster(
            _GPU,
            setup.nodes,
            GPUS_PER_NODE,
            host_idle_w=_HOST_IDLE_W,
            sleep_w=_SLEEP_W,
            wake_s=_WAKE_S,
        ),
        profiles={app.profile.name: app.profile for app in dict.fromkeys(chosen)},
        jobs=jobs,
        budget=budget,
        costs=Costs(start_s=0.0, restart_s=setup.restart_s),
        cadence=Cadence(period_s=600.0, on_event=True),
        description=_description(setup, len(jobs), load, budget),
        source=(
            f"{PUBLISHED['philly'].source}; scaling: github.com/pkusys/ElasticFlow; "
            "power: fits to github.com/ml-energy/zeus (made, see description)"
        ),
        licence="CC-BY-4.0 (jobs), Apache-2.0 (scaling and power)",
        citation="; ".join([*(PUBLISHED[n].citation for n in ("philly", "itp")), ZEUS_CITATION]),
        made={
            "recipe": "energy",
            "seed": setup.seed,
            "filters": {k: v for k, v in asdict(setup.filters).items() if v != float("inf")},
            "load": round(load, 4),
            "mean_busy_w": round(busy_w, 2),
            "energy_share": setup.energy_share,
            "cap_share": setup.cap_share,
        },
    )


def _thin(frame: pd.DataFrame, setup: Setup, rng: np.random.Generator) -> pd.DataFrame:
    """Return as many jobs, in random order, as ask for the wanted GPU time; sorted as before."""
    order = rng.permutation(len(frame))
    gpu_s = (frame.num_gpus * frame.duration_s).to_numpy()[order].cumsum()
    kept = order[gpu_s <= setup.load * setup.gpus * setup.horizon_s]
    return frame.iloc[np.sort(kept)].reset_index(drop=True)


def _assign(
    frame: pd.DataFrame, apps: Sequence[Application], rng: np.random.Generator
) -> list[Application]:
    """Return each job's application: of its class's models, any that still gains at its size."""
    chosen = []
    for row, draw in zip(rows(frame), rng.random(len(frame)), strict=True):
        hours = row.num_gpus * row.duration_s / 3600
        models = next(models for below, models in _CLASSES if hours < below)
        fit = [app for app in apps if app.model in models and app.peak >= row.num_gpus]
        chosen.append(fit[int(draw * len(fit))])
    return chosen


def _job(row: Any, app: Application, setup: Setup) -> Job:
    """Return a job that takes the traced time on the requested GPUs at full clock."""
    work = float(f"{row.duration_s * app.rate[row.num_gpus]:.9g}")
    return Job(
        id=row.job_id,
        submit_s=row.submit_s,
        profile=app.profile.name,
        gpus=row.num_gpus,
        min_gpus=1,
        max_gpus=min(app.peak, setup.gpus),
        estimate=Estimate(work=work),
        truth=Truth(work=work),
    )


def _mean_busy_w(frame: pd.DataFrame, chosen: Sequence[Application]) -> float:
    """Return the mean watts of a busy GPU at full clock and requested size, by GPU time."""
    gpu_s = (frame.num_gpus * frame.duration_s).to_numpy()
    watts = [app.busy_w(int(n)) for app, n in zip(chosen, frame.num_gpus, strict=True)]
    return float(np.average(watts, weights=gpu_s))


def _budget(setup: Setup, busy_w: float) -> Budget:
    """Return power cap and energy budget as shares of the draw with all GPUs busy."""
    full_w = setup.nodes * _HOST_IDLE_W + setup.gpus * busy_w
    sustained_w = float(round(setup.energy_share * full_w, -1))
    return Budget(
        power_cap_w=StepSeries(
            times_s=(0.0,), values=(float(round(setup.cap_share * full_w, -1)),)
        ),
        energy=EnergyBudget(
            joules=sustained_w * setup.horizon_s, horizon_s=setup.horizon_s, window_s=3600.0
        ),
    )


def _description(setup: Setup, jobs: int, load: float, budget: Budget) -> str:
    """Return the instance's description."""
    sustained_w = budget.energy.sustained_w if budget.energy else 0.0
    cap_w = budget.power_cap_w.values[0] if budget.power_cap_w else 0.0
    return (
        f"{setup.title}: {jobs:,} elastic jobs with clocks and power on {setup.nodes} nodes of "
        f"8 A100, {sustained_w / 1e3:g} kW sustained\n"
        "MADE from several sources, since no public trace has durations, scaling and power "
        "together. Measured: arrivals, requested GPUs (rounded to powers of two) and run times "
        f"(Philly; thinned at random to a load of {load:.3f} at the requested GPUs), and "
        "throughput by GPUs (ElasticFlow's A100 tables, fixed global batch, so the efficiency of "
        "a sample is 1). Drawn with a seed: each job's application, by class of GPU time (below "
        "1, 10, 100, 1000 GPU-hours), as in Pollux. A job's work is what takes its traced time on "
        "its requested GPUs; it may use 1 GPU up to where its table peaks. Made: the split of a "
        "step into computation, which alone feels the clock, and synchronisation (fitted "
        "alpha_c + beta_c b; the rest synchronises); power, Zeus's V100 curves stretched to "
        "400 W (half-speed power while synchronising). Assumptions: idle GPU 50 W (data sheet), "
        "host 500 W, sleeping node 30 W, wake-up 300 s, restart "
        f"{setup.restart_s:g} s. Limits: "
        f"{cap_w / 1e3:g} kW never exceeded, and energy that accrues at {sustained_w / 1e3:g} kW, "
        f"{setup.energy_share:.0%} of the draw with all GPUs busy at full clock. Power figures "
        "are not measurements of any A100: vary idle power by 30 % before drawing conclusions."
    )
