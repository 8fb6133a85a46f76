"""Power curves for GPUs that nobody measured, those of measured ones stretched; T4 nodes of it.

Everything here is *made*: that watts scale with the power limits of two GPUs, and that a
synchronising GPU draws what it draws at half speed, are assumptions. A T4's curves are those
fitted to Zeus's measurements of an RTX 6000, which is of the same generation (Turing), stretched
from its power limit of 260 W to a T4's 70 W.
"""

from msgspec import structs

from ronda.instances.cluster import Cluster
from ronda.instances.instance import Instance
from ronda.instances.profile import PowerCurve

ZEUS_CITATION = (
    "You, Chung, Chowdhury: Zeus: Understanding and Optimizing GPU Energy Consumption of DNN "
    "Training, NSDI 2023"
)

CLOCKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SLEEP_W, WAKE_S = 10.0, 300.0  # of a node: assumptions
_STRETCH = 70.0 / 260.0
# P(s) of one RTX 6000; fits to Zeus's measurements at about Pollux's local batches. They stay as
# they are when profiles are fitted again, so that the instances do.
_BERT = PowerCurve(a_w=58.2237, b_w=101.152, c_w=194.743, s0=0.821207)
_RESNET50 = PowerCurve(a_w=55.7545, b_w=102.146, c_w=247.748, s0=0.873395)
_DEEPSPEECH2 = PowerCurve(a_w=52.2035, b_w=78.8266, c_w=258.667, s0=0.928064)
_NCF = PowerCurve(a_w=55.3359)
# Application of Pollux -> packaged fit and its curve: the same model where Zeus has it; ResNet-50
# stands in for the other two convolutional networks.
CURVES = {
    "bert": ("zeus-bert-squad-RTX6000-b12", _BERT),
    "cifar10": ("zeus-resnet50-RTX6000-b192", _RESNET50),
    "deepspeech2": ("zeus-deepspeech2-RTX6000-b24", _DEEPSPEECH2),
    "imagenet": ("zeus-resnet50-RTX6000-b192", _RESNET50),
    "ncf": ("zeus-ncf-RTX6000-b16384", _NCF),
    "yolov3": ("zeus-resnet50-RTX6000-b192", _RESNET50),
}


def stretch(curve: PowerCurve, ratio: float) -> PowerCurve:
    """Return a curve with all watts times `ratio`, and at half speed while gradients synchronise.

    `ratio` is the power limit over that of the measured GPU, whose `s0` is at least 0.5.
    """
    a_w, b_w, c_w = (round(watts * ratio, 6) for watts in (curve.a_w, curve.b_w, curve.c_w))
    sync_w = round(a_w + 0.5 * b_w, 6)
    return PowerCurve(a_w=a_w, b_w=b_w, c_w=c_w, s0=curve.s0, sync_w=sync_w)


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
    """Return the stretched curve of one of Pollux's applications."""
    _, curve = CURVES[application]
    return stretch(curve, _STRETCH)


def _cluster(cluster: Cluster) -> Cluster:
    """Return the cluster with clock levels and nodes that can sleep."""
    return structs.replace(
        cluster,
        gpu_types=tuple(structs.replace(gpu, clocks=CLOCKS) for gpu in cluster.gpu_types),
        node_groups=tuple(
            structs.replace(group, sleep_w=SLEEP_W, wake_s=WAKE_S) for group in cluster.node_groups
        ),
    )
