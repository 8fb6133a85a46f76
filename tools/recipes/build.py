"""All recipes, and how their results are written."""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from ronda.instances.errors import InputError
from ronda.instances.files import json as files
from ronda.instances.files.packaged import Listing
from ronda.instances.instance import Instance
from tools.recipes import hand, probes
from tools.recipes.earth import earth, earth_may
from tools.recipes.energy import HALF_DAY, WEEK, energy
from tools.recipes.grid import london, phoenix
from tools.recipes.item import Item
from tools.recipes.ones import history, ones
from tools.recipes.philly import philly_batches, philly_faults
from tools.recipes.pollux import pollux
from tools.recipes.rounds import MADE, busy, made
from tools.recipes.structured import cluster_mixed, structured
from tools.recipes.sweeps import taskset, titan
from tools.recipes.tenants import philly_tenants
from tools.recipes.venus import venus

RECIPES: dict[str, Callable[[Path], Instance | Item]] = {
    "clock-or-gpus": lambda _: hand.clock_or_gpus(),
    "cluster-mixed": lambda _: cluster_mixed(),
    "earth-2020-05": earth_may,
    "earth-2020-09": earth,
    "energy-hand": lambda _: hand.energy_hand(),
    "event-london": lambda _: london(),
    "event-phoenix": lambda _: phoenix(),
    "gangs": lambda _: structured("gangs"),
    "one-gpu": lambda _: hand.one_gpu(),
    "ones-50": lambda _: ones("ones-50", 50),
    "ones-history": lambda _: history(),
    "ones-trace": lambda _: ones("ones-trace", 400),
    "philly-batches": philly_batches,
    "philly-energy": lambda source: energy(source, WEEK),
    "philly-energy-small": lambda source: energy(source, HALF_DAY),
    "philly-faults": philly_faults,
    "philly-tenants": philly_tenants,
    "pods-mixed": lambda _: structured("pods-mixed"),
    "pollux-1": lambda source: pollux(source, 1),
    "pollux-2": lambda source: pollux(source, 2),
    "pollux-3": lambda source: pollux(source, 3),
    "pollux-4": lambda source: pollux(source, 4),
    **{name: lambda _, name=name: probes.cap(name) for name in sorted(probes.CAPS)},  # type: ignore[misc]
    "probe-racks": lambda _: probes.racks(),
    "probe-restart": lambda _: probes.restart(),
    "probe-wake": lambda _: probes.wake(),
    "probe-window": lambda _: probes.window(),
    **{name: lambda _, name=name: made(name) for name in sorted(MADE)},  # type: ignore[misc]
    "round-arrays": lambda _: busy(cluster_mixed(), "round-arrays", "hfht", 9_603.0),
    "round-batches": lambda source: busy(philly_batches(source), "round-batches", "srtf", 29_520.0),
    "round-gangs": lambda _: busy(structured("gangs"), "round-gangs", "srtf", 37_514.0),
    "round-pods": lambda _: busy(structured("pods-mixed"), "round-pods", "srtf", 5_364.0),
    "round-pollux": lambda source: busy(pollux(source, 1), "round-pollux", "srtf", 20_602.0),
    "round-power": lambda source: busy(energy(source, HALF_DAY), "round-power", "srtf", 29_520.0),
    "round-tenants": lambda _: busy(structured("two-tenants"), "round-tenants", "srtf", 10_135.0),
    "round-venus": lambda source: busy(
        venus(source, "vcvGl", 20), "round-venus", "fifo", 1_218_882.0
    ),
    "sweep-hydro": lambda _: hand.sweep_hydro(),
    "sweep-taskset": taskset,
    "sweep-titan": titan,
    "two-jobs": lambda _: hand.two_jobs(),
    "two-tenants": lambda _: structured("two-tenants"),
    "venus-vcvgl": lambda source: venus(source, "vcvGl", 20),
    "venus-vcvly": lambda source: venus(source, "vcvlY", 2),
}
"""What is packaged, by name: from the folder of the public data to the item."""

# In the data folder -> in the folder of the public data.
_LICENCES = {
    "LICENSE.HeliosData.CC-BY-4.0.txt": "helios/LICENSE.HeliosData.CC-BY-4.0.txt",
    "LICENSE.HeliosArtifact.MIT.txt": "helios_venus/LICENSE.HeliosArtifact.MIT.txt",
    "LICENSE.philly-traces.CC-BY-4.0.txt": "philly/LICENSE.philly-traces.CC-BY-4.0.txt",
    "LICENSE.AdaptDL.Apache-2.0.txt": "pollux/LICENSE.Apache-2.0.txt",
    "LICENSE.openb.Apache-2.0.txt": "alibaba_openb2023/LICENSE.Apache-2.0.txt",
    "LICENSE.ElasticFlow.Apache-2.0.txt": "elasticflow/LICENSE.Apache-2.0.txt",
    "LICENSE.Zeus.Apache-2.0.txt": "zeus/LICENSE.Apache-2.0.txt",
    "LICENSE.HFTA.MIT.txt": "hfta/LICENSE.MIT.txt",
    "LICENSE.TaskSet.Apache-2.0.txt": "taskset/LICENSE.Apache-2.0.txt",
    "LICENSE.Titan.MIT.txt": "titan_fm/LICENSE.MIT.txt",
    "LICENSE.Hydro.Apache-2.0.txt": "hydro_fusion/LICENSE.Apache-2.0.txt",
}


def build(source: Path, out: Path) -> Iterator[str]:
    """Make every packaged file and yield its name; old ones are replaced once all are made.

    Data that are missing or not as expected are refused.
    """
    with tempfile.TemporaryDirectory() as scratch:
        draft = Path(scratch)
        listing = []
        for _, recipe in sorted(RECIPES.items()):
            made = recipe(source)
            item = made if isinstance(made, Item) else Item(obj=made)
            files.write(item.obj, draft / item.entry.file)
            listing.append(item.entry)
            yield item.entry.file
        index = msgspec.json.encode(Listing(entries=tuple(listing)))
        (draft / "index.json").write_bytes(msgspec.json.format(index, indent=1) + b"\n")
        for name, origin in _LICENCES.items():
            _copy(source / origin, draft / name)
        out.mkdir(parents=True, exist_ok=True)
        _move(draft.iterdir(), out)
    yield "index.json"
    yield from _LICENCES


def _copy(origin: Path, target: Path) -> None:
    try:
        shutil.copyfile(origin, target)
    except OSError as error:
        raise InputError(str(origin), error.strerror or str(error), "a licence text") from error


def _move(made: Iterable[Path], out: Path) -> None:
    for path in sorted(made):
        try:
            shutil.move(path, out / path.name)
        except OSError as error:
            place = str(out / path.name)
            raise InputError(place, error.strerror or str(error), "a writable file") from error
