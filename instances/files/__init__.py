"""How instances, rounds, plans, schedules and demand series stand on disk.

Here are reading, writing, compression, the packaged catalogue and the JSON Schemas. What makes an
object consistent is in `ronda.instances.rules`; how logs become instances, in
`ronda.instances.traces`.
"""

from ronda.instances.files.canonical import encode
from ronda.instances.files.catalogue import document, entries, load, load_demand
from ronda.instances.files.fits import find, fitted
from ronda.instances.files.json import fingerprint, read, write
from ronda.instances.files.storage import file_name

__all__ = [
    "document",
    "encode",
    "entries",
    "file_name",
    "find",
    "fingerprint",
    "fitted",
    "load",
    "load_demand",
    "read",
    "write",
]
