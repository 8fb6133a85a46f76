"""Files of predictors: `ronda predict train` writes them, a run reads them."""

from pathlib import Path

from msgspec.structs import replace

from ronda.instances.errors import InputError
from ronda.instances.files import canonical, storage
from ronda.instances.files import json as files
from ronda.instances.files.seal import checksum
from ronda.instances.models.fits import Predictor


def write_predictor(predictor: Predictor, path: str | Path) -> None:
    """Write a predictor with its checksum, whole or not at all."""
    pack = storage.packer(Path(path))
    storage.write_bytes(Path(path), pack(canonical.encode(sealed(predictor)) + b"\n"))


def read_predictor(path: str | Path) -> Predictor:
    """Read a predictor, plain or compressed, and refuse one with a wrong checksum."""
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
