"""Pollux's first four workloads with the results that its authors published."""

from pathlib import Path

from msgspec import structs

from ronda.instances.recipes.item import Item
from ronda.instances.traces.pollux import read_pollux

# Mean JCT in seconds by seed, from results-*/summary.json of the OSDI'21 artifact.
_PUBLISHED = {
    "pollux": {1: 2089.0, 2: 3323.0, 3: 2188.0, 4: 2721.0},
    "tiresias": {1: 2474.0, 2: 5145.0, 3: 3876.0, 4: 3280.0},
    "optimus": {1: 4087.0, 2: 6914.0, 3: 3944.0, 4: 5968.0},
}


def pollux(source: Path, seed: int) -> Item:
    """Return the workload of a seed as an instance.

    Parameters
    ----------
    source
        Folder of the public data.
    seed
        1 to 4.
    """
    plain = read_pollux(source / "pollux", seed=seed)
    description = (
        f"Pollux (OSDI'21) workload {seed}: {len(plain.jobs)} elastic jobs in 8 hours on "
        "16 nodes of 4 T4, measured step times and gradient noise\n"
        "Jobs request GPUs and batch of the tuned workload and declare their epochs: the estimate "
        "of their work (samples at the initial batch) is exact. A job may use 1 to 64 GPUs (ncf: "
        "one, with its batch, as in Pollux's simulator) and batch sizes on a grid of three to a "
        "doubling. Every start or change costs 30 s. Rounds happen every 60 s and at events; "
        "Pollux's simulator has rounds every 60 s only, fits speeds on the way and lets a job grow "
        "to twice the largest size seen: the reference values come from it and are no target to "
        "hit. Power is an assumption: 10 W for an idle and 70 W for a busy T4 (data sheet), 150 W "
        "for a host; nothing of it was measured."
    )
    return Item(
        obj=structs.replace(
            plain,
            description=description,
            reference={
                f"{policy} (its own simulator)": {"mean_jct_s": by_seed[seed]}
                for policy, by_seed in _PUBLISHED.items()
            },
            made={"recipe": "pollux", "workload": "workloads", "seed": seed, "nodes": 16},
        )
    )
