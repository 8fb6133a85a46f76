"""Files of fitted profiles: parameters of speed and power with their errors.

``fitted()`` returns the packaged fits, which ``python -m tools.profiles`` makes from public
measurements. ``ronda profile fit`` writes the same kind of record.
"""

import os
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ronda.instances.errors import InputError
from ronda.instances.files import canonical, storage
from ronda.instances.files import json as files
from ronda.instances.files.seal import checksum
from ronda.instances.models.fits import Fit, Fits, Predictor
from ronda.instances.profile import Profile


def fitted(word: str = "") -> tuple[Fit, ...]:
    """Return the packaged fits whose names contain a word, ordered by name."""
    return tuple(fit for fit in _packaged() if word in fit.name)


@lru_cache(maxsize=1)
def _packaged() -> tuple[Fit, ...]:
    return decode_fits(storage.packaged("profiles.json"), "profiles.json").fits


def find_fits(name_or_path: str | Path) -> tuple[Fit, ...]:
    """Return the packaged fit with the given name, or the fits in a file."""
    known = {fit.name: fit for fit in fitted()}
    if str(name_or_path) in known:
        return (known[str(name_or_path)],)
    if not os.path.lexists(name_or_path):
        raise storage.neither("profile", str(name_or_path), known, "ronda profile list")
    return read_fits(name_or_path).fits


def read_fits(path: str | Path) -> Fits:
    """Read a file of fits, plain or compressed."""
    return decode_fits(storage.read_bytes(Path(path)), storage.label(path))


def decode_fits(data: bytes, place: str) -> Fits:
    """Read fits from plain or compressed bytes, which errors call `place`."""
    found = files.parse(storage.unpack(data, place), place, {"ronda/fits/1": Fits})
    names = [fit.name for fit in found.fits]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(place, f"the name {twice[0]!r} twice", "each name once")
    return found


def write_fits(fits: Fits, path: str | Path) -> None:
    """Write fits in the way that `ronda.instances.files.json.write` writes instances."""
    pack = storage.packer(Path(path))
    text = msgspec.json.format(canonical.encode(fits), indent=1) + b"\n"
    storage.write_bytes(Path(path), pack(text))


def profile(throughput: Fit, power: Fit | None = None, *, name: str | None = None) -> Profile:
    """Return a profile for an instance from a fit of speed and, if given, one of power.

    Local batches above the largest measured one are not allowed, as they may not fit into memory.
    The caller must ensure that both fits are for one application on one GPU type. The default name
    is that of the application. A fit of the wrong kind is refused.
    """
    if throughput.throughput is None or (power is not None and power.power is None):
        wrong = throughput if power is None or throughput.throughput is None else power
        found = f"{wrong.name!r}, a fit of {wrong.kind}"
        raise InputError("profile", found, "throughput first, then power")
    watts = {} if power is None or power.power is None else {throughput.gpu_type: power.power}
    batches = throughput.measured.get("local_batch")
    return Profile(
        name=name or throughput.application,
        throughput={throughput.gpu_type: throughput.throughput},
        power=watts,
        max_local_batch=None if batches is None else batches[1],
        source="; ".join(fit.source for fit in (throughput, power) if fit and fit.source),
    )


def write_predictor(predictor: Predictor, path: str | Path) -> None:
    """Write a predictor with its checksum in one atomic step."""
    pack = storage.packer(Path(path))
    storage.write_bytes(Path(path), pack(canonical.encode(sealed(predictor)) + b"\n"))


def read_predictor(path: str | Path) -> Predictor:
    """Read a plain or compressed predictor, and refuse it if its checksum is wrong."""
    place = storage.label(path)
    data = storage.unpack(storage.read_bytes(Path(path)), place)
    found = files.parse(data, place, {"ronda/predictor/1": Predictor})
    if found.checksum != sealed(found).checksum:
        raise InputError(place, f"the checksum {found.checksum!r}", "that of its text: train again")
    return found


def sealed(predictor: Predictor) -> Predictor:
    """Return the predictor with its checksum."""
    text = canonical.encode(replace(predictor, checksum=""), order="sorted")
    return replace(predictor, checksum=checksum(text))
