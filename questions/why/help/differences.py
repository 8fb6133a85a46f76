"""How a changed request differs from the one that was made: in words, and by how much less it asks.

The cost of a change is plain, so that an operator can check it: the share of the work that is given
up (pieces times GPUs of each) counts in full, the share of any other resource and of the time limit
counts half, and a change that gives up no amount counts as `KINDS` says. Costs of two add up.
"""

from collections.abc import Iterator
from math import isclose, log2
from typing import NamedTuple

from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import MEMORY, SeenJob
from ronda.questions.why.proof import anywhere
from ronda.questions.why.words import a_piece, amount, hours, many

HALF = 0.5
"""The weight of the share of a resource other than GPUs, or of the time limit, that is given up."""

KINDS = {
    "split": 0.1,
    "partition": 0.1,
    "slices": 0.1,
    "no slices": 0.4,
    "exclusive": 0.1,
    "own_nodes": 0.1,
    "nodes": 0.1,
    "not_nodes": 0.1,
    "features": 0.15,
    "one_node": 0.15,
    "gpu_types": 0.2,
    "priority": 0.2,
    "tenant": 0.2,
    "after": 0.3,
    "first limit": 0.3,
}
"""Costs of changes that give up no amount, in shares of the work.

That of a split, and of other slices, is for each doubling or halving of the pieces or the slices.
``first limit`` is a time limit for a job that has none.
"""


class Concession(NamedTuple):
    """One difference between two requests: its kind, its cost, and its words."""

    kind: str
    cost: float
    text: str


def work(job: SeenJob) -> float:
    """Return what a job asks for in all: GPUs, or pieces if it asks for none."""
    return job.count * (job.per.get(GPUS) or 1.0)


def differences(asked: SeenJob, edited: SeenJob, system: str = "") -> Iterator[Concession]:
    """Yield how a request differs from the one that was asked.

    With `system` ``slurm``, the option of sbatch is named where there is exactly one.
    """
    slurm = system == "slurm"
    left = work(edited) / work(asked)
    if edited.count != asked.count and isclose(left, 1) and GPUS in asked.per:
        cost = KINDS["split"] * abs(log2(edited.count / asked.count))
        shape = f"{_shape(edited, system)} instead of {_shape(asked, system)}"
        yield Concession("split", cost, shape)
    else:
        if edited.count != asked.count:
            option = f"--nodes={edited.count}" if asked.own_nodes else ""
            noun = "GPU" if anywhere(asked) else a_piece(asked, system)
            yield Concession(
                "pieces",
                1 - edited.count / asked.count,
                f"{many(edited.count, noun)} instead of {asked.count}"
                f" ({asked.count - edited.count} fewer){_by(slurm, option)}",
            )
        gpus, had = edited.per.get(GPUS, 0.0), asked.per.get(GPUS, 0.0)
        if gpus != had:
            share = (1 - gpus / had) * edited.count / asked.count
            yield Concession("gpus", share, _less(asked, GPUS, gpus, system))
    yield from _amounts(asked, edited, system)
    yield from _time(asked, edited, slurm=slurm)
    yield from _choices(asked, edited, slurm=slurm)


def _by(slurm: bool, option: str) -> str:
    return f": {option}" if slurm and option else ""


def _shape(job: SeenJob, system: str) -> str:
    return f"{many(job.count, a_piece(job, system))} of {amount(GPUS, job.per[GPUS])}"


def _less(asked: SeenJob, of: str, left: float, system: str) -> str:
    """Return the words for a smaller amount; memory is in MiB if it is not whole GiB."""
    piece = f" a {a_piece(asked, system)}" if asked.count > 1 else ""
    had = asked.per[of]
    if of == MEMORY and abs(left - round(left)) > 1e-9:
        left, had, words = left * 1024, had * 1024, f"{left * 1024:.0f} MiB of memory"
    else:
        words = amount(of, left)
    return f"{words}{piece} instead of {round(had, 6):g} ({round(had - left, 6):g} less)"


def _amounts(asked: SeenJob, edited: SeenJob, system: str) -> Iterator[Concession]:
    split = edited.count != asked.count and isclose(work(edited), work(asked))
    for of, had in asked.per.items():
        left = edited.per.get(of, 0.0)
        share = 1 - (edited.count * left / work(edited)) / (asked.count * had / work(asked))
        if of != GPUS and left < had and not (split and share < 1e-9):
            text, option = _less(asked, of, left, system), ""
            if of == MEMORY and (asked.count == 1 or asked.own_nodes):
                whole = abs(left - round(left)) < 1e-9
                option = f"--mem={left:.0f}G" if whole else f"--mem={left * 1024:.0f}M"
            text += _by(system == "slurm", option)
            yield Concession(of, HALF * max(0.0, share), text)
    for name, had in asked.licences.items():
        left = edited.licences.get(name, 0.0)
        if left < had:
            text = f"{left:g} of {name} instead of {had:g}"
            yield Concession("licences", HALF * (1 - left / had), text)


def _time(asked: SeenJob, edited: SeenJob, *, slurm: bool) -> Iterator[Concession]:
    if edited.limit_s == asked.limit_s or edited.limit_s is None:
        return
    cost, had = KINDS["first limit"], "none"
    if asked.limit_s is not None:
        cost, had = HALF * (1 - edited.limit_s / asked.limit_s), hours(asked.limit_s)
    whole, minutes = divmod(int(edited.limit_s) // 60, 60)
    by = _by(slurm, f"--time={whole}:{minutes:02}:00")
    text = f"a time limit of {hours(edited.limit_s)} instead of {had}{by}"
    yield Concession("limit", cost, text)


def _choices(asked: SeenJob, edited: SeenJob, *, slurm: bool) -> Iterator[Concession]:
    def other(field: str, text: str, option: str = "", kind: str = "") -> Iterator[Concession]:
        if getattr(asked, field) != getattr(edited, field):
            kind = kind or field
            yield Concession(kind, KINDS[kind], f"{text}{_by(slurm, option)}")

    had, own = (", ".join(each.partitions) for each in (asked, edited))
    option = f"--partition={','.join(edited.partitions)}"
    yield from other("partitions", f"partition {own} instead of {had}", option, "partition")
    models, named = ", ".join(asked.gpu_types), " or ".join(edited.gpu_types)
    yield from other("gpu_types", f"{named or 'GPUs of any model'} instead of {models}")
    yield from other("tenant", f"charged to {edited.tenant}", f"--account={edited.tenant}")
    yield from other("priority", f"in class {edited.priority}", f"--qos={edited.priority}")
    yield from other("exclusive", "nodes shared with other jobs")
    yield from other("own_nodes", "several pieces on a node allowed")
    yield from other("one_node", "its pieces on several nodes")
    yield from other("nodes", "without the names of its nodes")
    yield from other("not_nodes", "without nodes that it excludes")
    dropped = ", ".join(label for label in asked.features if label not in edited.features)
    yield from other("features", f"without the label {dropped}")
    if asked.after != edited.after or asked.blocked != edited.blocked:
        text = "after the other jobs have ended, however they end"
        yield Concession("after", KINDS["after"], f"{text}{_by(slurm, '--dependency=afterany')}")
    if asked.slices != edited.slices and asked.slices is not None:
        if edited.slices is None:
            yield Concession("slices", KINDS["no slices"], "nodes anywhere, not in slices")
        elif edited.slices.nodes != asked.slices.nodes:
            text = f"slices of {edited.slices.nodes} nodes instead of {asked.slices.nodes}"
            option = f"--segment={edited.slices.nodes}"
            cost = KINDS["slices"] * log2((asked.slices.nodes or 1) / (edited.slices.nodes or 1))
            yield Concession("slices", cost, f"{text}{_by(slurm, option)}")
        else:
            yield Concession("slices", KINDS["slices"], "several slices in one rack allowed")
