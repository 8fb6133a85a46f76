"""A checksum in ronda's own records, so that one that was cut, changed or left out is seen.

It guards against accidents and edits by hand, not against somebody who computes it again.
"""

import hashlib

_HEAD, _MIDDLE = b'{"checksum":"', b'",'
_DIGITS = 16


class BrokenSealError(ValueError):
    """A record is not what was sealed, or does not follow the one before."""


def seal(body: bytes, before: str = "") -> bytes:
    """Return a JSON object, not empty, with a first field ``checksum`` of it and `before`."""
    return _HEAD + checksum(body, before).encode() + _MIDDLE + body[1:]


def unseal(record: bytes, before: str = "") -> bytes:
    """Return the object that was sealed after `before`, or raise `BrokenSealError`."""
    start = len(_HEAD) + _DIGITS
    body = b"{" + record[start + len(_MIDDLE) :]
    if record[:start] != _HEAD + checksum(body, before).encode():
        raise BrokenSealError("its checksum is not that of its text")
    return body


def checksum(body: bytes, before: str = "") -> str:
    """Return 16 hexadecimal digits of a text that follows another checksum."""
    return hashlib.sha256(before.encode() + body).hexdigest()[:_DIGITS]


def whole_lines(data: bytes) -> list[bytes]:
    """Return the lines of a file that is only appended to, without what a sudden end left.

    After a kill that is half a line; after a power cut it may be zero bytes.
    """
    lines = data.split(b"\n")[:-1]
    while lines and b"\0" in lines[-1]:  # JSON has none
        lines.pop()
    return lines
