"""Output folders are claimed for one purpose."""

import fcntl
import os
import subprocess
import sys
import threading

import pytest

from ronda.bench.runs.folder import LOCK, MARK, claim, load_record, store_record
from ronda.instances.errors import InputError


def test_a_new_folder_is_made_and_can_be_used_again(tmp_path):
    """The second use sees that there was a first."""
    with claim(tmp_path / "a" / "b", "run", {"seed": 1}) as again:
        assert not again
    with claim(tmp_path / "a" / "b", "run", {"seed": 1}) as again:
        assert again


def test_foreign_files_are_left_alone(tmp_path):
    """A folder with other files is refused and nothing is put into it."""
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="files that ronda did not make"), claim(tmp_path, "run"):
        pass
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_folder_serves_one_purpose(tmp_path):
    """Neither another kind of results nor another run may be mixed in."""
    with claim(tmp_path, "run", {"seed": 1}):
        pass
    with pytest.raises(InputError, match="ronda/comparison/1"), claim(tmp_path, "comparison"):
        pass
    for other in ({"seed": 2}, {}, {"seed": 1, "period_s": 60.0}):
        with pytest.raises(InputError, match=r"seed 1|period_s"), claim(tmp_path, "run", other):
            pass


def test_a_damaged_mark_is_told(tmp_path):
    """A mark that cannot be read is not taken for none."""
    (tmp_path / MARK).write_text("{")
    with pytest.raises(InputError, match="damaged"), claim(tmp_path, "run"):
        pass


def test_a_file_is_no_folder(tmp_path):
    """The name of a file, or one below a file, is refused."""
    (tmp_path / "f").write_text("x")
    for path in (tmp_path / "f", tmp_path / "f" / "g"):
        with pytest.raises(InputError), claim(path, "run"):
            pass


def test_two_processes_cannot_hold_one_folder(tmp_path):
    """While one process works in a folder, another one is refused."""
    code = (
        "import sys; from pathlib import Path; from ronda.bench.runs.folder import claim\n"
        "from ronda.instances.errors import InputError\n"
        "try:\n"
        "    with claim(Path(sys.argv[1]), 'run'): print('held')\n"
        "except InputError as error: print(error)\n"
    )

    def other():
        command = [sys.executable, "-c", code, str(tmp_path / "x")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    with claim(tmp_path / "x", "run"):
        assert "another ronda process" in other()
    assert other() == "held"


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"x" * 99, b'{"jobs":3}', b'{"checksum":"0"}'])
def test_a_record_that_is_not_as_it_was_written_is_refused(text, tmp_path):
    """One line that names the file and the remedy."""
    path = tmp_path / "metrics.json"
    store_record(path, {"jobs": 3})
    assert load_record(path, dict[str, int]) == {"jobs": 3}
    path.write_bytes(text)
    with pytest.raises(InputError, match=r"metrics.json: found .*delete it"):
        load_record(path, dict[str, int])


@pytest.mark.parametrize("about", ["[]", "7", "null"])
def test_a_mark_of_another_shape_is_damaged(about, tmp_path):
    """It is no folder of other content: nobody knows of what."""
    (tmp_path / "ronda.json").write_text(f'{{"format": "ronda/run/1", "about": {about}}}')
    with pytest.raises(InputError, match="damaged"), claim(tmp_path, "run"):
        pass


def test_a_folder_that_is_let_go_soon_is_waited_for(tmp_path):
    """As after a kill, while a process that was just being started still holds the lock."""
    (tmp_path / "out").mkdir()
    hold = (
        "import fcntl, os, sys, time; lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT);"
        "fcntl.flock(lock, fcntl.LOCK_EX); print('held', flush=True); time.sleep(0.3)"
    )
    command = [sys.executable, "-c", hold, str(tmp_path / "out" / LOCK)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with claim(tmp_path / "out", "run") as again:
            assert not again


def test_a_folder_that_another_command_was_first_in_is_refused_once_it_is_free(tmp_path):
    """Both found it empty; the second comes in when the first has made it its own."""
    with claim(tmp_path / "first", "run", {"policy": "fifo"}):
        mark = (tmp_path / "first" / MARK).read_bytes()
    new = tmp_path / "new"
    new.mkdir()
    lock = os.open(new / LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)

    def be_first():
        (new / MARK).write_bytes(mark)
        os.close(lock)

    first = threading.Timer(0.2, be_first)
    first.start()
    with pytest.raises(InputError, match="policy 'fifo'"), claim(new, "run", {"policy": "srtf"}):
        pass
    first.join()
    assert (new / MARK).read_bytes() == mark
