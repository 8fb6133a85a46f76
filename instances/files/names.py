"""Names of files made from data: an instance, a round or a policy may be called anything."""

import hashlib
import re

PLAIN = re.compile(r"[a-z0-9][a-z0-9_+-]{0,79}")
"""What stays as it is, unless it looks as if `file_name` had made it."""

_MADE = re.compile(r".*--[0-9a-f]{16}", re.DOTALL)
_WORDS = 60  # characters that are kept of a name that cannot stay


def file_name(name: str) -> str:
    """Return a file name of at most 80 characters without a suffix: one for each name.

    It has no separator, dot or blank, so that no path leaves its folder by it. A name of lower-case
    letters, digits, ``_``, ``+`` and ``-`` stays; any other gets 16 digits of its SHA-256, which
    keep ``a b`` and ``a/b`` apart, and ``A`` and ``a`` where the file system does not.
    """
    if PLAIN.fullmatch(name) and not _MADE.fullmatch(name):
        return name
    words = re.sub(r"[^a-z0-9_+]+", "-", name.lower())[:_WORDS].strip("-")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{words or 'name'}--{digest[:16]}"
