"""Clocks and power for Pollux's T4 nodes, of which nobody measured either.

Everything here is *made*. A T4's curves are those fitted to Zeus's measurements of an RTX 6000,
which is of the same generation (Turing), stretched from its power limit of 260 W to a T4's 70 W.
"""

from msgspec import structs

from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.files.fits import find
from ronda.instances.instance import Instance
from ronda.instances.profile import PowerCurve
from ronda.instances.recipes.stretch import stretch

CLOCKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SLEEP_W, WAKE_S = 10.0, 300.0  # of a node: assumptions
_STRETCH = 70.0 / 260.0
# Application of Pollux -> packaged fit: the same model where Zeus has it, at about Pollux's local
# batch; ResNet-50 stands in for the other two convolutional networks.
FITS = {
    "bert": "zeus-bert-squad-RTX6000-b12",
    "cifar10": "zeus-resnet50-RTX6000-b192",
    "deepspeech2": "zeus-deepspeech2-RTX6000-b24",
    "imagenet": "zeus-resnet50-RTX6000-b192",
    "ncf": "zeus-ncf-RTX6000-b16384",
    "yolov3": "zeus-resnet50-RTX6000-b192",
}


def with_clocks_and_power(instance: Instance) -> Instance:
    """Return one of Pollux's workloads with clock levels, power curves and nodes that can sleep.

    Speeds at full clock are as before, and nothing limits power: who does not look at watts
    decides as before.
    """
    profiles = {
        name: structs.replace(profile, power={"T4": power_curve(name)})
        for name, profile in instance.profiles.items()
    }
    return structs.replace(instance, cluster=_cluster(instance.cluster), profiles=profiles)


def power_curve(application: str) -> PowerCurve:
    """Return the stretched curve of one of Pollux's applications.

    Raises
    ------
    InputError
        If the packaged profiles have no such curve.
    """
    name = FITS[application]
    (fit,) = find(name)
    if fit.power is None:
        raise InputError("profiles.json", f"{name!r} without a power curve", "a fit of power")
    return stretch(fit.power, _STRETCH)


def _cluster(cluster: Cluster) -> Cluster:
    """Return the cluster with clock levels and nodes that can sleep."""
    return structs.replace(
        cluster,
        gpu_types=tuple(structs.replace(gpu, clocks=CLOCKS) for gpu in cluster.gpu_types),
        node_groups=tuple(
            structs.replace(group, sleep_w=SLEEP_W, wake_s=WAKE_S) for group in cluster.node_groups
        ),
    )
