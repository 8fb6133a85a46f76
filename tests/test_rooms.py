"""Every room says what belongs there and what it offers, and stays small enough to know."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = (
    *("instances", "formulations", "solvers", "horizon"),
    *("systems", "questions", "hosts", "bench"),
)
ROOMS = sorted(
    str(init.parent.relative_to(ROOT))
    for layer in LAYERS
    for init in (ROOT / layer).glob("*/**/__init__.py")
)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_a_docstring_and_at_most_15_modules(room):
    """One question a room: a second paragraph says what belongs there and what does not."""
    tree = ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8"))
    said = ast.get_docstring(tree) or ""
    assert len(said.split("\n\n")) > 1
    assert len(list((ROOT / room).glob("*.py"))) - 1 <= 15


@pytest.mark.parametrize("layer", [*LAYERS, "ronda/cli", "ronda/cli/commands"])
def test_a_layer_has_at_most_16_modules_of_its_own(layer):
    """What stands at the top of a layer is known by heart as well."""
    assert len(list((ROOT / layer).glob("*.py"))) - 1 <= 16


@pytest.mark.parametrize("room", ROOMS)
def test_what_a_room_exports_is_there(room):
    """Each exported name is imported from one of the room's own modules, and shadows none."""
    tree = ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8"))
    modules = {path.stem for path in (ROOT / room).glob("*.py")}
    package = "ronda." + room.replace("/", ".")
    imported = set()
    for line in ast.walk(tree):
        if isinstance(line, ast.ImportFrom):
            assert line.module is not None
            assert line.module.startswith(package + ".")
            imported |= {alias.asname or alias.name for alias in line.names}
    assert imported & modules == set()
    assigned = [n for n in tree.body if isinstance(n, ast.Assign)]
    listed = {name for a in assigned for name in ast.literal_eval(a.value)}
    assert imported <= listed
