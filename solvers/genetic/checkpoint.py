"""A search in a file, from which it goes on exactly as if it had not been interrupted."""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ronda.formulations.genes.genome import Genes
from ronda.instances.errors import InputError
from ronda.instances.files.storage import label, load, packer, store, unpack
from ronda.solvers.genetic.island import Island, Settings
from ronda.solvers.versions import versions

FORMAT = "ronda/evolution/1"
EVERY = 10  # generations between two savings

Record = dict[str, int | float]


class IslandState(msgspec.Struct, frozen=True):
    """What the rest of an island's evolution depends on."""

    population: list[list[int]]
    worth: list[float]
    generator: dict[str, Any]
    credit: list[list[float]]
    evaluations: int
    records: list[Record]

    @classmethod
    def of(cls, island: Island) -> "IslandState":
        """Return the state of an island."""
        return cls(
            population=island.population.tolist(),
            worth=island.worth.tolist(),
            generator=dict(island.rng.bit_generator.state),
            credit=[island.mating.credit.tolist(), island.mutating.credit.tolist()],
            evaluations=island.evaluations,
            records=list(island.records),
        )

    def restore(self, island: Island) -> None:
        """Put a new island of the same genes and settings into this state."""
        island.population = np.array(self.population, dtype=np.int64)
        island.worth = np.array(self.worth)
        island.rng.bit_generator.state = self.generator
        island.mating.credit, island.mutating.credit = (np.array(c) for c in self.credit)
        island.evaluations, island.records = self.evaluations, list(self.records)


class Saved(msgspec.Struct, frozen=True):
    """All islands, and what is known of them together (see `ronda.solvers.genetic.engine`)."""

    islands: list[IslandState]
    records: list[Record]
    incumbents: list[tuple[float, float]]
    stagnant: int
    elapsed_s: float


class _File(msgspec.Struct, frozen=True):
    """What stands in the file: whose search it is, then the search."""

    format: str
    versions: dict[str, str]
    instance: str
    jobs: list[str]
    fingerprint: str
    settings: dict[str, int | float | bool]
    seed: int
    search: Saved


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a search is kept, and of what round it is.

    Attributes
    ----------
    path
        The file; ``.json``, ``.json.gz`` or ``.json.zst``.
    instance
        Name of the round, for errors.
    jobs
        Ids of the jobs that have genes.
    every
        Generations between two savings; the last generation is saved in any case.
    """

    path: Path
    instance: str
    jobs: tuple[str, ...]
    every: int = EVERY

    def due(self, generations: int, steps: int) -> bool:
        """Tell whether a multiple of `every` lies within the last `steps` generations."""
        return generations // self.every > (generations - steps) // self.every

    def save(self, search: Saved, genes: Genes, settings: Settings, seed: int) -> None:
        """Write the file, whole or not at all."""
        file = self._file(search, genes, settings, seed)
        store(self.path, packer(self.path)(msgspec.json.encode(file)))

    def load(self, genes: Genes, settings: Settings, seed: int) -> Saved | None:
        """Return the search in the file, None if there is no file.

        Raises
        ------
        InputError
            If the file is no checkpoint, or one of another version, round, jobs, configuration or
            seed: it names what was found and what was expected.
        """
        packer(self.path)  # refuses a suffix that could not be written later
        if not self.path.exists():
            return None
        place = f"checkpoint {label(self.path)}"
        try:
            data = unpack(load(self.path), place)
            found = msgspec.json.decode(data, type=_File)
        except msgspec.MsgspecError as error:
            raise InputError(place, f"no checkpoint ({error})", f"a file of {FORMAT}") from None
        empty = Saved(islands=[], records=[], incumbents=[], stagnant=0, elapsed_s=0.0)
        self._compare(place, found, self._file(empty, genes, settings, seed))
        return found.search

    def _file(self, search: Saved, genes: Genes, settings: Settings, seed: int) -> _File:
        packages = {name: versions()[name] for name in ("ronda", "numpy", "deap")}
        return _File(
            format=FORMAT,
            versions=packages,
            instance=self.instance,
            jobs=list(self.jobs),
            fingerprint=fingerprint(genes),
            settings=asdict(settings),
            seed=seed,
            search=search,
        )

    def _compare(self, place: str, found: _File, own: _File) -> None:
        """Refuse a checkpoint that is not of this very search."""
        if found.format != own.format:
            raise InputError(place, f"format {found.format!r}", repr(own.format))
        pairs: list[tuple[str, Any, Any]] = [
            (f"{name} version", found.versions.get(name), version)
            for name, version in own.versions.items()
        ]
        pairs.append(("round", found.instance, own.instance))
        for what, theirs, ours in pairs:
            if theirs != ours:
                raise InputError(place, f"{what} {theirs}", f"{what} {ours}")
        gone = [job for job in found.jobs if job not in set(own.jobs)]
        if gone:
            expected = "jobs that are live and have a choice"
            raise InputError(place, f"a genome that names job {gone[0]!r}", expected)
        pairs = [(name, found.settings.get(name), value) for name, value in own.settings.items()]
        pairs += [("seed", found.seed, own.seed)]
        pairs += [("options with fingerprint", found.fingerprint, own.fingerprint)]
        for what, theirs, ours in pairs:
            if theirs != ours:
                raise InputError(place, f"{what} {theirs}", f"{what} {ours}")


def fingerprint(genes: Genes) -> str:
    """Return 16 hexadecimal digits that tell the genes of one problem from those of another."""
    digest = hashlib.sha256()
    for array in (
        genes.row,
        genes.value,
        genes.demand,
        genes.prices,
        genes.limit,
        genes.first,
        genes.column,
        genes.fixed,
        genes.held,
        genes.group,
        *genes.step_w,
        *(pool.loss for pool in (genes.moving.pools if genes.moving else ())),
    ):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
