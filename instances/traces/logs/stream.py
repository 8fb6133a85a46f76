"""Files of any size as streams of bytes."""

import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zstandard

from ronda.instances.errors import InputError
from ronda.instances.files.storage import label, read_bytes


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open a plain or compressed file, or standard input (``-``), as a stream of bytes.

    Raises
    ------
    InputError
        If there is no such file, or while it is read, if it is damaged.
    """
    if str(path) == "-":
        yield sys.stdin.buffer  # type: ignore[misc]
        return
    if not path.is_file():
        read_bytes(path)  # says what is wrong with it
    with path.open("rb") as file:
        head = file.peek(4)[:4]
        if head[:2] == b"\x1f\x8b":
            stream: Any = gzip.GzipFile(fileobj=file)
        elif head == b"\x28\xb5\x2f\xfd":
            stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        else:
            yield file
            return
        try:
            yield io.BufferedReader(stream, 1 << 20)
        except (EOFError, gzip.BadGzipFile, zstandard.ZstdError) as error:
            expected = "a whole file: it is cut off or damaged; get it again"
            raise InputError(label(path), f"damaged compressed data ({error})", expected) from None
