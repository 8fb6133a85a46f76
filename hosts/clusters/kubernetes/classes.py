"""Priority classes of Kubernetes, and those that differ from what their name says."""

from ronda.hosts.clusters.kubernetes.objects import Objects
from ronda.instances.site import PriorityClass


class Classes:
    """The priority classes of a cluster and of its jobs.

    Jobs that name no class have the `standard` priority: that of the global default, if any.
    """

    def __init__(self, objects: Objects) -> None:
        listed = [*objects.of("WorkloadPriorityClass"), *objects.of("PriorityClass")]
        self.values = {each.name: each.whole("value") or 0 for each in reversed(listed)}
        default = (each.whole("value") for each in listed if each.flag("globalDefault"))
        self.standard = next(default, None)
        self._used = dict(self.values)

    def name(self, name: str | None, rank: float | None) -> str | None:
        """Return the class of a job of a priority; one of its own where the named class differs."""
        if rank is None or (name is None and rank == 0):
            return name
        if name is None or self._used.setdefault(name, int(rank)) != rank:
            name = f"{name or 'priority'} {rank:g}"
            self._used[name] = int(rank)
        return name

    @property
    def all(self) -> tuple[PriorityClass, ...]:
        """All classes, from the most important."""
        ranked = sorted(self._used.items(), key=lambda pair: (-pair[1], pair[0]))
        return tuple(PriorityClass(name=name, rank=rank) for name, rank in ranked)
