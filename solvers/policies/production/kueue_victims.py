"""The jobs that Kueue evicts for another: classical preemption, and fair sharing.

Both follow Kueue's pkg/scheduler/preemption (preemption.go, classical, fairsharing).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from ronda.solvers.policies.production.quota_tree import EXACT, Branch
from ronda.solvers.policies.production.resources import Amounts
from ronda.solvers.policies.production.workloads import Workload, fewest

Reclaim = Literal["never", "lower", "any"]
Within = Literal["never", "lower", "lower-or-newer"]


@dataclass(frozen=True)
class VictimSearch:
    """The search for victims of a head with an option.

    Attributes
    ----------
    head, need
        The job that is to be admitted, and what it would hold.
    others
        The admitted jobs that may be stopped.
    has_nodes
        Function that returns whether there are nodes for the head if the given jobs stopped.
    within, reclaim
        The victims in its own queue and in others, by priority.
    borrow_below
        Rank below which jobs of other queues may go although the head borrows; None for no job.
    """

    head: Workload
    need: Amounts
    others: Sequence[Workload]
    has_nodes: Callable[[Sequence[Workload]], bool]
    within: Within
    reclaim: Reclaim
    borrow_below: float | None

    @property
    def scarce(self) -> set[str]:
        """The resources for which others must go: those without quota left, else all."""
        leaf = self.head.leaf
        counted = leaf.kinds.keys() & self.need.keys() or self.need.keys()
        short = {
            of
            for of in leaf.kinds.keys() & self.need.keys()
            if self.need[of] > leaf.free(of) + EXACT
        }
        return short or set(counted)

    def over_quota(self, each: Workload) -> bool:
        """Return whether a job's queue, and all above it below the meeting, exceed their quotas."""
        _, theirs = self.head.leaf.below_meeting(each.leaf)
        return all(branch.above_quota(self.scarce) for branch in theirs)

    def candidates(self) -> tuple[list[Workload], list[Workload]]:
        """Return the jobs of its own queue, and of the others of its tree, that may go."""
        head, scarce = self.head, self.scarce
        own, other = [], []
        for each in self.others:
            if not any(each.use.get(of, 0.0) > 0 for of in scarce):
                continue
            lower = each.rank < head.rank
            if each.leaf is head.leaf:
                newer = each.rank == head.rank and each.order > head.order
                if self.within != "never" and (lower or (newer and self.within != "lower")):
                    own.append(each)
                continue
            may = self.reclaim == "any" or (lower and self.reclaim == "lower")
            if may and each.leaf.root is head.leaf.root and self.over_quota(each):
                other.append(each)
        return sorted(own, key=lambda w: w.last_in), sorted(other, key=lambda w: w.last_in)

    def fits(self, victims: Sequence[Workload], *, borrowing: bool = True) -> bool:
        """Return whether the head fits beside the jobs that the tree still counts."""
        leaf = self.head.leaf
        if not borrowing and leaf.above_quota(self.need.keys(), self.need):
            return False
        return leaf.fits(self.need) and self.has_nodes(victims)


def classical(search: VictimSearch) -> list[Workload]:
    """Return the victims of classical preemption, or nobody."""
    head, scarce = search.head, search.scarce
    own, other = search.candidates()
    nearer = _nearer(search, other)
    farther = [each for each in other if each not in nearer]
    leaf, forbidden = head.leaf, search.borrow_below is None
    within_nominal = all(
        leaf.use[of] < leaf.nominal(of) - EXACT for of in scarce if of in leaf.kinds
    )
    if not other or (forbidden and not within_nominal):
        tries = [True]
    else:
        tries = [False, True] if forbidden and not nearer else [True, False]

    def in_turn(borrowing: bool) -> Iterator[Workload]:
        for each in [*nearer, *farther, *own]:
            if each.leaf is not leaf:
                low = search.borrow_below is not None and each.rank < search.borrow_below
                if (borrowing and each not in nearer and not low) or not each.leaf.above_quota(
                    scarce
                ):
                    continue
            yield each

    for borrowing in tries:
        found = fewest(in_turn(borrowing), partial(search.fits, borrowing=borrowing))
        if found:
            return found
    return []


def _nearer(search: VictimSearch, other: Sequence[Workload]) -> list[Workload]:
    """Return the jobs that hold what is nearer to the head's own quota than to theirs.

    The head fits into the quota of a branch below the one where their paths meet.
    """
    left, before, found = dict(search.need), list[Branch](), list[Workload]()
    able = False
    for branch in search.head.leaf.path:
        if able:
            below = set(branch.leaves)
            found += [w for w in other if w.leaf in below and w.leaf not in before]
        before += branch.leaves
        able = able or not branch.above_quota(left.keys(), left)
        left = {of: x - branch.at_home(of) for of, x in left.items() if of in branch.kinds}
    return [each for each in other if each in found]


def fair(search: VictimSearch) -> list[Workload]:
    """Return the victims of preemption under fair sharing, or nobody.

    The queue of the highest share gives first. A job of another queue goes if the head's new share
    is at most the share of its queue without it (S2-a). Of those left over, the first of each queue
    goes if the head's share is below the share of its queue before (S2-b). Shares are compared
    where the paths of both queues meet. A head within its own nominal quota needs no test.
    """
    head, need = search.head, search.need
    own, other = search.candidates()
    leaf = head.leaf
    nominal = all(
        leaf.use[of] + need[of] <= leaf.nominal(of) + EXACT
        for of in search.scarce & leaf.kinds.keys()
    )

    def fits(victims: Sequence[Workload]) -> bool:
        leaf.remove(need)
        found = search.fits(victims)
        leaf.add(need)
        return found

    leaf.add(need)  # shares include it
    found = fewest(_by_share(leaf, own, other, nominal=nominal), fits)
    leaf.remove(need)
    return found


def _by_share(
    leaf: Branch, own: Sequence[Workload], other: Sequence[Workload], *, nominal: bool
) -> Iterator[Workload]:
    """Yield victims by both tests, while the caller removes each from the tree."""
    queues = dict[Branch, list[Workload]]()
    for each in (*other, *own):
        queues.setdefault(each.leaf, []).append(each)
    later = dict[Branch, list[Workload]]()
    while (giver := _highest(leaf.root, leaf, queues)) is not None:
        if giver is leaf:
            yield queues[leaf].pop(0)
            continue
        (*_, ours), (*_, theirs) = leaf.below_meeting(giver)
        share = ours.share()
        while queues[giver]:
            each = queues[giver].pop(0)
            if nominal or share <= theirs.share_with(giver, {of: -x for of, x in each.use.items()}):
                yield each
                break
            later.setdefault(giver, []).append(each)
    while (giver := _highest(leaf.root, leaf, later)) is not None:
        (*_, ours), (*_, theirs) = leaf.below_meeting(giver)
        first = later.pop(giver)[0]
        if ours.share() < theirs.share():
            yield first


def _highest(branch: Branch, leaf: Branch, queues: dict[Branch, list[Workload]]) -> Branch | None:
    """Return the queue with victims that is reached by the highest shares from a branch down."""
    if not branch.children:
        return branch if queues.get(branch) else None
    best: tuple[float, bool, Branch] | None = None
    for child in branch.children:
        share = child.share()
        if not share and child not in leaf.path:
            continue
        found = _highest(child, leaf, queues)
        if found is not None and (best is None or (share, bool(child.children)) >= best[:2]):
            best = share, bool(child.children), found
    return None if best is None else best[2]
