"""A queue of trials for every GPU, as Hermes's global scheduler fills them."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from ronda.formulations.sweeps.trials import Trial


def queues(
    trials: Iterable[Trial],
    slots: Sequence[int],
    able: Callable[[Trial, int], bool],
    before: Mapping[str, int],
) -> dict[str, int]:
    """Return the queue of each trial.

    A trial that runs is in a queue of its node, and any other stays where it was. A new one goes to
    the queue with fewest trials, of those that it can use; one that can use none is left out.

    Parameters
    ----------
    slots
        (Q,) the node of each queue: as often as it has GPUs; -1 for those out of service.
    able
        Whether a trial may run on a node.
    before
        The queue of each trial until now.
    """
    found: dict[str, int] = {}
    length = [0] * len(slots)
    busy = set[int]()

    def join(trial: Trial, queue: int) -> None:
        found[trial.name] = queue
        length[queue] += 1

    new = []
    for trial in trials:
        queue = before.get(trial.name, -1)
        held = trial.state.allocation
        if held is not None:
            node = held.placement[0][0]
            if queue in busy or queue >= len(slots) or queue < 0 or slots[queue] != node:
                queue = next(q for q, n in enumerate(slots) if n == node and q not in busy)
            busy.add(queue)
            join(trial, queue)
        elif 0 <= queue < len(slots) and slots[queue] >= 0:
            join(trial, queue)
        else:
            new.append(trial)
    for trial in new:
        mine = [q for q, node in enumerate(slots) if node >= 0 and able(trial, node)]
        if mine:
            join(trial, min(mine, key=length.__getitem__))
    return found
