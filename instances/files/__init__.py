"""How instances, rounds, plans and schedules stand on disk.

Here are reading, writing, compression, the packaged catalogue and the JSON Schemas. What makes an
object consistent is in `ronda.instances.rules`; how logs become instances, in
`ronda.instances.traces`.
"""

from ronda.instances.files.canonical import encode
from ronda.instances.files.catalogue import entries, load
from ronda.instances.files.fits import find, fitted
from ronda.instances.files.json import fingerprint, read, write
from ronda.instances.files.names import file_name

__all__ = [
    "encode",
    "entries",
    "file_name",
    "find",
    "fingerprint",
    "fitted",
    "load",
    "read",
    "write",
]
