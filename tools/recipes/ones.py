"""The ONES workload as instances: the artifact's trace, 50 jobs of it, and past jobs."""

from msgspec import structs

from ronda.instances.instance import Instance
from ronda.systems.ones.trace import ones_workload

# Mean, seconds, of 50 jobs: out/*_profile.csv of the artifact; its speeds are not known.
_PUBLISHED = {
    "ones": {"mean_jct_s": 213.98, "mean_queue_s": 86.24},
    "drl": {"mean_jct_s": 354.04, "mean_queue_s": 145.68},
    "tiresias": {"mean_jct_s": 501.72, "mean_queue_s": 106.60},
    "optimus": {"mean_jct_s": 452.94, "mean_queue_s": 192.96},
}


HISTORY_SEED = 590
"""Of the past jobs: no other packaged instance is made with it."""


def history() -> Instance:
    """Return the past jobs that ONES's predictor is first trained on."""
    return ones("ones-history", 20, HISTORY_SEED, "past jobs for ONES's predictor of progress: ")


def ones(name: str, jobs: int, seed: int = 0, use: str = "") -> Instance:
    """Return a workload; `use` is put before the first line of its description."""
    plain = ones_workload(jobs, seed)
    description = (
        f"ONES (SC'21) workload: {use}{jobs} short trainings of ten model-task "
        "pairs that arrive 0 to 60 s apart on 16 nodes of 4 V100\n"
        "Tabulated from the artifact: models, data set sizes, base and largest batches (max_lr / "
        "lr), requested GPUs, uniform arrivals, the range of epochs to converge. MODELLED: speed "
        "(ElasticFlow's A100 measurements, unmeasured models scaled from a relative by "
        "multiply-adds and parameters), epochs(B) = epochs(B0) (phi + B) / (phi + B0) with phi "
        "5,500 (CIFAR-10), 12,000 (ImageNet) or 3,000 samples (BERT), and losses as 1/(1 + s p) "
        "with noise, which policies see after each epoch. Estimates are the mean of the range of "
        "epochs. Jobs ask for the batch that suits their GPUs; `ronda instances generate ones "
        "--batch base` makes jobs that ask for the batch of one GPU. Scaling in place costs 1.4 to "
        "3.6 s by model (ElasticFlow), a restart from a checkpoint 30 s. The reference values are "
        "those of the artifact's prototype, with speeds that are not known: no target to hit. "
        "Power is an assumption (data sheet)."
    )
    reference = {f"{key} (its artifact, 50 jobs)": found for key, found in _PUBLISHED.items()}
    return structs.replace(
        plain,
        name=name,
        description=description,
        licence="Apache-2.0 (scaling)",
        reference=reference if jobs == 50 else {},
    )
