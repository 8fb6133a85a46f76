"""Instances and rounds stored next to the results of their runs, so that a folder is complete."""

from pathlib import Path

from ronda.bench.runs.specs import Spec
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint, write
from ronda.instances.files.packaged import entries, load
from ronda.instances.files.storage import file_name
from ronda.instances.instance import Instance
from ronda.instances.round import Round


def kept_at(folder: Path, name: str, checksum: str) -> Path:
    """Return the path at which a folder of results keeps an instance or a round."""
    return folder / "instances" / f"{file_name(name)}-{checksum}.json.zst"


def keep(folder: Path, source: str, found: Instance | Round) -> None:
    """Write an instance or a round next to its results, unless its source is packaged."""
    if source not in {entry.name for entry in entries()}:
        write_kept(folder, found)


def write_kept(folder: Path, found: Instance | Round) -> Path:
    """Write an instance or a round next to results, unless it is already there; return its path."""
    path = kept_at(folder, found.name, fingerprint(found))
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(found, path)
    return path


def kept(folder: Path, spec: Spec) -> Instance | Round | None:
    """Return the instance of a run with its variant applied, or its round; None if it is missing.

    It is available if it is packaged or was kept.
    """
    files = kept_at(folder, spec.instance, "*")
    sources: list[str | Path] = [e.name for e in entries() if e.name == spec.instance]
    for source in (*sources, *sorted(files.parent.glob(files.name))):
        try:
            found = load(source)
            made = spec.variant.apply(found) if isinstance(found, Instance) else found
        except InputError:  # damaged, or the variant does not fit it any more
            continue
        if fingerprint(made) == spec.fingerprint:
            return made
    return None
