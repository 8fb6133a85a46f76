"""The gallery of examples: each script runs, and the page names it."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_runs(script, tmp_path, monkeypatch, capsys):
    """In an empty folder, in this process; it prints something and writes nothing."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert list(tmp_path.iterdir()) == []


def test_the_page_names_every_script():
    """And no other; each begins with what it shows."""
    page = (ROOT / "docs" / "gallery.md").read_text()
    assert sorted(set(re.findall(r"examples/(\w+\.py)\)", page))) == [p.name for p in SCRIPTS]
    assert all(path.read_text().startswith('"""') for path in SCRIPTS)
