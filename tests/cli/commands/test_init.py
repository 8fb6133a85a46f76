"""``ronda init``: what it lays runs, and nothing of others is touched."""

import json
import os
import subprocess
import sys
from pathlib import Path


def test_make_in_a_new_study_compares(tmp_path, ronda):
    """As a user would: checked and compared by ``make``, in real processes."""
    assert ronda("init", tmp_path / "my study").exit_code == 0
    folder = tmp_path / "my study"
    suite = (folder / "suite.toml").read_text()
    assert "restart_s = [10, 120]" in suite  # one of them shows it
    (folder / "suite.toml").write_text(suite.replace("[10, 120]", "[10]"))
    programs = str(Path(sys.executable).parent)
    env = os.environ | {"PATH": os.pathsep.join((programs, os.environ["PATH"]))}
    command = ["make", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "instance.json: an instance, in order" in done.stdout
    lines = map(json.loads, (folder / "results" / "results.jsonl").read_text().splitlines())
    found = {(line["policy"], line["status"], line["violations"]) for line in lines}
    assert {(status, violations) for _, status, violations in found} == {("OK", 0)}
    assert len(found) == 3
    assert "| policy.py:Widest |" in (folder / "results" / "table.md").read_text()


def test_a_folder_with_files_is_refused(tmp_path, ronda):
    """One line, exit code 2, and it stays as it was; an empty one is taken."""
    (tmp_path / "mine.txt").write_text("mine")
    done = ronda("init", tmp_path)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "found a folder with files; expected a new or an empty folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    (tmp_path / "empty").mkdir()
    done = ronda("init", tmp_path / "empty", "--json")
    laid = json.loads(done.stdout)["files"]
    assert sorted(laid) == sorted(path.name for path in (tmp_path / "empty").iterdir())
    assert len(laid) == 4
