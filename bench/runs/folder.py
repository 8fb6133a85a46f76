"""Output folders: one command claims each for one purpose, and never mixes in other content.

Instances and rounds are stored next to the results of their runs, so that a folder is complete.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ronda.bench.runs.specs import Spec
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint, write
from ronda.instances.files.packaged import entries, load
from ronda.instances.files.seal import BrokenSealError, seal, unseal
from ronda.instances.files.storage import file_name, label, read_bytes, write_bytes
from ronda.instances.instance import Instance
from ronda.instances.round import Round

MARK = "ronda.json"
"""The file that states the purpose of a folder."""

LOCK = ".lock"


Record = TypeVar("Record")


class _Mark(msgspec.Struct):
    """The content of the file `MARK`."""

    format: str
    about: dict[str, Any]


@contextmanager
def claim(path: Path, kind: str, about: dict[str, Any] | None = None) -> Iterator[bool]:
    """Hold an output folder, which is made if it is missing; yield whether it was used before.

    `kind` is its purpose, such as ``"comparison"``. `about` holds plain JSON values that must be
    the same when the folder is used again. Raise InputError if the folder holds other files or
    other results, cannot be written, or is held by another process.
    """
    mark = {"format": f"ronda/{kind}/1", "about": about or {}}
    if path.exists() and not path.is_dir():
        raise InputError(label(path), "a file", "a folder")
    is_used(path, mark)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(
            label(path), (error.strerror or str(error)).lower(), "a folder that can be written"
        ) from None
    try:
        _lock(lock, path)
        used = is_used(path, mark)  # check again: another command may have been first
        if not used:
            write_bytes(path / MARK, msgspec.json.format(msgspec.json.encode(mark)) + b"\n")
        yield used
    finally:
        os.close(lock)


def is_used(path: Path, mark: dict[str, Any]) -> bool:
    """Return whether a folder was used for the same purpose; refuse a folder with other content."""
    old = read_mark(path)
    if old is not None:
        _refuse_other(path, old, msgspec.json.decode(msgspec.json.encode(mark)))
    elif path.is_dir() and set(os.listdir(path)) - {LOCK}:
        found = "a folder with files that ronda did not make"
        raise InputError(label(path), found, "a new or empty folder")
    return old is not None


def _lock(lock: int, path: Path) -> None:
    """Lock an open file; refuse the folder if another process holds the lock."""
    # A process that a killed command was about to start also holds the lock, until it runs.
    until_s = time.monotonic() + 1.0
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until_s:
                found = "another ronda process at work in it"
                raise InputError(label(path), found, "another folder, or patience") from None
            time.sleep(0.05)


def store_record(path: Path, fields: dict[str, Any]) -> None:
    """Write at least one field as a JSON object with a checksum."""
    write_bytes(path, seal(msgspec.json.format(msgspec.json.encode(fields))) + b"\n")


def load_record(path: Path, kind: type[Record]) -> Record:
    """Read a file that `store_record` wrote; refuse one that is truncated or was changed."""
    try:
        return msgspec.json.decode(unseal(read_bytes(path).rstrip(b"\n")), type=kind)
    except (msgspec.DecodeError, BrokenSealError):
        found = "a file that is cut off or was changed"
        expected = "what ronda wrote; delete it, and the same command makes it again"
        raise InputError(label(path), found, expected) from None


def read_mark(path: Path) -> dict[str, Any] | None:
    """Return the ``format`` and the ``about`` of one of ronda's folders; None for other folders."""
    try:
        data = (path / MARK).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        found = (error.strerror or str(error)).lower()
        raise InputError(label(path / MARK), found, "a file that can be read") from None
    try:
        mark = msgspec.json.decode(data, type=_Mark)
        return {"format": mark.format, "about": mark.about}
    except msgspec.DecodeError:
        found = "a damaged file"
        raise InputError(label(path / MARK), found, "what ronda wrote, or another folder") from None


def _refuse_other(path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    if old.get("format") != new["format"]:
        raise InputError(
            label(path), f"a folder of {old.get('format')!r}", f"one of {new['format']!r}, or none"
        )
    before = old.get("about", {})
    for key in {**before, **new["about"]}:
        found, value = before.get(key), new["about"].get(key)
        if found != value:
            raise InputError(
                label(path),
                f"the results of {key} {found!r}",
                f"those of {key} {value!r}, or another folder",
            )


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
