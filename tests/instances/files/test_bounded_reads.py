"""Reading ends: with an object, or with one line that says what was too much."""

import gzip
import io
import os

import pytest
import zstandard

from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.files.canonical import encode
from ronda.instances.files.json import decode, read
from ronda.instances.files.packaged import load
from ronda.instances.rules.problem import VARIABLE, limits
from ronda.instances.traces.text import read_cells
from ronda.systems.ones.trace import ones_workload

PACKS = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "zstandard": zstandard.ZstdCompressor().compress,
    "zstandard of unknown size": zstandard.ZstdCompressor(write_content_size=False).compress,
}


@pytest.fixture
def one_mib(monkeypatch):
    """Allow files of one MiB, and small clusters."""
    monkeypatch.setenv(VARIABLE, "mib=1, nodes=3, gpus=7, jobs=9")


@pytest.fixture
def document():
    """The text of a round."""
    return encode(generate.round(2, 8, "loose", 0))


@pytest.mark.parametrize("pack", PACKS)
def test_what_unpacks_to_too_much_is_refused(pack, document, one_mib, tmp_path):
    """A few kilobytes that become more than the limit are not unpacked to the end."""
    bomb = tmp_path / "bomb.json"
    bomb.write_bytes(PACKS[pack](document + b" " * (1 << 20)))
    with pytest.raises(InputError, match=r"more than 1 MiB.*at most 1 MiB.*mib=NUMBER"):
        read(bomb)


@pytest.mark.parametrize("pack", PACKS)
def test_what_is_just_not_too_much_is_read(pack, document, monkeypatch):
    """The limit itself is allowed; members and frames that follow each other are one text."""
    monkeypatch.setenv(VARIABLE, "mib=1")
    text = document + b" " * ((1 << 20) - len(document))
    half = len(text) // 2
    parts = [text[:half], text[half:]] if pack != "plain" else [text]
    assert decode(b"".join(map(PACKS[pack], parts)), "t").name == "generated-loose-2-0"


def test_frames_that_are_cut_off_are_told(document):
    """The end of the last frame is missing."""
    packed = PACKS["zstandard"](document)
    with pytest.raises(InputError, match="ends too early"):
        decode(packed + packed[:-3], "t")


@pytest.mark.parametrize("reader", [read, read_cells], ids=["documents", "traces"])
def test_what_is_no_regular_file_is_not_opened(reader, tmp_path):
    """Nobody writes to this pipe: to wait for it would be for ever. Nor does /dev/zero end."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(InputError, match="no regular file"):
            reader(path)


def test_a_link_that_leads_to_itself_is_told(tmp_path):
    """It is there, so it is not taken for the misspelt name of a packaged instance."""
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="symbolic links"):
        load(tmp_path / "loop")


def test_standard_input_is_bounded(one_mib, monkeypatch):
    """A stream without end is refused; a closed one is told."""
    endless = io.TextIOWrapper(io.BytesIO(b" " * (1 << 21)))
    monkeypatch.setattr("sys.stdin", endless)
    with pytest.raises(InputError, match="more than 1 MiB"):
        read("-")
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="closed"):
        read("-")


def test_a_cluster_beyond_the_limits_is_refused(document, one_mib):
    """Nodes, GPUs and jobs are counted; the message says how to allow more."""
    with pytest.raises(InputError, match=r"8 GPUs; expected at most 7 \(RONDA_LIMITS=gpus=NUMBER"):
        decode(document, "t")


@pytest.mark.parametrize(
    "make",
    [
        lambda: generate.round(10),
        lambda: generate.round(1, 8),
        lambda: generate.horizon(2, 8),
        lambda: ones_workload(10),
        lambda: ones_workload(1, nodes=4),
    ],
)
def test_nothing_beyond_the_limits_is_generated(make, one_mib):
    """It is refused before it takes memory."""
    with pytest.raises(InputError, match="RONDA_LIMITS"):
        make()


@pytest.mark.parametrize("text", ["x=1", "mib", "mib=-1", "mib=0", "mib=1e3", "gpus=" + "9" * 30])
def test_limits_that_cannot_be_meant(text, monkeypatch):
    """The variable is read as strictly as everything else."""
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(InputError, match=VARIABLE):
        limits()
