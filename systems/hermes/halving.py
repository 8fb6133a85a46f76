"""Successive halving: the rungs at which trials are compared, and those that go on there."""

from collections.abc import Mapping


def rungs(first: int, eta: int, reports: int) -> tuple[int, ...]:
    """Return the reports at which trials are compared: first x eta^i, below the last one."""
    found = []
    while first < reports:
        found.append(first)
        first *= eta
    return tuple(found)


def best(losses: Mapping[str, float], eta: int, least: int = 0) -> list[str]:
    """Return the names of the best ``floor(n / eta)`` of n losses, `least` at least; ties by name.

    The best comes first.
    """
    ordered = sorted(losses, key=lambda name: (losses[name], name))
    return ordered[: max(least, len(ordered) // eta)]
