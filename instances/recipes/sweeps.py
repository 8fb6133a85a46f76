"""Hyper-parameter sweeps: among ordinary jobs on a cluster, and Hydro's study of 50 trials."""

from msgspec import structs

from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.generate.sweeps import SWEPT, mixed, swept_profile
from ronda.instances.instance import Instance
from ronda.instances.job import Estimate, Job, Truth

_HFTA = (
    "Wang et al.: Horizontally Fused Training Array: An Effective Hardware Utilization Squeezer "
    "for Training Novel Deep Learning Models, MLSys 2021"
)
_HYDRO = "Hu et al.: Hydro: Surrogate-Based Hyperparameter Tuning Service in Datacenters, OSDI 2023"
TRIALS, EPOCHS, IMAGES = 50, 50, 50_000
BATCHES = (128.0, 256.0, 512.0)


def cluster_mixed() -> Instance:
    """Return sweeps among ordinary jobs, with the Vector study's shares of GPU-hours."""
    made = mixed(seed=0)
    return structs.replace(
        made,
        name="cluster-mixed",
        description="147 jobs on two nodes of eight A100s: sweeps among ordinary jobs\n"
        "GENERATED, by `ronda instances generate mixed`. Shares of GPU-hours as at the Vector "
        "Institute (HFTA's study): 46.2 % trials of sweeps on one GPU each, 24 % jobs of several "
        "GPUs, 26.3 % others, 3.5 % lone jobs of one. Trials of one sweep and class may share "
        "GPUs, by the curves of PointNet (A100, HFTA's poster) and of ResNet-18 (RTX 3090, "
        "Hydro's artifact), which stands in for an A100. Assumptions: load 1.5 of the cluster, "
        "8 to 48 trials a sweep of 45 minutes in the median, 20 s apart, a quarter of which stop "
        "early; watts of all sweeps are those of resnet50, with one model on a GPU as with many; "
        "estimates of other jobs are off by 30 %; a restart takes a minute.",
        citation=_HFTA,
    )


def sweep_hydro() -> Instance:
    """Return Hydro's study: 50 trials of ResNet-18 on four RTX 3090."""
    gpu = GpuType(name="RTX3090", memory_gib=24.0)
    profile = swept_profile("resnet18", SWEPT["resnet18"], gpu.name)
    work = float(EPOCHS * IMAGES)
    jobs = tuple(
        Job(
            id=f"t{k:02d}",
            submit_s=0.0,
            profile=profile.name,
            batch=BATCHES[k % len(BATCHES)],
            fusible="hydro",
            name="resnet18 on CIFAR-10",
            estimate=Estimate(work=work),
            truth=Truth(work=work),
        )
        for k in range(TRIALS)
    )
    return Instance(
        name="sweep-hydro",
        cluster=uniform_cluster(gpu, 1, 4),
        profiles={profile.name: profile},
        jobs=jobs,
        description="Hydro's study: 50 trials of 50 epochs of ResNet-18 on four RTX 3090\n"
        "A trial is one of three batch sizes, each a fusion class; the curves of 256 stand for "
        "all. An epoch of one model takes 6.1 s whatever its batch. No watts, no pauses.",
        source="github.com/S-Lab-System-Group/Hydro (OSDI 2023 artifact)",
        licence="Apache-2.0",
        citation=_HYDRO,
        reference={
            "Ray, published": {"makespan_s": 3960.0},
            "Hydro, narrow models and two full ones, published": {"makespan_s": 1422.0},
        },
    )
