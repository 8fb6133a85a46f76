"""The user's rules: functions that take a round and its options and return limits and terms.

This module reads rules from a file or checks given ones; `ronda.solvers.applied_rules` calls them.
"""

import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ronda.instances.errors import InputError
from ronda.solvers.contract import Capability
from ronda.solvers.own import imported

Rule = Callable[..., Any]
"""A function of a `Round` and its `OptionTable` that returns one `Limit` or `Term`, or several.

A rule with a third parameter ``rack`` also gets the rack of each option.
"""

WHAT = "a function of the round and its options"


@dataclass(frozen=True)
class Rules:
    """Rules in order; `path` and `code` are their file and its checksum."""

    functions: tuple[Rule, ...] = ()
    path: str = ""
    code: str = ""

    @property
    def seeing_racks(self) -> list[str]:
        """The names of the rules that take racks."""
        return [name_of(rule) for rule in self.functions if sees_racks(rule)]

    def __bool__(self) -> bool:
        """Return whether there are any rules."""
        return bool(self.functions)

    def __str__(self) -> str:
        """Return the file and checksum, which `rules` can load again, or the rules' names."""
        return f"{self.path}@{self.code}" if self.path else ", ".join(map(name_of, self.functions))


NO_RULES = Rules()

RACK = "rack"
"""The parameter of rules that take racks."""

EXTRA = "extra"
"""The parameter of policies that keep rules."""


def rules(given: object) -> Rules:
    """Return rules from a file, from functions, or from an existing `Rules`.

    Raises
    ------
    InputError
        If a file cannot be imported, has no rule or has another checksum, or if a rule is not a
        function of two arguments.
    """
    if isinstance(given, Rules):
        return given
    if isinstance(given, str | os.PathLike):
        return _in_file(os.fspath(given)) if given else NO_RULES
    if callable(given) or not isinstance(given, Iterable):
        raise InputError("extra", type(given).__name__, f"a list, each {WHAT}")
    return Rules(tuple(_callable(each, f"extra[{i}]") for i, each in enumerate(given)))


def rules_of(policy: object) -> Rules:
    """Return the rules that a policy keeps; without such a parameter there are none."""
    found = getattr(policy, EXTRA, NO_RULES)
    return found if isinstance(found, Rules) else NO_RULES


def with_rules(policy: Any, extra: object, place: str) -> Any:
    """Return a policy that keeps additional rules, or the same policy if there are none.

    Raises InputError if the policy cannot keep rules.
    """
    own = rules(extra)
    if not own:
        return policy
    if Capability.RULES not in policy.capabilities:
        raise InputError(place, f"{policy.name}, which keeps no rules", "milp or prices")
    if kept := rules_of(policy):
        raise InputError(place, f"rules besides those of extra={kept}", "one of the two")
    return replace(policy, **{EXTRA: own})


def _in_file(text: str | bytes) -> Rules:
    path, _, code = os.fsdecode(text).partition("@")
    module, found = imported(path, f"--with {path}")
    if code and code != found:
        raise InputError(f"--with {path}", "a file that has changed", "the one of this run")
    own = [
        each
        for name, each in vars(module).items()
        if inspect.isfunction(each)
        and each.__module__ == module.__name__
        and not name.startswith("_")
    ]
    if not own:
        raise InputError(f"--with {path}", "no rule", f"{WHAT}, with no _ before its name")
    return Rules(tuple(_callable(each, f"{path}: {each.__name__}") for each in own), path, found)


def _callable(given: object, place: str) -> Rule:
    if not callable(given):
        raise InputError(place, type(given).__name__, WHAT)
    try:
        inspect.signature(given).bind(None, None, **({RACK: None} if sees_racks(given) else {}))
    except TypeError:
        expected = f"{WHAT}, and of {RACK} if it asks where they are (a node can be a rack)"
        raise InputError(place, f"parameters {inspect.signature(given)}", expected) from None
    except ValueError:
        pass  # a built-in function has no signature
    return given


def sees_racks(rule: Rule) -> bool:
    """Return whether a rule takes the rack of each option."""
    try:
        return RACK in inspect.signature(rule).parameters
    except ValueError:
        return False


def name_of(rule: Rule) -> str:
    """Return the name of a rule."""
    return str(getattr(rule, "__name__", type(rule).__name__)).strip("<>")
