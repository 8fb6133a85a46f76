"""Bytes on disk: compression and atomic writes."""

import difflib
import gzip
import hashlib
import io
import os
import re
import secrets
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import IO

import zstandard

from ronda.instances.errors import InputError
from ronda.instances.rules.problem import limits, show

_SLICE = 1 << 10  # a KiB of Zstandard becomes 32 MiB at most: 4 bytes repeat one 2^17 times


def label(path: str | Path) -> str:
    """Return the one-line name of a file for error messages."""
    text = os.fspath(path)
    return text if text.isprintable() and text else show(text, 4096)


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a regular file, up to the size that `limits` allow."""
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            raise _no_file(path)  # opening a device may have side effects
        # A pipe that took the file's place, or /proc/kmsg, must not block us.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _no_file(path)
            return _bounded(file, label(path))
    except FileNotFoundError:
        raise InputError(label(path), "no such file", _neighbour(path)) from None
    except IsADirectoryError:
        raise InputError(label(path), "a directory", "a file") from None
    except PermissionError:
        expected = "a file that this user may read (chmod +r)"
        raise InputError(label(path), "no permission to read it", expected) from None
    except BlockingIOError:
        raise _no_file(path) from None
    except (OSError, ValueError) as error:
        raise InputError(label(path), _reason(error), "a readable file") from None


def standard_input() -> bytes:
    """Return the bytes of standard input, up to the size that `limits` allow."""
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("standard input", "a closed one", "a document, or the name of a file")
    return _bounded(sys.stdin.buffer, "standard input")


def _no_file(path: Path) -> InputError:
    expected = "a regular file (- reads standard input)"
    return InputError(label(path), "something that is no regular file", expected)


def _bounded(file: IO[bytes], place: str) -> bytes:
    parts, left = [], limits().mib << 20
    while part := file.read(min(left + 1, 1 << 20)):
        left -= len(part)
        if left < 0:
            raise InputError(place, f"more than {limits().mib} MiB", limits().at_most("mib"))
        parts.append(part)
    return b"".join(parts)


def unpack(data: bytes, place: str) -> bytes:
    """Decompress data according to their first bytes, up to the size that `limits` allow."""
    whole = "a whole file: it is cut off or damaged; get it again"
    try:
        if data.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                return _bounded(file, place)  # type: ignore[arg-type]
        if data.startswith(b"\x28\xb5\x2f\xfd"):
            return _unpack_zstd(data, place)
    except EOFError:
        raise InputError(place, "gzip data that end too early", whole) from None
    except (zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
        raise InputError(place, f"damaged compressed data ({error})", whole) from None
    return data


def _unpack_zstd(data: bytes, place: str) -> bytes:
    source, parts, rest = io.BytesIO(data), [], b""
    left = limits().mib << 20
    while rest := rest or source.read(_SLICE):
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            if not rest:
                raise zstandard.ZstdError("the frame ends too early")
            parts.append(frame.decompress(rest))
            left -= len(parts[-1])
            if left < 0:
                raise InputError(place, f"more than {limits().mib} MiB", limits().at_most("mib"))
            rest = source.read(_SLICE)
        rest = frame.unused_data + rest
    return b"".join(parts)


def as_it_is(text: bytes) -> bytes:
    """Return the text unchanged, as the compression of plain files."""
    return text


def _pack_gzip(text: bytes) -> bytes:
    """Compress without a file name and time, so that the bytes depend only on the text."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=6, mtime=0) as file:
        file.write(text)
    return buffer.getvalue()


def packer(path: Path) -> Callable[[bytes], bytes]:
    """Return the compression function for a file name."""
    name, zstd = path.name, zstandard.ZstdCompressor(level=10)
    ways = ((".json", as_it_is), (".json.gz", _pack_gzip), (".json.zst", zstd.compress))
    for suffix, pack in ways:
        if name.endswith(suffix):
            return pack
    found = f"the name {show(name)}"
    raise InputError(label(path), found, "a name that ends in .json, .json.gz or .json.zst")


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically, so that readers see the old file or the new one, never a part.

    The target of a link is replaced. If writing fails, the old file stays.
    """
    final = Path(os.path.realpath(path))
    folder = final.parent
    draft = folder / f".{final.name}.{secrets.token_hex(4)}.tmp"
    try:
        if final.exists() and not stat.S_ISREG(final.stat().st_mode):
            raise InputError(label(path), "something that is no regular file", "a file to replace")
        try:
            with draft.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # without it a power cut may leave an empty file
            os.replace(draft, final)
            _sync_folder(folder)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(label(path), f"no folder {label(folder)}", "one that exists") from None
    except PermissionError:
        found = f"no permission to write in {label(folder)}"
        raise InputError(label(path), found, "a folder that this user may write in") from None
    except (OSError, ValueError) as error:
        raise InputError(label(path), _reason(error), "a place that can be written") from None


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn errors of writing a file, such as a full disk, into ones that name the file."""
    try:
        yield
    except OSError as error:
        raise InputError(label(path), _reason(error), "a place that can be written") from None


def packaged(file: str) -> bytes:
    """Return the bytes of a file in the package's data folder."""
    return resources.files("ronda.instances").joinpath("data", file).read_bytes()


def packaged_folder(name: str) -> list[str]:
    """Return the names of the files in a folder of the package's data folder, in order."""
    folder = resources.files("ronda.instances").joinpath("data", name)
    return sorted(each.name for each in folder.iterdir())


def neither(kind: str, name: str, known: Iterable[str], shown_by: str) -> InputError:
    """Return the error for a name that is neither packaged nor that of a file."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    such = f"a name such as {' or '.join(near)}" if near else "a name"
    return InputError(
        kind,
        f"{name!r}, neither a packaged {kind} nor a file",
        f"{such} (`{shown_by}` shows all), or the path of a file",
    )


def _neighbour(path: Path) -> str:
    try:
        near = difflib.get_close_matches(path.name, os.listdir(path.parent), n=1)
    except OSError:
        near = []
    return f"a file that exists (did you mean {show(near[0])}?)" if near else "a file that exists"


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


PLAIN = re.compile(r"[a-z0-9][a-z0-9_+-]{0,79}")
"""The names that `file_name` keeps, unless they look like generated names."""

_MADE = re.compile(r".*--[0-9a-f]{16}", re.DOTALL)


def file_name(name: str) -> str:
    """Return a unique file name of at most 80 characters, without a suffix, for a name.

    It has no separator, dot or blank, so that no path built from it leaves its folder. A name of
    lower-case letters, digits, ``_``, ``+`` and ``-`` is kept. Any other name gets 16 digits of its
    SHA-256, which distinguish ``a b`` from ``a/b``, and ``A`` from ``a`` on file systems that do
    not.
    """
    if PLAIN.fullmatch(name) and not _MADE.fullmatch(name):
        return name
    words = re.sub(r"[^a-z0-9_+]+", "-", name.lower())[:60].strip("-")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{words or 'name'}--{digest[:16]}"
