"""Checksums of ronda's own records, which reveal cut, changed or missing records.

They guard against accidents and manual edits, not against an attacker who recomputes them.
"""

import hashlib

_HEAD, _MIDDLE = b'{"checksum":"', b'",'
_DIGITS = 16


class BrokenSealError(ValueError):
    """A record that was changed after it was sealed, or that does not follow the previous one."""


def seal(body: bytes, before: str = "") -> bytes:
    """Return a non-empty JSON object with a leading ``checksum`` of the object and `before`."""
    return _HEAD + checksum(body, before).encode() + _MIDDLE + body[1:]


def unseal(record: bytes, before: str = "") -> bytes:
    """Return the object sealed after `before`, or raise `BrokenSealError`."""
    start = len(_HEAD) + _DIGITS
    body = b"{" + record[start + len(_MIDDLE) :]
    if record[:start] != _HEAD + checksum(body, before).encode():
        raise BrokenSealError("its checksum is not that of its text")
    return body


def checksum(body: bytes, before: str = "") -> str:
    """Return the checksum of a text that follows another checksum, as 16 hexadecimal digits."""
    return hashlib.sha256(before.encode() + body).hexdigest()[:_DIGITS]


def whole_lines(data: bytes) -> list[bytes]:
    """Return the complete lines of an append-only file.

    The incomplete end that is dropped is half a line after a kill, or zero bytes after a power cut.
    """
    lines = data.split(b"\n")[:-1]
    while lines and b"\0" in lines[-1]:  # JSON has none
        lines.pop()
    return lines
