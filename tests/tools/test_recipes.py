"""The recipes make the very files that are packaged, or say in one line what is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

from ronda.instances.files import json as files
from tools.recipes import __main__ as recipes

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "instances" / "data"
SOURCE = ROOT / "tests" / "data"


@pytest.mark.soak  # it takes ten seconds, and only recipes and readers change it
def test_recipes_rebuild_the_packaged_files(tmp_path):
    """The command makes the very objects that are packaged, and the same index and licences."""
    command = [sys.executable, "-m", "tools.recipes"]
    command += ["--source", str(SOURCE), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == set(done.stdout.split())
    # The fitted profiles and the sites of tasks are made by tools.profiles and tools.task_sites.
    others = {
        "README.md",
        "profiles.json",
        *(f"tasks-{x}.npz" for x in ("openb", "azure", "blocks")),
    }
    assert made == {path.name for path in FOLDER.iterdir()} - others
    for name in made:
        new, old = tmp_path / "out" / name, FOLDER / name
        if name.endswith(".zst"):  # another zstandard may compress otherwise
            assert files.read(new) == files.read(old)
        else:
            assert new.read_bytes() == old.read_bytes()


def test_recipes_without_data_fail_in_one_line_and_write_nothing(tmp_path, monkeypatch, capsys):
    """Exit code 2, the missing file named, no output folder."""
    words = ["recipes", "--source", str(tmp_path / "none"), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", words)
    assert recipes.main() == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "earth_16vc_may2020_5min.csv.gz: found no such file" in errors
    assert not (tmp_path / "out").exists()
