"""The packaged instances: their index and access by name."""

import os
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from ronda.instances.arguments import checked
from ronda.instances.base import Count, Index, Name, Record
from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.files import json as files
from ronda.instances.files import storage
from ronda.instances.instance import Instance
from ronda.instances.round import Round
from ronda.instances.rules.validate import Document

Kind = Literal["instance", "round", "demand"]
"""The kinds of packaged objects."""


class Entry(Record, frozen=True, kw_only=True):
    """The entry of one packaged object, with its `file` in the package's data folder.

    For a demand series `jobs` and `gpus` are 0.
    """

    name: Name
    kind: Kind
    file: Name
    jobs: Index
    gpus: Index
    nodes: Count
    description: str
    source: str
    licence: str
    citation: str = ""
    reference: dict[str, dict[str, float]] = {}


class Listing(Record, frozen=True, kw_only=True):
    """The contents of ``index.json``: all entries by name."""

    entries: tuple[Entry, ...]


@lru_cache(maxsize=1)
def entries() -> tuple[Entry, ...]:
    """Return the entries of all packaged objects by name, opening only the index."""
    return msgspec.json.decode(storage.packaged("index.json"), type=Listing).entries


def document(name_or_path: str | Path) -> Document:
    """Return the packaged object with the given name, or the object in a file.

    A word that is not a name in `entries` is taken as a path. ``./name`` refers to a file that has
    the name of a packaged object.

    Raises
    ------
    InputError
        If there is neither such a name nor such a file.
    """
    known = {entry.name: entry for entry in entries()}
    entry = known.get(str(name_or_path))
    if entry is not None:
        return files.decode(storage.packaged(entry.file), entry.file)
    if not os.path.lexists(name_or_path):  # reading reports a link in a loop
        raise storage.neither("instance", str(name_or_path), known, "ronda instances list")
    return files.read(name_or_path)


@checked
def load(name_or_path: str | Path) -> Instance | Round:
    """Return a packaged instance or round by name, or one in a file; see `document`.

    Raises
    ------
    InputError
        If there is neither such a name nor such a file, or it holds something else.
    """
    found = document(name_or_path)
    if not isinstance(found, Instance | Round):
        kind = f"a {type(found).__name__.lower()}"
        if isinstance(found, Demand):
            kind = "a demand series, which has no jobs"
        raise InputError(str(name_or_path), kind, "an instance or a round")
    return found


def load_demand(name_or_path: str | Path) -> Demand:
    """Return a packaged demand series by name, or one in a file; see `document`.

    Raises
    ------
    InputError
        If there is neither such a name nor such a file, or it holds something else.
    """
    found = document(name_or_path)
    if not isinstance(found, Demand):
        kind = type(found).__name__.lower()
        raise InputError(str(name_or_path), f"a file of the kind {kind}", "a demand series")
    return found
