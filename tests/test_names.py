"""A name means one thing: classes in the package, and the words of ``--policy``."""

import ast
from collections import Counter
from pathlib import Path

from ronda.solvers.registry import POLICIES
from ronda.systems.helios.controllers import CONTROLLERS

ROOT = Path(__file__).parents[1]
FOLDERS = (
    *("instances", "formulations", "solvers", "horizon"),
    *("systems", "questions", "hosts", "bench", "ronda/cli"),
)


def public_classes():
    """Yield the name of every public class at the top of a module."""
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield node.name


def test_a_public_class_name_stands_once():
    """Whoever reads a name knows which class it is."""
    assert [name for name, n in Counter(public_classes()).items() if n > 1] == []


def test_a_policy_word_has_one_meaning():
    """No controller of ``ronda sleep`` has the name of a policy."""
    assert not POLICIES.keys() & CONTROLLERS.keys()
