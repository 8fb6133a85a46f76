"""How fast, how hungry, how good: one job on one configuration.

Here stand throughput, power, statistical efficiency, memory and learning curves, as functions of
GPUs, nodes, clock and batch. What a round makes of them is in `ronda.formulations.options`; fitting
them to measurements, in `ronda.solvers.fitting`.
"""

from ronda.formulations.models.efficiency import stages
from ronda.formulations.models.learning import epochs_over
from ronda.formulations.models.power import gpu_power_w, job_power_w, speed_and_watts
from ronda.formulations.models.throughput import model_of, samples_per_s

__all__ = [
    "epochs_over",
    "gpu_power_w",
    "job_power_w",
    "model_of",
    "samples_per_s",
    "speed_and_watts",
    "stages",
]
