"""What a recipe makes: an object to package, and its line in the index."""

from dataclasses import dataclass

from ronda.instances.demand import Demand
from ronda.instances.files.packaged import Entry, Kind
from ronda.instances.instance import Instance
from ronda.instances.round import Round

_KINDS: dict[type, Kind] = {Instance: "instance", Round: "round", Demand: "demand"}


@dataclass(frozen=True, kw_only=True)
class Item:
    """An object to package; a round has no fields for words about it, the others have their own."""

    obj: Instance | Round | Demand
    description: str = ""
    source: str = ""
    licence: str = ""
    citation: str = ""
    reference: dict[str, dict[str, float]] | None = None

    @property
    def entry(self) -> Entry:
        """The line in the index."""
        obj = self.obj
        words: Instance | Demand | Item = self if isinstance(obj, Round) else obj
        if isinstance(obj, Demand):
            jobs, gpus, nodes = 0, 0, max(obj.total)
        else:
            jobs, gpus = len(obj.jobs), obj.cluster.gpus
            nodes = sum(group.count for group in obj.cluster.node_groups)
        return Entry(
            name=obj.name,
            kind=_KINDS[type(obj)],
            file=f"{obj.name}.json.zst",
            jobs=jobs,
            gpus=gpus,
            nodes=nodes,
            description=words.description.partition("\n")[0],
            source=words.source,
            licence=words.licence,
            citation=words.citation,
            reference=words.reference or {},
        )
