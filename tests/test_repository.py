"""Guards on the repository itself: packaging, links, pins, and a light import."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ronda.instances.errors import EXTRAS

ROOT = Path(__file__).resolve().parent.parent
LAYERS = (
    *("bench", "formulations", "horizon", "hosts"),
    *("instances", "questions", "solvers", "systems"),
)
HEAVY = (
    *("dask", "deap", "distributed", "highspy", "lightgbm"),
    *("matplotlib", "networkx", "pandas", "pyomo", "scipy"),
)

# Written so that this file does not match itself.
REGISTRY = re.compile(
    rb"pypi[.]org|pythonhosted[.]org|registry[.]npmjs|anaconda[.]org/|proxy[.]golang[.]org"
    rb"|//[^\s\"'<>]+/simple(?:/|\b)"
    rb"|(?:index[-_]url|find[-_]links)[\s=:\"']+(?:http[s]?|file):"
)


@pytest.fixture(scope="module")
def config():
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pins():
    """Return the pinned version of every distribution by its normalised name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(name): v for name, _, v in (x.partition("==") for x in lines)}


def packages_on_disk():
    """Return the import names of all folders with an ``__init__.py``."""
    found = set()
    for top in ("ronda", *LAYERS):
        for folder, _, files in os.walk(ROOT / top, followlinks=False):
            if "__init__.py" in files:
                parts = Path(folder).relative_to(ROOT).parts
                found.add(".".join(parts if top == "ronda" else ("ronda", *parts)))
    return found


def repository_files():
    """Return every file that git tracks or would track."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    command += ["--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    paths = [ROOT / os.fsdecode(name) for name in listed.split(b"\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def test_packages_are_the_folders_with_an_init(config):
    """A package that pyproject.toml forgets would be missing from the wheel only."""
    declared = config["tool"]["setuptools"]["packages"]
    assert declared == sorted(declared)
    assert set(declared) == packages_on_disk()


def test_package_dir_entries_exist(config):
    """Every folder of the mapping exists and every layer is mapped to its own folder."""
    mapping = config["tool"]["setuptools"]["package-dir"]
    assert mapping == {"ronda": "ronda"} | {f"ronda.{layer}": layer for layer in LAYERS}
    assert [folder for folder in mapping.values() if not (ROOT / folder).is_dir()] == []


@pytest.mark.parametrize("layer", LAYERS)
def test_link_to_layer_is_relative(layer):
    """The links survive a move of the checkout: they are relative."""
    link = ROOT / "ronda" / layer
    assert link.is_symlink()
    assert os.readlink(link) == f"../{layer}"
    assert link.resolve() == ROOT / layer


def test_tests_are_no_package():
    """``tests`` must not become importable: importlib mode needs no ``__init__.py``."""
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_typed_marker_exists():
    """The wheel tells type checkers that ronda is annotated (PEP 561)."""
    assert (ROOT / "ronda" / "py.typed").is_file()


def test_constraints_hold_only_pinned_names():
    """No address, option, path or marker may slip into constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pin = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!]+")
    assert [line for line in lines if not pin.fullmatch(line)] == []
    names = [canonicalize_name(line.partition("==")[0]) for line in lines]
    assert len(names) == len(set(names))


def test_constraints_pin_all_that_is_needed(config, pins):
    """Runtime, dev and build requirements are pinned, with all that they pull in."""
    project = config["project"]
    texts = [*project["dependencies"], *config["build-system"]["requires"]]
    for extra in project["optional-dependencies"].values():
        texts += extra
    queue, seen = [need for need in map(Requirement, texts) if need.name != "ronda"], set()
    while queue:
        need = queue.pop()
        name = canonicalize_name(need.name)
        if (name, frozenset(need.extras)) in seen:
            continue
        seen.add((name, frozenset(need.extras)))
        for text in importlib.metadata.distribution(name).requires or []:
            other = Requirement(text)
            extras = need.extras or {""}
            if not other.marker or any(other.marker.evaluate({"extra": e}) for e in extras):
                queue.append(other)
    assert sorted({name for name, _ in seen} - set(pins)) == []


def test_pins_satisfy_the_declared_requirements(config, pins):
    """A pin outside the declared range could never be installed."""
    project = config["project"]
    texts = [*project["dependencies"], *config["build-system"]["requires"]]
    for extra in project["optional-dependencies"].values():
        texts += extra
    needs = [need for need in map(Requirement, texts) if need.name != "ronda"]
    assert [
        str(need) for need in needs if pins[canonicalize_name(need.name)] not in need.specifier
    ] == []


def test_every_extra_brings_what_errors_say(config):
    """What a missing package is named with is the extra that has it, and `all` has every extra."""
    extras = config["project"]["optional-dependencies"]
    has = {
        extra: {canonicalize_name(Requirement(text).name) for text in texts}
        for extra, texts in extras.items()
    }
    has["dask"].add("dask")  # what distributed is made of
    has["kubernetes"].add("yaml")  # what pyyaml installs
    assert [p for p, extra in EXTRAS.items() if canonicalize_name(p) not in has[extra]] == []
    (every,) = map(Requirement, extras["all"])
    assert every.extras == set(EXTRAS.values())
    core = {Requirement(text).name for text in config["project"]["dependencies"]}
    assert core & set().union(*(has[extra] for extra in EXTRAS.values())) == set()


def test_version_is_the_same_everywhere(config):
    """The installed metadata and CITATION.cff name the version of pyproject.toml."""
    version = config["project"]["version"]
    assert importlib.metadata.version("ronda") == version
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: \"?([^\"\n]+)\"?$", citation, re.MULTILINE) == [version]


def test_no_file_holds_a_registry_address():
    """Where packages are fetched from is the user's setting, never the repository's."""
    found = [
        f"{path.relative_to(ROOT)}: {match.group().decode()}"
        for path in repository_files()
        if (match := REGISTRY.search(path.read_bytes()))
    ]
    assert found == []


def test_import_ronda_is_light():
    """``import ronda`` loads no solver, no evolution, no data frames and no plotting."""
    code = "import json, sys, ronda; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT.parent, capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert sorted(loaded & set(HEAVY)) == []
