"""Make the packaged sites of tasks: ``python -m tools.task_sites --source DATA --out FOLDER``.

Generated rounds draw their tasks from them. One has the nodes and pods of Alibaba's openb cluster
of 2023, two are made; the same data give the same arrays.
"""

import csv
import gzip
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from ronda.instances.errors import InputError
from ronda.instances.tasks.arrays import TaskRound
from ronda.instances.tasks.files import write_tasks
from tools.program import run

PART = 64
"""Parts of a GPU. Fractions are powers of two, so that they fit on GPUs if their sum does."""

Kind = tuple[int, int, int, str, int]
"""milli-CPU, MiB, 64ths of GPUs, GPU models, and how many there are."""


def openb(source: Path) -> TaskRound:
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
    kinds = [(*key, nodes[key]) for key in sorted(nodes)]
    speeds = {"V100M16": 1.3, "V100M32": 1.4, "G2": 1.15, "G3": 1.6, "A10": 1.2}  # made
    return _site("openb", kinds, [(*key, pods[key]) for key in sorted(pods)], speeds)


def azure() -> TaskRound:
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
    return _site("azure", _amounts(nodes), _amounts(machines), {})


def blocks() -> TaskRound:
    """Return nodes of 4 and 8 GPUs for tasks of 1 to 8, most of 3, 5 or 6: sums say too much."""
    nodes = [(96, 768, 8, "gpu", 60), (64, 512, 4, "gpu", 25), (128, 1024, 8, "gpu", 15)]
    gpus = {1: 5, 2: 5, 3: 25, 5: 45, 6: 18, 8: 2}
    tasks = [
        (n * cores, n * gib, n, "", often)
        for n, often in gpus.items()
        for cores, gib in ((8, 48), (11, 80), (14, 110))
    ]
    return _site("blocks", _amounts(nodes), _amounts(tasks), {})


def _amounts(rows: Iterable[Kind]) -> list[Kind]:
    return [(c * 1000, gib * 1024, gpus * PART, m, n) for c, gib, gpus, m, n in rows]


def _site(name: str, nodes: list[Kind], pods: list[Kind], speeds: dict[str, float]) -> TaskRound:
    """Return a round of nodes and tasks, gangs on the largest nodes, and tasks that may grow.

    Gangs have 2, 4 or 8 slices. Eight of the commonest shapes with GPUs are elastic as well: ways
    at once, twice and four times the size, which a node holds. Values are made.
    """
    models = sorted({node[3] for node in nodes})
    gpus = max(node[2] for node in nodes)
    largest = [node for node in nodes if node[2] == gpus]
    cpu, mib = min(node[0] for node in largest), min(node[1] for node in largest)
    rows = [(*pod[:4], 1) for pod in pods] + [(cpu, mib, gpus, "", n) for n in (2, 4, 8)]
    often = [pod[4] for pod in pods] + [4, 2, 1]
    small = [s for s, pod in enumerate(pods) if any(_grows(pod, node) for node in nodes)]
    first = sorted(small, key=lambda s: (-often[s], s))[:8]
    for s in first:
        c, m, g, only, _ = pods[s]
        rows += [(c * n, m * n, g * n, only, 1) for n in (2, 4)]
    use, slices = np.array([row[:3] for row in rows]), np.array([row[4] for row in rows])
    price = (use * [0.03 / 1000, 0.004 / 1024, 1 / PART]).sum(axis=1) * slices
    one = np.repeat(np.arange(len(often)), often)
    grown = len(often) + 2 * np.arange(len(first))
    ways = np.stack([first, grown, grown + 1], axis=1).ravel()
    value = np.append(price[one], price[np.repeat(first, 3)] * np.tile([1.0, 1.8, 3.1], len(first)))
    none = np.empty(0, dtype=np.int64)
    return TaskRound(
        name=name,
        resources=("cpu_milli", "memory_mib", "gpu_64ths"),
        kinds=tuple(f"{m or 'cpu'}x{g // PART}-{c // 1000}c-{i >> 10}g" for c, i, g, m, _ in nodes),
        capacity=np.array([node[:3] for node in nodes]),
        count=np.array([node[4] for node in nodes]),
        pool=np.array([models.index(node[3]) for node in nodes]),
        pools=tuple(model or "cpu" for model in models),
        use=use,
        slices=slices,
        speed=np.array([[_speed(*row[2:4], model, speeds) for model in models] for row in rows]),
        shape=np.append(one, ways),
        value=np.round(value, 6),
        group=np.full(len(value), -1),
        job=np.append(np.arange(len(one)), len(one) + np.repeat(np.arange(len(first)), 3)),
        held_task=none,
        held_node=none,
        move_cost=np.zeros(len(value)),
    )


def _speed(gpus: int, only: str, model: str, speeds: Mapping[str, float]) -> float:
    if not gpus:
        return 1.0
    return speeds.get(model, 1.0) if model and model in (only or model).split("|") else 0.0


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
    """Write the files, compressed, and say how many kinds and shapes each has."""
    for site in (openb(source), azure(), blocks()):
        path = out / f"tasks-{site.name}.npz"
        write_tasks(site, path)
        with np.load(path) as arrays:
            np.savez_compressed(path, **arrays)
        yield f"{path}: {len(site.kinds)} kinds of nodes, {len(site.slices)} shapes of tasks"


def main() -> int:
    """Make the files and return the exit code."""
    about = "Make the sites of generated rounds of tasks; same data, same arrays."
    return run("tools.task_sites", about, "folder to write to, as instances/data", make)


if __name__ == "__main__":
    sys.exit(main())
