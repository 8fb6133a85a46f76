"""Instances small enough to be solved on paper; the derivations are in their descriptions."""

from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.generate.mixtures import SWEPT, swept_profile
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Estimate, Job, JobState, Truth
from ronda.instances.profile import PowerCurve, Profile, Rigid, Tabular
from ronda.instances.round import Round
from tools.recipes.item import Item

SOURCE = "made for ronda, by hand"
LICENCE = "Apache-2.0"
_SRTF = "srtf(setup_s=0)"  # plain: without the extra second of the Helios artifact's SRTF

_HYDRO = "Hu et al.: Hydro: Surrogate-Based Hyperparameter Tuning Service in Datacenters, OSDI 2023"
TRIALS, EPOCHS, IMAGES = 50, 50, 50_000
BATCHES = (128.0, 256.0, 512.0)

_ONE_GPU = """\
Three rigid jobs on one GPU: FIFO, SJF and SRTF on paper
A: at 0 s, 10 s long. B: at 1 s, 2 s long. C: at 2 s, 1 s long. Preemption is free.
FIFO runs A 0-10, B 10-12, C 12-13: JCT 10, 11, 11, mean 32/3 s; B and C queue 9 + 10 s.
SJF (not preemptive) runs A 0-10, C 10-11, B 11-13: JCT 10, 12, 9, mean 31/3 s.
SRTF runs A 0-1, B 1-3, C 3-4, A 4-13 (at 2 s B and C both need 1 s more: B keeps the GPU, and
for the mean it makes no difference): JCT 13, 2, 2, mean 17/3 s. That is the least possible: with
free preemption SRPT is optimal on one machine."""

_TWO_JOBS = """\
Two elastic jobs that scale badly share one node of four GPUs: the best mean JCT is 160 s
Either job does 1, 1.6 or 2 samples/s on 1, 2 or 4 GPUs (batch of 8 samples in 8, 5 or 4 s).
A needs 160 samples, B needs 400; both come at 0 s, ask for 4 GPUs and may take 1, 2 or 4.
Let A end first, at t, when B has x samples; B then runs alone on 4 GPUs and ends at
t + (400 - x)/2. The sum of the JCTs is 2t + 200 - x/2. While A runs at rate a and B at rate b, a
sample of A costs (2 - b/2)/a seconds of that sum: 1 with (4, 0) GPUs, 1.2/1.6 = 0.75 with (2, 2),
(2 - 0.5)/1.6 = 0.94 with (2, 1), 1.2 with (1, 2). So (2, 2) is best and the sum is
160 x 0.75 + 200 = 320 s: A ends at 100 s, B (240 samples left) at 220 s, mean 160 s.
If B ends first, a sample of B costs at least 0.75 and the sum is at least 400 x 0.75 + 80 = 380 s.
With the requested 4 GPUs each, FIFO, SJF and SRTF run A 0-80 and B 80-280: mean 180 s."""

_CLOCK_OR_GPUS = """\
A round with one job and 400 W: two GPUs at 70 % of the clock beat one at full clock
One node of two GPUs: host 100 W, idle GPU 25 W; a busy GPU draws P(s) = 100 + 200 (s^3 - 1/8) W
for clocks s = 0.5, 0.7, 1. The job does 1 sample/s on one GPU and 2 on two, times the clock.
One GPU: 100 + 25 + P. Full clock: 125 + 275 = 400 W, 1 sample/s, just within the cap.
Two GPUs: 100 + 2 P. Full clock: 650 W, too much. 0.7: P = 143.6 W, 387.2 W, 1.4 samples/s.
0.5: P = 100 W, 300 W, 1 sample/s. So two GPUs at 0.7 are best: 1.4 samples/s."""

_ENERGY_HAND = """\
Two rigid jobs on two nodes of two GPUs: the energy of a run on paper, with and without sleep
Host 100 W, idle GPU 20 W, busy GPU 120 W, sleeping node 10 W, wake-up 30 s, start 10 s.
A: at 0 s, 2 GPUs, 100 s long. B: at 200 s, 2 GPUs, 50 s long. Any policy that starts a job at once
runs A 10-110 and B 210-260 (before, each holds its GPUs for 10 s at idle power): JCT 110 and 60 s,
mean 85 s, end 260 s. All nodes awake:
busy 2 x 120 W x 150 s = 36,000 J; starting 2 x 20 W x 20 s = 800 J; idle GPUs
(4 x 260 - 2 x 110 - 2 x 60) GPU-s x 20 W = 700 x 20 = 14,000 J; hosts 2 x 100 W x 260 s =
52,000 J; together 102,800 J. If the second node sleeps from 0 s on, nothing is slower and it draws
10 instead of 140 W for 260 s: 33,800 J less, 69,000 J."""


def one_gpu() -> Instance:
    """Return three rigid jobs on one GPU."""
    gpu = GpuType(name="GPU", memory_gib=16.0)
    jobs = tuple(
        rigid(name, at, 1, length)
        for name, at, length in (("A", 0.0, 10.0), ("B", 1.0, 2.0), ("C", 2.0, 1.0))
    )
    return Instance(
        name="one-gpu",
        cluster=uniform_cluster(gpu, 1, 1),
        profiles={"rigid": Profile(name="rigid", throughput={"GPU": Rigid()})},
        jobs=jobs,
        description=_ONE_GPU,
        source=SOURCE,
        licence=LICENCE,
        reference={
            "fifo": {"mean_jct_s": 32 / 3, "mean_queue_s": 19 / 3, "queued_jobs": 2.0},
            "sjf": {"mean_jct_s": 31 / 3, "mean_queue_s": 6.0, "queued_jobs": 2.0},
            _SRTF: {"mean_jct_s": 17 / 3},
            "optimum": {"mean_jct_s": 17 / 3},
        },
    )


def two_jobs() -> Instance:
    """Return two elastic jobs whose best schedule shares the node."""
    gpu = GpuType(name="GPU", memory_gib=16.0)
    # Computation 1 s a sample and GPU; the rest of a step synchronises.
    table = Tabular(
        gpus=(1, 2, 4),
        nodes=(1, 1, 1),
        local_batch=(8.0, 4.0, 2.0),
        step_s=(8.0, 5.0, 4.0),
        sync_s=(0.0, 1.0, 2.0),
    )
    jobs = tuple(
        Job(
            id=name,
            submit_s=0.0,
            profile="app",
            gpus=4,
            min_gpus=1,
            max_gpus=4,
            estimate=Estimate(work=work),
            truth=Truth(work=work),
        )
        for name, work in (("A", 160.0), ("B", 400.0))
    )
    rigid = {"mean_jct_s": 180.0, "mean_queue_s": 40.0, "queued_jobs": 1.0}
    return Instance(
        name="two-jobs",
        cluster=uniform_cluster(gpu, 1, 4),
        profiles={"app": Profile(name="app", throughput={"GPU": table}, base_batch=8.0)},
        jobs=jobs,
        description=_TWO_JOBS,
        source=SOURCE,
        licence=LICENCE,
        reference={
            "optimum": {"mean_jct_s": 160.0},
            "fifo": rigid,
            "sjf": rigid,
            _SRTF: rigid,
        },
    )


def clock_or_gpus() -> Item:
    """Return a round in which the power cap makes low clocks worth while."""
    gpu = GpuType(name="GPU", memory_gib=16.0, idle_w=25.0, clocks=(0.5, 0.7, 1.0))
    table = Tabular(
        gpus=(1, 2), nodes=(1, 1), local_batch=(2.0, 1.0), step_s=(2.0, 1.0), sync_s=(0.0, 0.0)
    )
    profile = Profile(
        name="app",
        throughput={"GPU": table},
        power={"GPU": PowerCurve(a_w=50.0, b_w=100.0, c_w=200.0, s0=0.5)},
        base_batch=2.0,
    )
    job = Job(
        id="A",
        submit_s=0.0,
        profile="app",
        min_gpus=1,
        max_gpus=2,
        estimate=Estimate(work=3600.0),
    )
    return Item(
        obj=Round(
            name="clock-or-gpus",
            cluster=uniform_cluster(gpu, 1, 2, host_idle_w=100.0),
            profiles={"app": profile},
            waiting=(JobState(job=job, since_s=0.0),),
            power_cap_w=400.0,
            source=f"{SOURCE}. {_CLOCK_OR_GPUS}",
        ),
        description=_CLOCK_OR_GPUS,
        source=SOURCE,
        licence=LICENCE,
        reference={"optimum": {"rate": 1.4, "gpus": 2.0, "clock": 0.7, "power_w": 387.2}},
    )


def energy_hand() -> Instance:
    """Return two rigid jobs whose energy is added up on paper."""
    gpu = GpuType(name="GPU", memory_gib=16.0, idle_w=20.0)
    profile = Profile(
        name="rigid",
        throughput={"GPU": Rigid()},
        power={"GPU": PowerCurve(a_w=20.0, b_w=100.0, s0=1.0)},
    )
    awake = {"mean_jct_s": 85.0, "makespan_s": 260.0, "energy_j": 102_800.0}
    return Instance(
        name="energy-hand",
        cluster=uniform_cluster(gpu, 2, 2, host_idle_w=100.0, sleep_w=10.0, wake_s=30.0),
        profiles={"rigid": profile},
        jobs=(rigid("A", 0.0, 2, 100.0), rigid("B", 200.0, 2, 50.0)),
        costs=Costs(start_s=10.0, restart_s=10.0),
        description=_ENERGY_HAND,
        source=SOURCE,
        licence=LICENCE,
        reference={
            "fifo": awake,
            "sjf": awake,
            _SRTF: awake,
            "second node asleep": {**awake, "energy_j": 69_000.0},
        },
    )


def rigid(name: str, submit_s: float, gpus: int, seconds: float, partition: str = "default") -> Job:
    """Return a rigid job of known size."""
    return Job(
        id=name,
        submit_s=submit_s,
        profile="rigid",
        gpus=gpus,
        partition=partition,
        estimate=Estimate(work=seconds),
        truth=Truth(work=seconds),
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
        made={"recipe": "hand"},
        reference={
            "Ray, published": {"makespan_s": 3960.0},
            "Hydro, narrow models and two full ones, published": {"makespan_s": 1422.0},
        },
    )
