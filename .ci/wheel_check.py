"""Build the wheel, install it where nothing else of ronda is, and use it there.

The checks

1. the wheel, built through the source distribution, holds every module and data file;
2. it adds no top-level name to site-packages but ``ronda`` and its dist-info, so that what
   serves the repository alone (``lab``, ``tools``, ``tests``) stays out of it;
3. its declared dependencies, without extras, are enough to solve, run and compare from another
   folder;
4. what needs an extra says so in one line.

The clean environment gets exactly the distributions that the wheel's own metadata asks
for, linked from the environment that runs this script, so nothing is downloaded and an
undeclared dependency is still found missing. ``--download`` installs them with pip and
constraints.txt instead.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent

GOES = (
    ("instances generate round --jobs 8 --out round.json", ""),
    ("solve round.json --policy milp", "GPUs"),
    ("run venus-vcvly --policy fifo", "mean JCT"),
    ("compare venus-vcvly --policies fifo,sjf --out out", "venus-vcvly"),
    ("sleep earth-2020-09 --policy ces", "ces"),
)
"""What the wheel does without any extra, and a word of what it prints."""

LACKS = (
    ("sleep earth-2020-09 --policy ces(forecast=boosted)", "predict"),
    ("instances show venus-vcvly --topology --out picture.png", "plot"),
    ("instances detect-sweeps jobs.csv", "traces"),
    ("compare venus-vcvly --policies fifo --dask local --out dask", "dask"),
    ("solve round.json --policy milp(solver=scip)", "solvers"),
    ("serve", "serve"),
)
"""What it does not, and the extra that its one line of error names."""


class CheckError(Exception):
    """A property of the wheel that does not hold."""


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command and return its output; a failure carries all that it printed."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=cwd,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        raise CheckError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def use(ronda: Path, cwd: Path, env: dict[str, str]) -> None:
    """Do what the wheel alone does, and ask for what it does not."""
    for words, said in GOES:
        if said not in run(ronda, *words.split(), cwd=cwd, env=env):
            raise CheckError(f"ronda {words}: printed no {said!r}")
    if not (cwd / "out" / "table.md").is_file() or (cwd / "out" / "figures").exists():
        raise CheckError("ronda compare: expected a table and, without the extra plot, no pictures")
    for words, extra in LACKS:
        done = subprocess.run(
            [str(ronda), *words.split()],
            cwd=cwd,
            env=env,
            text=True,
            capture_output=True,
            check=False,
        )
        told = done.stderr.strip()
        if done.returncode != 2 or "\n" in told or f"pip install 'ronda[{extra}]'" not in told:
            raise CheckError(f"ronda {words}: exit code {done.returncode}, expected 2\n{told}")


def layout() -> dict[str, Path]:
    """Return the folder of every package, from pyproject.toml."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    setuptools = config["tool"]["setuptools"]
    mapping: dict[str, str] = setuptools["package-dir"]
    folders = {}
    for package in setuptools["packages"]:
        parts = package.split(".")
        cut = max(i for i in range(1, len(parts) + 1) if ".".join(parts[:i]) in mapping)
        folders[package] = ROOT.joinpath(mapping[".".join(parts[:cut])], *parts[cut:])
    return folders


def expected_files() -> set[str]:
    """Return the archive names of all that the wheel must hold."""
    names = {"ronda/py.typed", "ronda/__init__.pyi"}
    folders = layout()
    for package, folder in folders.items():
        prefix = package.replace(".", "/")
        names.update(f"{prefix}/{module.name}" for module in folder.glob("*.py"))
    for package in ("ronda.bench", "ronda.instances"):
        names.update(
            f"{package.replace('.', '/')}/{path.relative_to(folders[package]).as_posix()}"
            for path in (folders[package] / "data").rglob("*")
            if path.is_file()
            and path.suffix != ".pyc"
            and not any(part.startswith(".") for part in path.relative_to(folders[package]).parts)
        )
    return names


def build(scratch: Path) -> Path:
    """Build sdist and wheel from a copy of the sources, so that the tree stays clean."""
    source = scratch / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, source / name)
    for name in sorted({folder.relative_to(ROOT).parts[0] for folder in layout().values()}):
        shutil.copytree(
            ROOT / name,
            source / name,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__", "*.pyc"),
        )
    out = scratch / "dist"
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source, cwd=scratch)
    wheels = list(out.glob("*.whl"))
    if len(wheels) != 1:
        raise CheckError(f"expected one wheel, got {[wheel.name for wheel in wheels]}")
    return wheels[0]


def check_contents(wheel: Path) -> list[Requirement]:
    """Hold the wheel's RECORD to the sources; return the runtime requirements."""
    with zipfile.ZipFile(wheel) as archive:
        info = next(n.split("/")[0] for n in archive.namelist() if n.endswith(".dist-info/RECORD"))
        record = archive.read(f"{info}/RECORD").decode().splitlines()
        metadata = archive.read(f"{info}/METADATA").decode()
    names = {line.rsplit(",", 2)[0].strip('"') for line in record if line}
    tops = {PurePosixPath(name).parts[0] for name in names}
    if tops != {"ronda", info}:
        raise CheckError(f"{wheel.name}: top-level names {sorted(tops)}, expected ronda only")
    packaged = {name for name in names if name.startswith("ronda/")}
    if missing := sorted(expected_files() - packaged):
        raise CheckError(f"{wheel.name} lacks {missing}")
    if extra := sorted(packaged - expected_files()):
        raise CheckError(f"{wheel.name} holds files of no package: {extra}")
    header = metadata.split("\n\n", 1)[0].splitlines()
    wanted = [
        Requirement(line.split(":", 1)[1]) for line in header if line.startswith("Requires-Dist:")
    ]
    return [need for need in wanted if applies(need, {""})]


def applies(need: Requirement, extras: set[str]) -> bool:
    """Tell whether the requirement holds here for any of the extras."""
    return need.marker is None or any(need.marker.evaluate({"extra": e}) for e in extras)


def closure(needs: list[Requirement]) -> dict[str, importlib.metadata.Distribution]:
    """Return the installed distributions that the requirements pull in."""
    found: dict[str, importlib.metadata.Distribution] = {}
    extras: dict[str, set[str]] = {}
    queue = list(needs)
    while queue:
        need = queue.pop()
        name = canonicalize_name(need.name)
        asked = {"", *need.extras}
        if name in found and asked <= extras[name]:
            continue
        found[name] = importlib.metadata.distribution(name)
        extras[name] = extras.get(name, set()) | asked
        nested = [Requirement(text) for text in found[name].requires or []]
        queue.extend(other for other in nested if applies(other, extras[name]))
    return found


def link(distributions: dict[str, importlib.metadata.Distribution], target: Path) -> None:
    """Link the files of the distributions into another site-packages."""
    for distribution in distributions.values():
        for top in {path.parts[0] for path in distribution.files or []} - {"..", "__pycache__"}:
            source = Path(str(distribution.locate_file(top)))
            if not os.path.lexists(target / top) and source.exists():
                (target / top).symlink_to(source, target_is_directory=source.is_dir())


def main() -> int:
    """Run all the checks; return the exit code."""
    parser = argparse.ArgumentParser(description="Build, install and use the wheel.")
    parser.add_argument("--download", action="store_true", help="install dependencies with pip")
    download: bool = parser.parse_args().download
    env = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    with tempfile.TemporaryDirectory(prefix="ronda-wheel-") as folder:
        scratch = Path(folder)
        try:
            wheel = build(scratch)
            needs = check_contents(wheel)
            clean = scratch / "clean"
            venv.create(clean, with_pip=download)
            python = clean / "bin" / "python"
            site = Path(sysconfig.get_path("purelib", vars={"base": str(clean)}))
            pip: list[str | Path]
            if download:
                pins = ROOT / "constraints.txt"
                wanted = map(str, needs)
                run(python, "-m", "pip", "install", "-c", pins, *wanted, cwd=scratch, env=env)
                pip = [python, "-m", "pip"]
            else:
                link(closure(needs), site)
                pip = [sys.executable, "-m", "pip", "--python", python]
            before = {path.name for path in site.iterdir()}
            run(*pip, "install", "--no-deps", "--no-index", wheel, cwd=scratch, env=env)
            gained = {path.name for path in site.iterdir()} - before
            if {name.split("-")[0] for name in gained} != {"ronda"} or len(gained) != 2:
                raise CheckError(f"site-packages gained {sorted(gained)}")
            run(*pip, "check", cwd=scratch, env=env)
            work = scratch / "work"
            work.mkdir()
            where = run(
                python, "-c", "import ronda; print(ronda.__file__)", cwd=work, env=env
            ).strip()
            if not Path(where).resolve().is_relative_to(site.resolve()):
                raise CheckError(f"ronda was imported from {where}")
            use(clean / "bin" / "ronda", work, env)
        except CheckError as error:
            print(f"wheel-check: {error}", file=sys.stderr)
            return 1
        print(f"wheel-check: {wheel.name} installs cleanly and is used without extras")
    return 0


if __name__ == "__main__":
    sys.exit(main())
