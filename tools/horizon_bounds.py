"""Make the packaged certificates of tight bounds, ``instances/data/bounds``.

``python -m tools.horizon_bounds NAME [NAME ...] [--count K] [--rounds N]`` searches the prices of
packaged instances on K intervals, which takes minutes, and keeps a certificate if it proves more
than the one that stands there.
"""

import argparse
from pathlib import Path

from ronda.formulations.bounds.certificate import check_bound, packaged_bound, write_bound
from ronda.instances.files.packaged import load
from ronda.instances.instance import Instance
from ronda.solvers.prices.over_time import tighten

FOLDER = Path("instances/data/bounds")


def main() -> None:
    """Make the certificates that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--count", type=int)
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    for name in given.names:
        instance = load(name)
        assert isinstance(instance, Instance), f"{name} is a round"
        known = packaged_bound(instance)
        made = tighten(instance, count=given.count, rounds=given.rounds)
        check_bound(instance, made)
        if known is None or made.mean_jct_s > known.mean_jct_s:
            write_bound(made, FOLDER / f"{name}.json.zst")
        print(name, made.mean_jct_s, "after", known and known.mean_jct_s)


if __name__ == "__main__":
    main()
