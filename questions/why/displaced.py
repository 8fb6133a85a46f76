"""The running jobs that a scheduler may take room from for a waiting job, and has not."""

from collections import defaultdict
from collections.abc import Callable

from ronda.formulations.tenants.sharers import resources
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import CPU, SeenJob, Snapshot
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.limits import amount_of
from ronda.questions.why.reason import Dominant
from ronda.questions.why.words import amount, many

PREEMPTING = {"kueue", "kai", "kubernetes", "ronda"}
"""The systems that stop jobs for others of higher priority, or within their guarantee."""


def displaced(waiting: WaitingJob) -> Dominant | None:
    """Return whose stop the site's own rules would allow and let a job start now, or None.

    The reason has the name ``quota`` (they hold what is guaranteed to others) or ``priority``
    (theirs is lower), and no proof.
    """
    snapshot, job = waiting.outlook.snapshot, waiting.job
    if snapshot.system not in PREEMPTING:
        return None
    for by, mine in (("quota", _borrowed(waiting)), ("priority", _lower(snapshot, job))):
        gone = [one for one in waiting.outlook.running if one.preemptible and mine(one)]
        if gone and waiting.without({one.id for one in gone}).start() <= snapshot.now_s:
            return Dominant("order", by, never=False, text=_told(waiting, by, gone), proof=())
    return None


def _lower(snapshot: Snapshot, job: SeenJob) -> Callable[[SeenJob], bool]:
    rank = {each.name: float(each.rank) for each in snapshot.classes}

    def of(one: SeenJob) -> float:
        return rank.get(one.priority or "", one.rank or 0.0)

    return lambda one: of(one) < of(job)


def _borrowed(waiting: WaitingJob) -> Callable[[SeenJob], bool]:
    """Return the test of whether a job's tenant holds more of something than is guaranteed to it.

    It is never true if the waiting job would not stay within the guarantee of its own tenant.
    """
    held, owed = _holdings(waiting)
    job, asks = waiting.job, waiting.charged(waiting.usable())
    own = {of: most for (tenant, of), most in owed.items() if tenant == job.tenant}
    within = bool(own) and all(
        held[job.tenant, of] + amount_of(of, asks, None) <= most + 1e-9 for of, most in own.items()
    )
    over = {tenant for (tenant, of), most in owed.items() if held[tenant, of] > most + 1e-9}
    return lambda one: within and one.tenant in over and one.tenant != job.tenant


Held = defaultdict[tuple[str | None, str], float]
"""Amounts by tenant and resource."""


def _holdings(waiting: WaitingJob) -> tuple[Held, Held]:
    """Return what each leaf holds of each resource, and what is guaranteed to it."""
    limits, held, owed = waiting.outlook.limits, Held(float), Held(float)
    for of in resources(limits.site):
        for one, amount_ in zip(waiting.outlook.running, limits.held(of).tolist(), strict=True):
            held[one.tenant, of] += amount_
        for leaf in limits.tree.leaf:
            most = limits.tree.quota(leaf, of).guaranteed
            if most is not None:
                owed[leaf, of] = most
    return held, owed


def _told(waiting: WaitingJob, by: str, gone: list[SeenJob]) -> str:
    if by == "priority":
        run, them = ("runs", "it") if len(gone) == 1 else ("run", "them")
        jobs = f"{many(len(gone), 'job')} of lower priority {run}"
        return f"{jobs}, without which it would start now; the scheduler has not stopped {them}."
    held, owed = _holdings(waiting)
    of = GPUS if any(of == GPUS for _, of in owed) else CPU
    over = sorted({one.tenant for one in gone if one.tenant is not None})
    names = ", ".join(
        f"{tenant} holds {amount(of, held[tenant, of])} of {owed.get((tenant, of), 0.0):g}"
        for tenant in over[:3]
    )
    own = waiting.job.tenant
    noun = "tenant" if waiting.outlook.snapshot.system == "ronda" else "queue"
    return (
        f"Its {noun} {own} holds {held[own, of]:g} of the {amount(of, owed.get((own, of), 0.0))} "
        f"that are guaranteed to it, and {names}: taken back, it would start now, but the "
        "scheduler has not."
    )
