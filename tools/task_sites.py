"""Make the packaged sites of tasks: ``python -m tools.task_sites --source DATA --out F``.

It counts the kinds of nodes and the shapes of pods of Alibaba's openb cluster of 2023, and makes
two sites, for generated rounds of tasks; the same data give the same file.
"""

import csv
import gzip
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from ronda.instances.errors import InputError
from ronda.instances.files.storage import write_bytes
from ronda.instances.generate.tasks import TaskSite
from tools.program import run

PART = 64
"""Parts of a GPU. Fractions are powers of two, so that they fit on GPUs if their sum does."""

Kind = tuple[int, int, int, str, int]
"""milli-CPU, MiB, 64ths of GPUs, GPU models, and how many there are."""


def openb(source: Path) -> TaskSite:
    """Return the site of a folder of public data."""
    nodes = Counter(
        (int(row["cpu_milli"]), int(row["memory_mib"]), PART * int(row["gpu"]), row["model"])
        for row in _rows(source / "alibaba_openb2023" / "openb_node_list_all_node.csv.gz")
    )
    pods = Counter(
        (
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            _parts(int(row["num_gpu"]), int(row["gpu_milli"] or 0)),
            "|".join(sorted(set(filter(None, row["gpu_spec"].split("|"))))),
        )
        for row in _rows(source / "alibaba_openb2023" / "openb_pod_list_gpuspec33.csv.gz")
    )
    return _site(
        [(*key, nodes[key]) for key in sorted(nodes)],
        [(*key, pods[key]) for key in sorted(pods)],
        source="openb 2023, github.com/alibaba/clusterdata, by way of "
        "github.com/hkust-adsl/kubernetes-scheduler-simulator: all nodes, pods of gpuspec33; "
        "speeds, gangs and elastic tasks are made",
        licence="Apache-2.0",
        citation="Weng, Yang, Yu, Wang, Tang, Yang, Zhang: Beware of Fragmentation: Scheduling "
        "GPU-Sharing Workloads with Fragmentation Gradient Descent, USENIX ATC 2023",
        speeds={"V100M16": 1.3, "V100M32": 1.4, "G2": 1.15, "G3": 1.6, "A10": 1.2},
    )


def azure() -> TaskSite:
    """Return hosts of four generations for virtual machines of 1 to 64 cores; a few have GPUs."""
    nodes = [
        *((48, 384, 0, "", 30), (64, 432, 0, "", 30), (80, 768, 0, "", 20), (112, 1024, 0, "", 14)),
        *((96, 880, 4, "gpu", 4), (96, 1900, 8, "gpu", 2)),
    ]
    cores = {1: 28, 2: 30, 4: 20, 8: 12, 16: 6, 32: 2, 48: 1, 64: 1}
    machines = [
        (n, n * gib, 0, "", often * share)
        for n, often in cores.items()
        for gib, share in ((2, 25), (4, 40), (8, 28), (16, 7))
    ]
    machines += [
        *((6, 110, 1, "", 120), (12, 220, 1, "", 60), (24, 440, 2, "", 40)),
        *((48, 880, 4, "", 20), (96, 1900, 8, "", 5)),
    ]
    return _site(_amounts(nodes), _amounts(machines))


def blocks() -> TaskSite:
    """Return nodes of 4 and 8 GPUs for tasks of 1 to 8, most of 3, 5 or 6: sums say too much."""
    nodes = [(96, 768, 8, "gpu", 60), (64, 512, 4, "gpu", 25), (128, 1024, 8, "gpu", 15)]
    gpus = {1: 5, 2: 5, 3: 25, 5: 45, 6: 18, 8: 2}
    tasks = [
        (n * cores, n * gib, n, "", often)
        for n, often in gpus.items()
        for cores, gib in ((8, 48), (11, 80), (14, 110))
    ]
    return _site(_amounts(nodes), _amounts(tasks))


def _amounts(rows: Iterable[Kind]) -> list[Kind]:
    return [(c * 1000, gib * 1024, gpus * PART, m, n) for c, gib, gpus, m, n in rows]


def _site(
    nodes: list[Kind],
    tasks: list[Kind],
    source: str = "made",
    licence: str = "Apache-2.0",
    citation: str = "",
    speeds: dict[str, float] | None = None,
) -> TaskSite:
    """Return a site with gangs on the largest nodes, and the commonest GPU tasks that may grow.

    Elastic tasks at four times their size fit on a node of each model that they may have.
    """
    gpus = max(node[2] for node in nodes)
    largest = [node for node in nodes if node[2] == gpus]
    cpu, mib = min(node[0] for node in largest), min(node[1] for node in largest)
    rows = [(c, m, g, only, 1, often) for c, m, g, only, often in tasks]
    rows += [(cpu, mib, gpus, "", slices, often) for slices, often in ((2, 4), (4, 2), (8, 1))]
    small = [k for k, task in enumerate(tasks) if any(_grows(task, node) for node in nodes)]
    elastic = []
    for k in sorted(small, key=lambda k: (-tasks[k][4], k))[:8]:
        elastic.append((k, len(rows), len(rows) + 1))
        c, m, g, only, _ = tasks[k]
        rows += [(c * n, m * n, g * n, only, 1, 0) for n in (2, 4)]
    return TaskSite(
        source=source,
        licence=licence,
        citation=citation,
        speeds=speeds or {},
        nodes=tuple(nodes),
        tasks=tuple(rows),
        elastic=tuple(elastic),
    )


def _grows(task: Kind, node: Kind) -> bool:
    """Return whether a task with GPUs fits on a node at four times its size."""
    c, m, g, only, _ = task
    room = 4 * c <= node[0] and 4 * m <= node[1] and 0 < 4 * g <= node[2]
    return room and node[3] in (only or node[3]).split("|")


def _parts(gpus: int, milli: int) -> int:
    """Return 64ths of GPUs; a fraction of one is rounded up to a half, a quarter, and so on."""
    part = PART
    while gpus == 1 and part > 1 and milli * 2 * PART <= 1000 * part:
        part //= 2
    return part if gpus == 1 else PART * gpus


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from csv.DictReader(file)
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a table of openb") from None


def make(source: Path, out: Path) -> Iterator[str]:
    """Write the file, and say how many kinds and shapes it has."""
    made = {"openb": openb(source), "azure": azure(), "blocks": blocks()}
    write_bytes(out, msgspec.json.encode(made).replace(b"],[", b"],\n[") + b"\n")
    for name, site in made.items():
        yield f"{name}: {len(site.nodes)} kinds of nodes, {len(site.tasks)} shapes of tasks"


def main() -> int:
    """Make the file and return the exit code."""
    about = "Make the sites of generated rounds of tasks; same data, same file."
    return run("tools.task_sites", about, "file to write, as instances/data/tasks.json", make)


if __name__ == "__main__":
    sys.exit(main())
