"""Make the packaged profiles: ``python -m tools.profiles --source DATA --out F``.

Nothing is fitted that was not measured; what a table cannot tell is taken from a larger table of
the same GPU, or fixed, and said so in the fit's remarks and source. The same data give the same
parameters; they are rounded to six digits, less than the spread of any measurement.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from ronda.instances.files import fits as profiles
from ronda.instances.models.fits import Fit, Fits, batch_suffix
from ronda.instances.traces.pollux import read_steps
from ronda.solvers.fitting.fit import fit_measured
from ronda.solvers.fitting.measurements import Measurements, Reading, read_measurements
from ronda.systems.hfta.fit import fit_shared, read_sharing
from tools.maxima import fit_maxima
from tools.program import run

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

HFTA = {
    "source": "HFTA's poster, github.com/UofT-EcoSystem/hfta, digitised",
    "licence": "MIT",
    "citation": "Wang, Yang, Zheng, Li, Pekhimenko: Horizontally Fused Training Array: An "
    "Effective Hardware Utilization Squeezer for Training Novel Deep Learning Models, MLSys 2021",
}
HYDRO = {
    "source": "Hydro's artifact (osdi23-artifact), github.com/S-Lab-System-Group/Hydro",
    "licence": "Apache-2.0",
    "citation": "Hu et al.: Hydro: Surrogate-Based Hyperparameter Tuning Service in Datacenters, "
    "OSDI 2023",
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


def all_fits(source: Path) -> Iterator[Fit]:
    """Yield the fits of all packaged profiles from a folder of the public data."""
    yield from elasticflow_a100(source)
    wide = list(pollux(source))
    yield from wide
    for fit in wide:
        yield elasticflow_t4(source, fit)
    yield from zeus(source)
    yield from hfta(source)
    yield from hydro(source)


def elasticflow_a100(source: Path) -> Iterator[Fit]:
    """Yield the fits of ElasticFlow's A100 tables: one pass, 8 GPUs a node."""
    reading = Reading(gpu_type="A100", gpus_per_node=8, skip_zero=True)
    for table in read_measurements(source / "elasticflow" / "throughputs_A100.csv", reading):
        (fit,) = fit_measured(table)
        yield _named(fit, "elasticflow", table.application, ELASTICFLOW)


def pollux(source: Path) -> Iterator[Fit]:
    """Yield the fits of Pollux's measured steps: up to 64 T4 on 1 to 16 nodes of 4.

    Placements with the same numbers of GPUs and nodes are averaged. A row's number is its
    position in the averaged table.
    """
    names = {"local_bsz": "local_batch", "step_time": "step_s", "sync_time": "sync_s"}
    steps = read_steps(source / "pollux").rename(columns=names)
    for name, rows in steps.groupby("app"):
        own = rows.drop(columns="app").reset_index(drop=True)
        own = own.assign(row=own.index + 1, batch=0.0, passes=1.0, clock=1.0)
        place = "Pollux's placements and scalability"
        (fit,) = fit_measured(Measurements(place, "throughput", str(name), "T4", own))
        yield _named(fit, "pollux", str(name), POLLUX)


def elasticflow_t4(source: Path, wide: Fit) -> Fit:
    """Return the fit of an ElasticFlow T4 table: 4 GPUs a node, as few passes as fit.

    The largest local batch of `wide`, the fit of Pollux's steps of the same application, tells the
    passes.
    """
    reading = Reading(
        model=wide.application,
        gpu_type="T4",
        gpus_per_node=4,
        max_local_batch=wide.measured["local_batch"][1],
    )
    (table,) = read_measurements(source / "elasticflow" / "throughputs_T4.csv", reading)
    names = _FROM_POLLUX.get(wide.application, ())
    (fit,) = fit_measured(table, {name: getattr(wide.throughput, name) for name in names})
    named = _named(fit, "elasticflow", wide.application, ELASTICFLOW)
    taken = f"; {', '.join(names)} from the fit of Pollux's table" if names else ""
    return structs.replace(named, source=named.source + taken)


def zeus(source: Path) -> Iterator[Fit]:
    """Yield the fits of Zeus' power traces: speed is time without a cap over time with it."""
    for table in read_measurements(source / "zeus" / "summary_power_4gpus.csv.gz"):
        for fit in fit_measured(table):
            named = structs.replace(fit, gpu_type=fit.gpu_type.upper())
            words = {**ZEUS, "source": f"{ZEUS['source']}, {fit.name}"}
            yield _named(named, "zeus", ZEUS_NAMES[table.application], words)


def hfta(source: Path) -> Iterator[Fit]:
    """Yield the fits of PointNet's throughput by number of models, and memory from its maxima.

    On the A100 two and three models are off the line that all others lie on: it begins at four.
    """
    folder = source / "hfta"
    for table in read_sharing(folder / "pointnet_cls_throughput_vs_k_poster.csv", "pointnet_cls"):
        for fit in fit_shared(table, least=4 if table.gpu_type.startswith("A100") else 1):
            yield structs.replace(fit, name=f"hfta-{fit.name}", **HFTA)
    for fit in fit_maxima(folder / "most_models.csv"):
        yield structs.replace(fit, name=f"hfta-{fit.name}", **HFTA)


def hydro(source: Path) -> Iterator[Fit]:
    """Yield the fits of ResNet-18, batch 256, fused and packed; and 8 times narrower, fused."""
    path = source / "hydro_fusion" / "resnet18_fusion_rtx3090.csv"
    for table in read_sharing(path, "resnet18", "RTX3090-24GB"):
        for fit in fit_shared(table):
            yield structs.replace(fit, name=f"hydro-{fit.name}", **HYDRO)


def _named(fit: Fit, source: str, application: str, words: dict[str, str]) -> Fit:
    name = f"{source}-{application}-{fit.gpu_type}{batch_suffix(fit.batch)}"
    return structs.replace(fit, name=name, application=application, **words)


def packed(fits: Iterable[Fit]) -> Fits:
    """Return fits by name and batch size, with short numbers and without their residuals."""
    ordered = sorted(fits, key=lambda fit: (fit.family, fit.batch or 0.0))
    bare = Fits(fits=tuple(structs.replace(fit, residuals=()) for fit in ordered))
    return msgspec.convert(_short(msgspec.to_builtins(bare)), Fits)


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _short(inner) for key, inner in value.items()}
    return [_short(inner) for inner in value] if isinstance(value, list | tuple) else value


def make(source: Path, out: Path) -> Iterator[str]:
    """Write the file, and say how many fits it has."""
    fits = packed(all_fits(source))
    profiles.write_fits(fits, out)
    yield f"{out}: {len(fits.fits)} fits"


def main() -> int:
    """Make the file and return the exit code."""
    about = "Fit the packaged profiles to public data; same data, same file."
    return run("tools.profiles", about, "file to write, as instances/data/profiles.json", make)


if __name__ == "__main__":
    sys.exit(main())
