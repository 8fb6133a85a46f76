"""A name that is a path out of the folder, and would colour and turn round a terminal's text."""

import msgspec

from ronda.instances.files.json import read, write

HOSTILE = "../../x\x1b[31m\u202e"


def rename(path, name):
    """Give the instance or round of a file another name."""
    found = read(path)
    write(msgspec.structs.replace(found, name=name), path)


def assert_kept_inside(folder, entries, said):
    """The folder holds just these entries, its parents no others, and all text can be shown."""
    assert {path.name for path in folder.iterdir()} == entries
    assert not (folder / HOSTILE).exists()
    assert not list(folder.parent.parent.glob("x*"))
    for text in (said, *(path.read_text() for path in folder.rglob("table.*"))):
        assert all(line.isprintable() for line in text.splitlines())
