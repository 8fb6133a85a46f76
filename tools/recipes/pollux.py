"""Pollux's first four workloads with the results that its authors published."""

from pathlib import Path

from msgspec import structs

from ronda.instances.instance import Instance
from ronda.instances.traces.pollux import read_pollux
from tools.recipes.made_power import ZEUS_CITATION, with_clocks_and_power

# Mean JCT in seconds by seed, from results-*/summary.json of the OSDI'21 artifact.
_PUBLISHED = {
    "pollux": {1: 2089.0, 2: 3323.0, 3: 2188.0, 4: 2721.0},
    "tiresias": {1: 2474.0, 2: 5145.0, 3: 3876.0, 4: 3280.0},
    "optimus": {1: 4087.0, 2: 6914.0, 3: 3944.0, 4: 5968.0},
}


def pollux(source: Path, seed: int) -> Instance:
    """Return the workload of a seed, 1 to 4, as an instance."""
    plain = with_clocks_and_power(read_pollux(source / "pollux", seed=seed))
    description = (
        f"Pollux (OSDI'21) workload {seed}: {len(plain.jobs)} elastic jobs in 8 hours on "
        "16 nodes of 4 T4, measured step times and gradient noise\n"
        "Jobs request GPUs and batch of the tuned workload and declare their epochs: the estimate "
        "of their work (samples at the initial batch) is exact. A job may use 1 to 64 GPUs (ncf: "
        "one, with its batch, as in Pollux's simulator) and batch sizes on a grid of three to a "
        "doubling. Every start or change costs 30 s. Rounds happen every 60 s and at events; "
        "Pollux's simulator has rounds every 60 s only, fits speeds on the way and lets a job grow "
        "to twice the largest size seen: the reference values come from it and are no target to "
        "hit. Clock and power are MADE, nothing of them was measured on a T4: six levels of the "
        "speed at which a GPU computes (half to full; computation alone feels them, all of it: a "
        "clock share phi of 1, since the power curves are over speed), power curves fitted to "
        "Zeus's measurements of an RTX 6000 (the same generation) and stretched from its 260 W to "
        "a T4's 70 W, ResNet-50's for cifar10 and yolov3, half-speed power while synchronising. "
        "Assumptions: idle T4 10 W (data sheet), host 150 W, sleeping node 10 W, wake-up 300 s. "
        "Nothing limits power here: `ronda frontier` sweeps an energy budget."
    )
    return structs.replace(
        plain,
        description=description,
        source=f"{plain.source}; power: fits to github.com/ml-energy/zeus (made)",
        citation=f"{plain.citation}; {ZEUS_CITATION}",
        reference={
            f"{policy} (its own simulator)": {"mean_jct_s": by_seed[seed]}
            for policy, by_seed in _PUBLISHED.items()
        },
        made={"recipe": "pollux", "workload": "workloads", "seed": seed, "nodes": 16},
    )
