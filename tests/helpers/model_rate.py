"""The rate that the performance models of formulations/ give a job: for tests of other layers."""

from ronda.instances.models.configuration import Configuration
from ronda.instances.models.efficiency import efficiency_at
from ronda.instances.models.throughput import model_of, samples_per_s
from ronda.instances.profile import Rigid


def work_rate(profile, gpu_type, gpus, nodes, batch, clock=1.0, noise=None, racks=1):
    """Return work per second: samples per second (rigid: 1) times statistical efficiency."""
    at = Configuration(gpus, nodes, batch, clock, racks)
    speed = float(samples_per_s(profile, gpu_type, at))
    if noise is None or isinstance(model_of(profile, gpu_type), Rigid):
        return speed
    return speed * efficiency_at(noise, batch, profile.base_batch)
