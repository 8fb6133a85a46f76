"""Reading and writing files: every kind, every compression, every way to be broken."""

import gzip
import io
import json
import os
import re
import stat
import sys

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ronda.instances import generate
from ronda.instances.budget import EnergyBudget
from ronda.instances.errors import InputError
from ronda.instances.files.json import decode, fingerprint, read, write
from ronda.instances.job import Allocation, Costs, Option
from ronda.instances.plan import Plan
from ronda.instances.schedule import JobOutcome, Schedule, Segment

SUFFIXES = (".json", ".json.gz", ".json.zst")


def plan():
    """Return a plan with one job."""
    option = Option(pool=0, gpus=2, rate=0.1 + 0.2)
    return Plan(policy="fifo", allocations={"a": Allocation(option=option, placement=((0, 2),))})


def schedule():
    """Return a schedule with one job."""
    segment = Segment(
        start_s=0.0,
        resume_s=10.0,
        end_s=110.0,
        done=100.0,
        option=Option(pool=0, gpus=2),
        placement=((0, 2),),
    )
    job = JobOutcome(id="a", submit_s=0.0, end_s=110.0, segments=(segment,))
    return Schedule(instance="x", fingerprint="0" * 16, policy="fifo", jobs=(job,), end_s=110.0)


OBJECTS = {
    "instance": generate.horizon(20, gpus=8),
    "round": generate.round(10),
    "plan": plan(),
    "schedule": schedule(),
}


@pytest.fixture(params=OBJECTS)
def obj(request):
    """Return an object of each kind."""
    return OBJECTS[request.param]


def fails(action, *words):
    """Check that an action raises a one-line InputError that contains the words."""
    with pytest.raises(InputError) as caught:
        action()
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text
    assert caught.value.exit_code == 2
    return caught.value


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_can_be_read(obj, suffix, tmp_path):
    """Every kind survives every compression, and leaves no other file behind."""
    path = tmp_path / f"x{suffix}"
    write(obj, path)
    assert read(path) == obj
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_equal_objects_give_equal_bytes(obj, suffix, tmp_path):
    """Neither time nor name nor the identity of defaults shows in the bytes."""
    write(obj, tmp_path / f"one{suffix}")
    again = msgspec.json.decode(msgspec.json.encode(obj), type=type(obj))
    write(again, tmp_path / f"two{suffix}")
    one, two = ((tmp_path / f"{n}{suffix}").read_bytes() for n in ("one", "two"))
    assert one == two


def test_a_default_that_was_given_is_left_out_too():
    """Costs() that someone wrote down equals the default, so the fingerprint is the same."""
    given_default = msgspec.structs.replace(OBJECTS["round"], costs=Costs(start_s=0.0))
    left_out = msgspec.structs.replace(OBJECTS["round"], costs=Costs())
    assert fingerprint(given_default) == fingerprint(left_out)
    assert fingerprint(left_out) != fingerprint(OBJECTS["round"])


def test_an_integer_in_place_of_a_number_does_not_show():
    """60 and 60.0 are the same length of a round."""
    whole = msgspec.structs.replace(OBJECTS["round"], length_s=60)
    assert fingerprint(whole) == fingerprint(OBJECTS["round"])


def test_fingerprint_does_not_depend_on_the_order_of_profiles():
    """A mapping has no order; the order of jobs matters."""
    old = OBJECTS["instance"]
    turned = msgspec.structs.replace(old, profiles=dict(reversed(old.profiles.items())))
    assert fingerprint(turned) == fingerprint(old)
    assert re.fullmatch("[0-9a-f]{16}", fingerprint(old))
    swapped = msgspec.structs.replace(old, jobs=old.jobs[::-1])
    assert fingerprint(swapped) != fingerprint(old)


def test_compression_is_told_by_the_bytes_not_by_the_name(obj, tmp_path):
    """A renamed file can still be read."""
    for suffix in SUFFIXES[1:]:
        write(obj, tmp_path / f"x{suffix}")
        os.rename(tmp_path / f"x{suffix}", tmp_path / "x.json")
        assert read(tmp_path / "x.json") == obj


def test_several_compressed_parts_make_one_file(tmp_path):
    """Gzip and zstd files may be concatenations; none of their parts is dropped."""
    write(OBJECTS["plan"], tmp_path / "x.json")
    text = (tmp_path / "x.json").read_bytes()
    pack = zstandard.ZstdCompressor().compress
    assert decode(pack(text[:40]) + pack(text[40:]), "x") == OBJECTS["plan"]
    assert decode(gzip.compress(text[:40]) + gzip.compress(text[40:]), "x") == OBJECTS["plan"]


def test_minus_reads_standard_input(monkeypatch, tmp_path):
    """`read("-")` reads standard input and names it in errors."""
    write(OBJECTS["plan"], tmp_path / "x.json.gz")
    data = (tmp_path / "x.json.gz").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert read("-") == OBJECTS["plan"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    fails(lambda: read("-"), "standard input", "an empty file")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_cut_in_half_is_refused(obj, suffix, tmp_path):
    """Half a file, compressed or not, is an error that says so and names the file."""
    path = tmp_path / f"x{suffix}"
    write(obj, path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    fails(lambda: read(path), f"x{suffix}", "cut off")


@given(share=st.floats(0, 1, exclude_max=True), suffix=st.sampled_from(SUFFIXES))
def test_no_prefix_of_a_file_is_accepted(share, suffix, tmp_path_factory):
    """Wherever a file is cut, reading it is an InputError and never something else."""
    path = tmp_path_factory.mktemp("cut") / f"x{suffix}"
    write(OBJECTS["plan"], path)
    data = path.read_bytes()
    cut = int(share * (len(data) - 1))  # at most all but the last byte but one
    fails(lambda: decode(data[:cut], "x.json"), "x.json")


BROKEN = {
    "empty": (b"", "an empty file", "JSON"),
    "blank": (b" \n ", "an empty file", "JSON"),
    "nan": (b'{"format": "ronda/plan/1", "objective": NaN}', "objective: found NaN", "finite"),
    "inf": (b'{"format": "ronda/plan/1", "prices": {"a b": -Infinity}}', 'prices["a b"]', "finite"),
    "huge": (b'{"format": "ronda/plan/1", "objective": 1e999}', "objective", "finite"),
    "comma": (b'{"format": "ronda/plan/1",\n "policy": "a",}', "line 2 column", "double quotes"),
    "csv": (b"job,gpus\na,1\n", "line 1 column 1", '"job,gpus"'),
    "bom": (b'\xef\xbb\xbf{"format": "ronda/plan/1"}', "byte order mark", "without"),
    "latin": (b'{"format": "ronda/plan/1",\n"policy": "\xe9"}', "line 2", "UTF-8"),
    "array": (b"[1, 2]", "[1, 2]", "object"),
    "text": (b'"x"', '"x"', "object"),
    "kind": (b"{}", "no field format", "ronda/instance/1"),
    "other": (b'{"format": "swf"}', 'format: found "swf"', "ronda/plan/1"),
    "newer": (b'{"format": "ronda/plan/2"}', "ronda/plan/2", "newer ronda"),
    "number": (b'{"format": 1}', "format: found 1", "ronda/plan/1"),
    "twice": (
        b'{"format": "ronda/plan/1", "policy": "a", "policy": "b"}',
        '"policy" twice',
        "once",
    ),
    "deep": (b'{"format": "ronda/plan/1", "memory": {"a": ' + b"[" * 10**5, "nested", "levels"),
    "former": (
        b'{"format": "ronda/plan/1", "details": {"idle_since": {}}}',
        'x.json, details: found unknown field "idle_since"',
        "",
    ),
    "digits": (b'{"format": "ronda/plan/1", "objective": ' + b"9" * 5000 + b"}", "x.json", ""),
    "gzip": (gzip.compress(b"{}")[:-1], "gzip data that end too early", "again"),
    "zstd": (zstandard.ZstdCompressor().compress(b"{}" * 99)[:-2], "too early", "again"),
    "damaged": (b"\x1f\x8b" + b"?" * 50, "damaged", "again"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_bytes_get_one_line(name):
    """Each kind of damage is named, with the place where there is one."""
    data, *words = BROKEN[name]
    fails(lambda: decode(data, "x.json"), "x.json", *words)


def test_missing_file_suggests_its_neighbour(tmp_path):
    """A slip of the pen in a file name is cheap."""
    write(OBJECTS["plan"], tmp_path / "round.json")
    fails(lambda: read(tmp_path / "ruond.json"), "no such file", 'did you mean "round.json"?')
    fails(lambda: read(tmp_path / "no" / "where.json"), "no such file", "exists")


def test_a_directory_is_no_file(tmp_path):
    """Reading or writing a directory is refused; the directory stays."""
    (tmp_path / "x.json").mkdir()
    fails(lambda: read(tmp_path / "x.json"), "a directory", "a file")
    fails(lambda: write(OBJECTS["plan"], tmp_path / "x.json"), "no regular file", "replace")
    assert os.listdir(tmp_path) == ["x.json"]


@pytest.fixture
def nobody():
    """Become a user without rights, for whom the mode of a file counts."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def locked(tmp_path):
    """Return a folder with a file, neither of which may be used."""
    folder = tmp_path / "locked"
    folder.mkdir()
    write(OBJECTS["plan"], folder / "x.json")
    folder.chmod(0)
    yield folder
    folder.chmod(0o700)


def test_without_permission_nothing_happens(locked, nobody):
    """A folder without permission gives an error and keeps what it has."""
    fails(lambda: read(locked / "x.json"), "no permission to read", "chmod")
    fails(lambda: write(OBJECTS["plan"], locked / "y.json"), "no permission to write", "folder")


def test_write_needs_a_folder_and_a_known_suffix(tmp_path):
    """A folder is never made, and a suffix never guessed."""
    fails(lambda: write(OBJECTS["plan"], tmp_path / "no" / "x.json"), "no folder", "exists")
    fails(lambda: write(OBJECTS["plan"], tmp_path / "x.txt"), '"x.txt"', ".json.zst")
    fails(lambda: write(OBJECTS["plan"], "/dev/null"), '"null"', ".json")
    assert os.listdir(tmp_path) == []


def test_a_write_that_fails_leaves_the_old_file(monkeypatch, tmp_path):
    """When the disk fails at the last moment, the old file stands and no draft remains."""

    def fail(source, target):
        raise OSError(28, "No space left on device")

    path = tmp_path / "x.json"
    write(OBJECTS["plan"], path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", fail)
    fails(lambda: write(OBJECTS["round"], path), "No space left")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.json"]


def test_write_follows_a_link_and_respects_the_umask(tmp_path):
    """A link stays a link; a new file has the mode that any program's file would have."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "real" / "x.json")
    mask = os.umask(0o027)
    try:
        write(OBJECTS["plan"], tmp_path / "link.json")
    finally:
        os.umask(mask)
    assert (tmp_path / "link.json").is_symlink()
    assert read(tmp_path / "real" / "x.json") == OBJECTS["plan"]
    assert stat.S_IMODE((tmp_path / "real" / "x.json").stat().st_mode) == 0o640


def test_write_refuses_what_could_not_be_read_again(tmp_path):
    """NaN would silently become null; it is refused before anything is written."""
    path = tmp_path / "x.json"
    fails(lambda: write(Plan(objective=float("nan")), path), "objective", "NaN", "finite")
    fails(lambda: write(Plan(memory={"a": [1.0, float("inf")]}), path), "memory.a[1]", "finite")
    bad = msgspec.structs.replace(OBJECTS["instance"], jobs=())
    fails(lambda: write(bad, path), "no job")
    energy = EnergyBudget(joules=float("inf"), horizon_s=1.0)
    budget = msgspec.structs.replace(OBJECTS["instance"].budget, energy=energy)
    bad = msgspec.structs.replace(OBJECTS["instance"], budget=budget)
    fails(lambda: write(bad, path), "budget.energy.joules", "Infinity", "finite")
    assert os.listdir(tmp_path) == []


def test_names_of_any_kind_stay_on_one_line(tmp_path):
    """A line break in a name, of a file or of a job, is shown and not printed."""
    fails(lambda: read(tmp_path / "a\nb.json"), "\\n")
    text = json.dumps({"format": "ronda/plan/1", "a\nb": 1}).encode()
    fails(lambda: decode(text, "x.json"), '"a\\nb"')


def test_small_files_are_for_people_and_large_ones_compact(tmp_path):
    """A plan is indented; a file of a megabyte or more is one line."""
    write(OBJECTS["plan"], tmp_path / "x.json")
    assert (tmp_path / "x.json").read_text().startswith('{\n  "format": "ronda/plan/1",\n')
    write(generate.horizon(8000), tmp_path / "y.json")
    assert (tmp_path / "y.json").read_bytes().count(b"\n") == 1
