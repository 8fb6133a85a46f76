"""Checksums in ronda's own records, which reveal a record that was cut, changed or left out.

They guard against accidents and edits by hand, not against an attacker who computes them again.
"""

import hashlib

_HEAD, _MIDDLE = b'{"checksum":"', b'",'
_DIGITS = 16


class BrokenSealError(ValueError):
    """A record was changed after it was sealed, or does not follow the previous one."""


def seal(body: bytes, before: str = "") -> bytes:
    """Return a JSON object, not empty, with a first field ``checksum`` over it and `before`."""
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
    """Return the lines of a file that is only appended to, without an incomplete end.

    After a kill this is half a line; after a power cut it may be zero bytes.
    """
    lines = data.split(b"\n")[:-1]
    while lines and b"\0" in lines[-1]:  # JSON has none
        lines.pop()
    return lines
