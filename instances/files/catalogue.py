"""The packaged instances: which there are, and how to get one by its name."""

import os
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from ronda.instances.base import Count, Index, Name, Record
from ronda.instances.errors import InputError
from ronda.instances.files import json as files
from ronda.instances.files import storage
from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.validate import Document
from ronda.instances.schedule import Schedule


class Entry(Record, frozen=True, kw_only=True):
    """One packaged instance or round: `file` in the package's data folder, and words about it."""

    name: Name
    kind: Literal["instance", "round"]
    file: Name
    jobs: Index
    gpus: Count
    nodes: Count
    description: str
    source: str
    licence: str
    citation: str = ""
    reference: dict[str, dict[str, float]] = {}


class Listing(Record, frozen=True, kw_only=True):
    """The file ``index.json``: all entries, by name."""

    entries: tuple[Entry, ...]


@lru_cache(maxsize=1)
def entries() -> tuple[Entry, ...]:
    """Return all packaged instances and rounds, ordered by name; no instance file is opened."""
    return msgspec.json.decode(storage.packaged("index.json"), type=Listing).entries


def load(name_or_path: str | Path) -> Instance | Round:
    """Return a packaged instance or round by its name, or that of a file.

    What is no name of `entries` is a path; for a file that is called like a packaged instance write
    ``./name``.

    Raises
    ------
    InputError
        If there is neither such a name nor such a file, or the file holds something else.
    """
    known = {entry.name: entry for entry in entries()}
    entry = known.get(str(name_or_path))
    if entry is not None:
        return _wanted(files.decode(storage.packaged(entry.file), entry.file), entry.file)
    if not os.path.lexists(name_or_path):  # a link in a loop is told by reading it
        raise storage.neither("instance", str(name_or_path), known, "ronda instances list")
    return _wanted(files.read(name_or_path), str(name_or_path))


def _wanted(found: Document, place: str) -> Instance | Round:
    """Refuse what is neither an instance nor a round."""
    if isinstance(found, Plan | Schedule):
        raise InputError(place, f"a {type(found).__name__.lower()}", "an instance or a round")
    return found
