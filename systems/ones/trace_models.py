"""Models of speed, convergence and losses for the ONES workload, where nothing is public.

Every number here is ours or borrowed, as said next to it:

* **speed**: throughput models fitted to ElasticFlow's A100 measurements (`_FIT_OF`); models that
  ElasticFlow has not measured take those of a relative, computation scaled by the ratio of
  multiply-adds and synchronisation by that of parameters (`_RELATIVES`);
* **epochs to converge** at the base batch: the range that the artifact's job history shows for
  data sets of that size;
* **large batches**: ``epochs(B) = epochs(B0) (phi + B) / (phi + B0)`` (Pollux, OSDI 2021) with a
  constant noise scale phi for each task (`_NOISE`), up to the batch at which the learning rate
  reaches max_lr; there is no larger one;
* **losses**: curves of the form that Optimus fits, their shape drawn for each job;
* **switching**: in place what ElasticFlow measured for the model (`_SCALE_S`), by checkpoint 30 s
  (what Pollux's simulator charges; ElasticFlow's restarts take 30 to 60 s).
"""

import math
from dataclasses import replace

import numpy as np
from msgspec import structs

from ronda.instances.generate.applications import MODELS
from ronda.instances.job import Costs
from ronda.instances.learning import LearningCurve
from ronda.instances.profile import NoiseCurve, Profile
from ronda.instances.traces.rigid import V100_NODE, busy_power

# 16 nodes of 4 V100: TACC Longhorn (64 GPUs according to the abstract).
LONGHORN_NODE = replace(V100_NODE, gpus=4)

# In `MODELS`; here computation feels all of a clock.
_FIT_OF = {
    "bert": "bert",
    "resnet50": "resnet50",
    "vgg16": "vgg16",
    "inception_v3": "inception3",
}
# (model, task) -> the measured relative; multiply-adds of one sample and parameters, each as a
# share of the relative's (usual counts: 224 pixels for ImageNet, 32 for CIFAR).
_RELATIVES = {
    ("resnet18", "cifar"): ("resnet50", 0.56 / 4.1, 11.2 / 25.6),
    ("vgg16", "cifar"): ("vgg16", 0.31 / 15.5, 14.7 / 138.0),
    ("googlenet", "cifar"): ("inception_v3", 1.5 / 5.7, 6.2 / 23.8),
    ("alexnet", "imagenet"): ("vgg16", 0.71 / 15.5, 61.0 / 138.0),
}
# Seconds of scaling in place: means of the five changes that ElasticFlow measured (its figure 12b).
_SCALE_S = {"bert": 3.63, "resnet50": 1.58, "vgg16": 2.28, "inception_v3": 1.42}
_RESTART_S = 30.0
# Noise scale in samples: at 16 times the base batch (BERT: 4 times) it costs as many samples as
# the curves that Pollux's artifact measured for CIFAR-10, ImageNet and BERT, rounded.
_NOISE = {"cifar": 5_500.0, "imagenet": 12_000.0, "cola": 3e3, "mrpc": 3e3, "sst2": 3e3}
# Loss before training: ln(classes) with 10, 1,000 and 2 classes; the artifact's target accuracy.
_INITIAL_LOSS = {"cifar": math.log(10), "imagenet": math.log(1000)}
_TARGET = {"cola": 0.8, "mrpc": 0.8, "sst2": 0.9, "cifar": 0.7, "imagenet": 0.55}
_ALEXNET_TARGET = 0.25


def profile(model: str, task: str, batch: float, growth: float) -> Profile:
    """Return the profile of a model-task pair, with batches by GPUs up to max_lr."""
    relative, compute, parameters = _RELATIVES.get((model, task), (model, 1.0, 1.0))
    measured = structs.replace(MODELS[_FIT_OF[relative]], phi=1.0)
    shares = dict.fromkeys(("alpha_r_s", "beta_r_s", "alpha_n_s", "beta_n_s"), parameters)
    speed = structs.replace(
        measured,
        **{
            name: float(f"{getattr(measured, name) * share:.4g}")
            for name, share in ({"beta_c_s": compute} | shares).items()
        },
    )
    return Profile(
        name=f"{model}-{task}-{batch:g}",
        throughput={LONGHORN_NODE.gpu.name: speed},
        power=busy_power(LONGHORN_NODE),
        base_batch=batch,
        batches=tuple(batch * k for k in range(1, max(1, int(growth)) + 1)),
        source=f"stand-in: {relative} on A100 (ElasticFlow, ASPLOS 2023), scaled by size",
    )


def noise(task: str) -> NoiseCurve:
    """Return the constant noise scale of a task."""
    return NoiseCurve(until=(1.0,), batches=(1.0,), scale=((_NOISE[task],),))


def learning(model: str, task: str, rng: np.random.Generator) -> LearningCurve:
    """Return a job's learning curve with a drawn shape: no two runs of a model are alike."""
    initial = _INITIAL_LOSS.get(task, math.log(2))
    target = _ALEXNET_TARGET if model == "alexnet" else _TARGET[task]
    return LearningCurve(
        initial_loss=round(initial, 4),
        final_loss=round(initial * float(rng.uniform(0.1, 0.4)), 4),
        final_accuracy=round(min(0.99, target * float(rng.uniform(1.0, 1.1))), 4),
        steepness=round(9.0 * float(rng.lognormal(0.0, 0.4)), 3),
        noise=0.02,
        seed=int(rng.integers(2**31)),
    )


def costs(model: str, task: str) -> Costs:
    """Return the costs of scaling a job in place and of resuming it from a checkpoint."""
    relative = _RELATIVES.get((model, task), (model,))[0]
    return Costs(restart_s=_RESTART_S, scale_s=_SCALE_S[relative])


def epochs(model: str, epoch_size: int) -> tuple[int, int]:
    """Return the fewest and most epochs that jobs of such a data set took in the job history."""
    if model == "bert":
        return 5, 6
    if epoch_size >= 40_000:
        return 22, 36
    return (36, 69) if epoch_size >= 20_000 else (11, 50)
