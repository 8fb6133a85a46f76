"""The jobs that Kueue evicts for another: classical preemption, and fair sharing.

Both follow Kueue's pkg/scheduler/preemption (preemption.go, classical, fairsharing).
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

from ronda.solvers.policies.production.quota_tree import EXACT, Amounts, Branch
from ronda.solvers.policies.production.workloads import Workload, fewest

Reclaim = Literal["never", "lower", "any"]
Within = Literal["never", "lower", "lower-or-newer"]


class VictimSearch:
    """The search for victims of a head with an option.

    Parameters
    ----------
    head, need
        The job that is to be admitted, and what it would hold.
    among
        The admitted jobs that may be stopped.
    has_nodes
        Function that returns whether there are nodes for the head if the given jobs stopped.
    within, reclaim
        The victims in its own queue and in others, by priority.

    Attributes
    ----------
    scarce
        The resources for which others must go: those without quota left, else all.
    own, other
        The jobs of its own queue, and of the others of its tree, that may go, in order: priority
        ascending, the latest admission first.
    """

    def __init__(
        self,
        head: Workload,
        need: Amounts,
        among: Sequence[Workload],
        has_nodes: Callable[[Sequence[Workload]], bool],
        within: Within,
        reclaim: Reclaim,
    ) -> None:
        self.head, self.leaf, self.need, self._has_nodes = head, head.leaf, need, has_nodes
        counted = self.leaf.counted(need)
        short = {of for of in counted if need[of] > self.leaf.free(of) + EXACT}
        self.scarce = short or counted or set(need)
        self.own, self.other = list[Workload](), list[Workload]()
        for each in sorted(among, key=lambda w: (w.rank, -w.since_s, w.id)):
            if not any(each.use.get(of, 0.0) > 0 for of in self.scarce):
                continue
            lower = each.rank < head.rank
            if each.leaf is head.leaf:
                newer = each.rank == head.rank and each.order > head.order
                if within != "never" and (lower or (newer and within != "lower")):
                    self.own.append(each)
            elif reclaim == "any" or (lower and reclaim == "lower"):
                _, theirs = self.leaf.below_meeting(each.leaf)
                one_tree = each.leaf.path[-1] is self.leaf.path[-1]
                if one_tree and all(branch.above_quota(self.scarce) for branch in theirs):
                    self.other.append(each)

    def nominal(self, more: Amounts) -> bool:
        """Return whether the head's queue is within its own quota of what is scarce, with more."""
        leaf = self.leaf
        return all(leaf.use[of] + more[of] <= leaf.nominal(of) for of in leaf.counted(self.scarce))

    def fits(self, victims: Sequence[Workload], *, borrowing: bool = True) -> bool:
        """Return whether the head fits beside the jobs that the tree still counts."""
        if not borrowing and self.leaf.above_quota(self.need, self.need):
            return False
        return self.leaf.fits(self.need) and self._has_nodes(victims)


def classical(search: VictimSearch, borrow_below: float | None) -> list[Workload]:
    """Return the victims of classical preemption, or nobody.

    Jobs of other queues below a rank, if one is given, may go although the head borrows. Jobs that
    hold what is nearer to the head's quota than to theirs may go in any case: those outside the
    least branch whose quota holds the head.
    """
    leaf, forbidden = search.leaf, borrow_below is None
    inside = set(leaf.reach(search.need).leaves)
    nearer = [each for each in search.other if each.leaf not in inside]
    farther = [each for each in search.other if each.leaf in inside]
    tries = [False, True] if forbidden and not nearer else [True, False]
    if not search.other or (forbidden and not search.nominal(dict.fromkeys(search.scarce, EXACT))):
        tries = [True]

    def in_turn(borrowing: bool) -> Iterator[Workload]:
        for each in [*nearer, *farther, *search.own]:
            low = borrow_below is not None and each.rank < borrow_below
            may = not borrowing or each.leaf not in inside or low
            if each.leaf is leaf or (may and each.leaf.above_quota(search.scarce)):
                yield each

    found = (fewest(in_turn(each), partial(search.fits, borrowing=each)) for each in tries)
    return next(filter(None, found), [])


def fair(search: VictimSearch) -> list[Workload]:
    """Return the victims of preemption under fair sharing, or nobody.

    The queue of the highest share gives first. A job of another queue goes if the head's new share
    is at most the share of its queue without it (S2-a). Of those left over, the first of each queue
    goes if the head's share is below the share of its queue before (S2-b). Shares are compared
    where the paths of both queues meet. A head within its own nominal quota needs no test.
    """
    leaf, need = search.leaf, search.need
    nominal = search.nominal({of: need[of] - EXACT for of in need})

    def fits(victims: Sequence[Workload]) -> bool:
        leaf.remove(need)
        found = search.fits(victims)
        leaf.add(need)
        return found

    leaf.add(need)  # shares include it
    found = fewest(_by_share(search, nominal=nominal), fits)
    leaf.remove(need)
    return found


def _by_share(search: VictimSearch, *, nominal: bool) -> Iterator[Workload]:
    """Yield victims by both tests, while the caller removes each from the tree."""
    leaf, root = search.leaf, search.leaf.path[-1]
    queues, later = defaultdict[Branch, list[Workload]](list), dict[Branch, list[Workload]]()
    for each in (*search.other, *search.own):
        queues[each.leaf].append(each)
    while (giver := _highest(root, leaf, queues)) is not None:
        if giver is leaf:
            yield queues[leaf].pop(0)
            continue
        (*_, ours), (*_, theirs) = leaf.below_meeting(giver)
        share = ours.share()
        while queues[giver]:
            each = queues[giver].pop(0)
            giver.remove(each.use)
            without = theirs.share()
            giver.add(each.use)
            if nominal or share <= without:
                yield each
                break
            later.setdefault(giver, []).append(each)
    while (giver := _highest(root, leaf, later)) is not None:
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
        share, found = child.share(), _highest(child, leaf, queues)
        if found is None or not (share or child in leaf.path):
            continue
        if best is None or (share, bool(child.children)) >= best[:2]:
            best = share, bool(child.children), found
    return None if best is None else best[2]
