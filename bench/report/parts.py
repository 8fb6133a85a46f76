"""Parts of the page: its own files and those of its libraries, and data compressed as text."""

import gzip
from base64 import b64encode
from importlib import resources
from typing import Any

import msgspec


def part(file: str) -> str:
    """Return the text of one of the page's own files."""
    return text("ronda.bench", f"data/report/{file}")


def text(package: str, file: str) -> str:
    """Return the text of a file of a package."""
    return resources.files(package).joinpath(file).read_text("utf-8")


def packed(value: Any) -> str:
    """Return text, or what JSON can hold, as compressed Base64."""
    data = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    return b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")
