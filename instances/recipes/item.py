"""What a recipe makes: an object to package, and its line in the index."""

from dataclasses import dataclass

from ronda.instances.files.catalogue import Entry
from ronda.instances.instance import Instance
from ronda.instances.round import Round


@dataclass(frozen=True, kw_only=True)
class Item:
    """An object to package; a round has no fields for words about it, an instance has its own."""

    obj: Instance | Round
    description: str = ""
    source: str = ""
    licence: str = ""
    reference: dict[str, dict[str, float]] | None = None

    @property
    def entry(self) -> Entry:
        """The line in the index."""
        obj, whole = self.obj, isinstance(self.obj, Instance)
        words: Instance | Item = obj if isinstance(obj, Instance) else self
        return Entry(
            name=obj.name,
            kind="instance" if whole else "round",
            file=f"{obj.name}.json.zst",
            jobs=len(obj.jobs),
            gpus=obj.cluster.gpus,
            nodes=sum(group.count for group in obj.cluster.node_groups),
            description=words.description.partition("\n")[0],
            source=words.source,
            licence=words.licence,
            citation=obj.citation if isinstance(obj, Instance) else "",
            reference=words.reference or {},
        )
