"""Whether the tests notice when ronda is wired wrongly.

A mutation is one small change of the code, and the tests that must fail with it; `mutants.toml`
lists them. They are applied one at a time to a copy of the tree.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTED = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())["mutation"]
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
EACH = pytest.mark.parametrize("mutation", LISTED, ids=lambda mutation: mutation["name"])


@EACH
def test_the_list_fits_the_code(mutation):
    """Every old text stands there exactly once, and every named test is there."""
    assert mutation.keys() == {"name", "file", "old", "new", "tests"}
    assert (ROOT / mutation["file"]).read_text().count(mutation["old"]) == 1
    assert mutation["old"] != mutation["new"]
    for test in mutation["tests"]:
        path, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / path).read_text()


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """A copy of the tree, whose tests pass."""
    copy = tmp_path_factory.mktemp("mutants") / "tree"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=LEFT_OUT)
    return copy


@pytest.mark.soak
@pytest.mark.timeout(1800)
@EACH
def test_a_mutation_is_noticed(mutation, tree):
    """Its tests pass without it, and one of them fails with it."""
    path = tree / mutation["file"]
    plain = path.read_text()
    assert passes(tree, mutation["tests"])
    path.write_text(plain.replace(mutation["old"], mutation["new"]))
    try:
        assert not passes(tree, mutation["tests"])
    finally:
        path.write_text(plain)


def passes(tree, tests):
    """Return whether tests pass; with CI set, property tests take the same examples each time."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-n", "0", "--tb=no", *tests]
    own = {"CI": "1", "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        cwd=tree,
        env=os.environ | own,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout.decode()[-300:]
    return done.returncode == 0
