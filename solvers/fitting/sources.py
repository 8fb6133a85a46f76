"""The public measurements behind the packaged profiles, and how each becomes a fit.

Nothing is fitted that was not measured; what a table cannot tell is taken from a larger table of
the same GPU, or fixed, and said so in the fit's remarks and source.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from msgspec import structs

from ronda.instances.fit import Fit, batch_suffix
from ronda.instances.traces import pollux_tables
from ronda.solvers.fitting.data import Steps
from ronda.solvers.fitting.power import fit_power
from ronda.solvers.fitting.reading import Reading, read_steps, read_watts
from ronda.solvers.fitting.throughput import fit_throughput

Progress = Callable[[str], None]

ELASTICFLOW = {
    "source": "ElasticFlow's tables of iterations per second, github.com/pkusys/ElasticFlow",
    "licence": "Apache-2.0",
    "citation": "Gu et al.: ElasticFlow: An Elastic Serverless Training Platform for Distributed "
    "Deep Learning, ASPLOS 2023",
}
POLLUX = {
    "source": "Pollux's measured steps on AWS g4dn.12xlarge, github.com/petuum/adaptdl (osdi21)",
    "licence": "Apache-2.0",
    "citation": "Qiao et al.: Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep "
    "Learning, OSDI 2021",
}
ZEUS = {
    "source": "Zeus's power-cap traces, github.com/ml-energy/zeus",
    "licence": "Apache-2.0",
    "citation": "You, Chung, Chowdhury: Zeus: Understanding and Optimizing GPU Energy Consumption "
    "of DNN Training, NSDI 2023",
}

ZEUS_NAMES = {
    "cifar100-shufflenetv2-adadelta": "shufflenetv2",
    "cifar100-shufflenetv2-adam": "shufflenetv2-adam",
    "imagenet-resnet50-adadelta": "resnet50",
    "librispeech-deepspeech2-adamw": "deepspeech2",
    "movielens-1m-ncf-adam": "ncf",
    "sentiment140-bert_base_uncased-adamw": "bert-sentiment140",
    "squad-bert_base_uncased-adamw": "bert-squad",
}
"""Short names of Zeus' jobs (dataset, network, optimiser)."""

# ElasticFlow's T4 tables have one global batch of these, so one local batch for nearly all rows:
# parameters that they cannot tell come from Pollux's table, of which they are an excerpt.
_FROM_POLLUX = {"bert": ("alpha_c_s",), "yolov3": ("alpha_c_s", "beta_n_s")}


def all_fits(source: Path, progress: Progress) -> Iterator[Fit]:
    """Yield the fits of all packaged profiles.

    Parameters
    ----------
    source
        Folder of the public data.
    progress
        Told what comes next.

    Raises
    ------
    InputError
        If anything in the data is missing or not as expected.
    """
    yield from elasticflow_a100(source, progress)
    measured = {steps.application: steps for steps in pollux_steps(source)}
    wide = {}
    for name, steps in measured.items():
        progress(f"pollux {name}")
        wide[name] = fit_throughput(steps)
        yield _named(wide[name], "pollux", name, POLLUX)
    yield from elasticflow_t4(source, measured, wide, progress)
    yield from zeus(source, progress)


def elasticflow_a100(source: Path, progress: Progress) -> Iterator[Fit]:
    """Yield the fits of ElasticFlow's A100 tables: one pass, 8 GPUs a node."""
    reading = Reading(gpu_type="A100", gpus_per_node=8, skip_zero=True)
    for steps in read_steps(source / "elasticflow" / "throughputs_A100.csv", reading):
        progress(f"elasticflow {steps.application} A100")
        yield _named(fit_throughput(steps), "elasticflow", steps.application, ELASTICFLOW)


def pollux_steps(source: Path) -> Iterator[Steps]:
    """Yield Pollux's measured steps by application: up to 64 T4 on 1 to 16 nodes of 4.

    Placements with the same numbers of GPUs and nodes are averaged. A row's number is its
    position in the averaged table.
    """
    steps = pollux_tables.read_steps(source / "pollux")
    for name, rows in steps.groupby("app"):
        yield _steps(str(name), rows)


def _steps(name: str, rows: pd.DataFrame) -> Steps:
    """Return the steps of one application."""
    column = {c: rows[c].to_numpy(dtype=float) for c in rows.columns if c != "app"}
    return Steps(
        place="Pollux's placements and scalability",
        application=name,
        gpu_type="T4",
        row=np.arange(1, len(rows) + 1),
        gpus=column["gpus"],
        nodes=column["nodes"],
        local_batch=column["local_bsz"],
        passes=np.ones(len(rows)),
        clock=np.ones(len(rows)),
        step_s=column["step_time"],
        sync_s=column["sync_time"],
    )


def elasticflow_t4(
    source: Path, measured: dict[str, Steps], wide: dict[str, Fit], progress: Progress
) -> Iterator[Fit]:
    """Yield the fits of ElasticFlow's T4 tables: 4 GPUs a node, as few passes as fit.

    Parameters
    ----------
    source
        Folder of the public data.
    measured, wide
        Pollux's steps, whose largest local batch tells the passes, and their fits.
    progress
        Told what comes next.
    """
    path = source / "elasticflow" / "throughputs_T4.csv"
    for name, own in measured.items():
        progress(f"elasticflow {name} T4")
        reading = Reading(
            model=name,
            gpu_type="T4",
            gpus_per_node=4,
            max_local_batch=float(own.local_batch.max()),
        )
        (steps,) = read_steps(path, reading)
        known = {p: float(getattr(wide[name].throughput, p)) for p in _FROM_POLLUX.get(name, ())}
        fit = _named(fit_throughput(steps, fixed=known), "elasticflow", name, ELASTICFLOW)
        taken = f"; {', '.join(known)} from the fit of Pollux's table" if known else ""
        yield structs.replace(fit, source=fit.source + taken)


def zeus(source: Path, progress: Progress) -> Iterator[Fit]:
    """Yield the fits of Zeus' power traces: speed is time without a cap over time with it."""
    for watts in read_watts(source / "zeus" / "summary_power_4gpus.csv.gz", Reading()):
        progress(f"zeus {watts.application} {watts.gpu_type}")
        job, gpu = ZEUS_NAMES[watts.application], watts.gpu_type.upper()
        for fit in fit_power(watts):
            named = structs.replace(fit, gpu_type=gpu)
            yield _named(named, "zeus", job, {**ZEUS, "source": f"{ZEUS['source']}, {fit.name}"})


def _named(fit: Fit, source: str, application: str, words: dict[str, str]) -> Fit:
    """Return a fit under its packaged name and with its origin."""
    name = f"{source}-{application}-{fit.gpu_type}{batch_suffix(fit.batch)}"
    return structs.replace(fit, name=name, application=application, **words)
