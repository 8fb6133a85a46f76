"""Policies from outside ronda: a class in a file, an entry point of a package, or an object.

Such a class needs a method `plan` (`ronda.solvers.contract.Policy`) and keeps each parameter of its
``__init__`` in an attribute of the same name. A class without a ``name`` gets the name that it was
looked up by. A class without ``capabilities`` has none.
"""

import importlib.util
import inspect
import re
import sys
from functools import lru_cache, wraps
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.files.seal import checksum
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers import plugins
from ronda.solvers.contract import Capability, Policy

IN_FILE = r"[^()]+\.py:[A-Za-z_]\w*"
"""The pattern of a name of a class in a file, such as ``./mine.py:Mine``."""

CODE = "code"
"""The parameter with the checksum of a policy's file, so that records identify the code that
decided."""

MOST_BYTES = 2**24
"""The size in bytes above which a file is not read, because it cannot be a policy."""


def find(name: str) -> type | None:
    """Return the class of a policy in a file or an installed package, or None if there is none."""
    if re.fullmatch(IN_FILE, name):
        return _from_file(name)
    if (found := plugins.find("policies", name)) is None:
        return None
    return _named(found.load(f"--policy {name}"), name)


def code(cls: type) -> str:
    """Return the checksum of the file that a class was loaded from, or "" without a file."""
    return str(vars(cls).get(_CODE, ""))


_CODE = "__ronda_code__"


def _from_file(name: str) -> type:
    path, _, class_name = name.rpartition(":")
    module, its_code = imported(path, f"--policy {name}")
    if class_name not in vars(module):
        there = [each for each, found in vars(module).items() if hasattr(found, "plan")]
        expected = "one of " + ", ".join(there) if there else "a class with a method plan"
        raise InputError(f"--policy {name}", f"no {class_name} in {path}", expected)
    found = _named(vars(module)[class_name], name)
    setattr(found, _CODE, its_code)
    return found


def imported(path: str, place: str) -> tuple[ModuleType, str]:
    """Return the module in a user's file, and the checksum of the file.

    Raises InputError, naming `place`, if the file cannot be read or imported.
    """
    try:
        with Path(path).open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(place, str(error.strerror), "a Python file") from None
    if len(text) > MOST_BYTES:
        raise InputError(place, "more than 16 MiB", "a Python file")
    its_code = checksum(text)
    return _module(path, its_code, place), its_code


class _Fresh(SourceFileLoader):
    """A loader that reads the file itself.

    Bytecode is told from newer code by size and second, and files may be written twice in one.
    """

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the file as it is."""
        return self.source_to_code(self.get_data(self.path), self.path)


@lru_cache(maxsize=16)
def _module(path: str, its_code: str, place: str) -> ModuleType:
    """Import a file as a module with a unique name."""
    name = f"ronda_own_{its_code}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(place, "another suffix", "a Python file, NAME.py")
    spec.loader = loader = _Fresh(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses and pickle look for it
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise plugins.failed(place, error) from error
    return module


def _named(found: Any, name: str) -> type:
    """Check that a found object is a policy class, and return it under the given name."""
    if not isinstance(found, type):
        raise InputError(f"--policy {name}", type(found).__name__, "a class")
    _complete(found, name, f"--policy {name}")
    found.name = name  # type: ignore[attr-defined]
    _in_seconds(found)
    return found


def _in_seconds(cls: Any) -> None:
    """Let the `plan` of a class accept a deadline in seconds, or none."""
    plan = cls.plan
    if hasattr(plan, "in_seconds"):
        return

    @wraps(plan)
    def timed(
        self: Any,
        round: Round,
        *,
        deadline: Deadline | float | None = None,
        seed: int = 0,
        initial: Plan | None = None,
    ) -> Plan:
        found: Plan = plan(self, round, deadline=Deadline.of(deadline), seed=seed, initial=initial)
        return found

    timed.in_seconds = True  # type: ignore[attr-defined]
    cls.plan = timed


def _complete(cls: type, name: str, place: str) -> None:
    """Add the default name and capabilities to a class without them; check that it has `plan`."""
    if not callable(getattr(cls, "plan", None)):
        raise InputError(place, f"{cls.__name__} without a method plan", _PLAN)
    if not hasattr(cls, "name"):
        cls.name = name  # type: ignore[attr-defined]
    if not hasattr(cls, "capabilities"):
        cls.capabilities = Capability.NONE  # type: ignore[attr-defined]


_PLAN = "plan(self, round, *, deadline, seed, initial=None)"


def adopted(given: object) -> Policy:
    """Return an object as a policy after a check that it can plan."""
    if given is None:
        raise InputError("policy", "None", "a policy, or its name")
    if isinstance(given, type):
        raise InputError("policy", f"the class {given.__name__}", f"an object: {given.__name__}()")
    if not isinstance(given, Policy):
        _complete(type(given), type(given).__name__, "policy")
    return cast(Policy, given)


def parameters(cls: type) -> dict[str, Any]:
    """Return the parameters of a class and their defaults."""
    known = inspect.signature(cls).parameters.values()
    return {each.name: each.default for each in known if each.kind not in _STARRED}


_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def values(made: Policy) -> dict[str, Any]:
    """Return the parameters that a policy keeps, and the checksum of its file if it has one."""
    known = (name for name in parameters(type(made)) if hasattr(made, name))
    found = {name: getattr(made, name) for name in known}
    return found | ({CODE: own} if (own := code(type(made))) else {})


def make(cls: type, name: str, given: dict[str, Any]) -> Policy:
    """Make a policy from a class that is not a dataclass."""
    try:
        made = cls(**given)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
        raise InputError(f"--policy {name}", found, "values that it takes") from error
    for each in parameters(cls):
        if not hasattr(made, each):
            expected = "each parameter kept under its name, so that records can tell it"
            raise InputError(f"--policy {name}", f"no attribute {each!r}", expected)
    return cast(Policy, made)
