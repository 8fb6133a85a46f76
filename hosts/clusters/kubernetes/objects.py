"""Kubernetes objects in JSON or YAML, as ``kubectl get`` prints them, read field by field."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from ronda.hosts.clusters.kubernetes.quantities import quantity
from ronda.hosts.clusters.read import Text
from ronda.instances.errors import InputError, need
from ronda.instances.rules.diagnose import syntax
from ronda.instances.rules.problem import as_error, join, show
from ronda.instances.snapshots.snapshot import Noted

YAML_MIB = 16
"""The largest YAML document that is read; JSON takes a tenth of the time and memory."""

KUEUE = "kueue.x-k8s.io"

_BLANKS = re.compile(r"\s*")
_DEEPEST = 200
_FORM = "YAML as kubectl prints it, without aliases"
_WORDS = {str: "a string", bool: "true or false", list: "a list"}


class Doc:
    """An object of Kubernetes, or a part of one, that is read field by field.

    What is absent or null is None, or empty. Whatever has another type is refused with its place.
    """

    __slots__ = ("_path", "_where", "value")

    def __init__(self, value: Any, where: "str | Doc", *path: str | int) -> None:
        self.value, self._where, self._path = value, where, path
        if not isinstance(value, dict):
            raise InputError(self.place, show(value), "an object")

    @property
    def place(self) -> str:
        """The place for messages: the file, the object, and the path in it."""
        return self.at()

    def at(self, *path: str | int) -> str:
        """Return the place of a field, for messages."""
        whole, outer = self._path + path, self._where
        while isinstance(outer, Doc):
            whole, outer = outer._path + whole, outer._where
        inner = ""
        for key in whole:
            inner = f"{inner}[{key}]" if isinstance(key, int) else join(inner, key)
        return f"{outer}, {inner}" if inner else outer

    def get(self, *path: str) -> Any:
        """Return a value of any type by its path, or None."""
        value: Any = self.value
        for k, key in enumerate(path):
            if not isinstance(value, dict):
                raise InputError(self.at(*path[:k]), show(value), "an object")
            value = value.get(key)
            if value is None:
                return None
        return value

    def wrong(self, *path: str, expected: str) -> InputError:
        """Return the error for a field."""
        return InputError(self.at(*path), show(self.get(*path)), expected)

    def _typed(self, kind: Any, path: tuple[str, ...]) -> Any:
        value = self.get(*path)
        if value is not None and not isinstance(value, kind):
            raise self.wrong(*path, expected=_WORDS[kind])
        return value

    def text(self, *path: str) -> str | None:
        """Return a text; None if it is empty, too."""
        return self._typed(str, path) or None

    def flag(self, *path: str) -> bool | None:
        """Return a truth value."""
        found: bool | None = self._typed(bool, path)
        return found

    def whole(self, *path: str) -> int | None:
        """Return a whole number that 32 bits hold."""
        value = self.get(*path)
        if value is None or (type(value) is int and abs(value) < 2**31):
            return value
        raise self.wrong(*path, expected="a whole number of 32 bits")

    def amount(self, *path: str) -> Fraction | None:
        """Return a quantity."""
        value = self.get(*path)
        if value is None:
            return None
        try:
            return quantity(value)
        except (ValueError, TypeError):  # TypeError: a list, which cannot be remembered
            expected = 'a quantity of Kubernetes, such as "500m" or "40Gi"'
            raise self.wrong(*path, expected=expected) from None

    def amounts(self, *path: str) -> dict[str, Fraction]:
        """Return quantities of resources, none negative."""
        found = {}
        for name in self.doc(*path).value:
            amount = self.amount(*path, str(name))
            if amount is not None and amount < 0:
                raise self.wrong(*path, str(name), expected="a quantity of at least 0")
            found[str(name)] = amount or Fraction(0)
        return found

    def time_s(self, *path: str) -> float | None:
        """Return a time in seconds since the Unix epoch; Go's zero (of the year 1) is None."""
        text = self.text(*path)
        if text is None:
            return None
        try:
            time = datetime.fromisoformat(text)
            seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            raise self.wrong(*path, expected='a time such as "2026-01-31T12:00:00Z"') from None
        return seconds if seconds >= 0 else None

    def labels(self, *path: str) -> dict[str, str]:
        """Return texts by name."""
        told = ((str(key), self._typed(str, (*path, str(key)))) for key in self.doc(*path).value)
        return {key: text for key, text in told if text is not None}

    def texts(self, *path: str) -> list[str]:
        """Return a list of texts."""
        found = self._typed(list, path) or []
        if not all(isinstance(text, str) for text in found):
            raise self.wrong(*path, expected="a list of strings")
        return found

    def docs(self, *path: str) -> list["Doc"]:
        """Return a list of objects."""
        found = self._typed(list, path) or []
        return [Doc(value, self, *path, k) for k, value in enumerate(found)]

    def doc(self, *path: str) -> "Doc":
        """Return an object; an empty one if it is absent."""
        value = self.get(*path)
        return Doc({} if value is None else value, self, *path)

    @property
    def name(self) -> str:
        """The object's name, which must be there."""
        name = self.text("metadata", "name")
        if name is None:
            raise InputError(self.place, "no metadata.name", "the name of each object")
        return name

    @property
    def namespace(self) -> str | None:
        """The object's namespace."""
        return self.text("metadata", "namespace")

    @property
    def id(self) -> str:
        """Namespace and name."""
        return self.id_of(self.name)

    def id_of(self, name: str) -> str:
        """Return the id of an object of some name in the namespace of this one."""
        return f"{self.namespace}/{name}" if self.namespace else name

    def condition(self, kind: str) -> "Doc":
        """Return a condition of the object's status; an empty object if it has none."""
        found = (c for c in self.docs("status", "conditions") if c.text("type") == kind)
        return next(found, Doc({}, self, "status", "conditions"))

    def holds(self, kind: str) -> bool:
        """Return whether a condition of the object's status is true."""
        return self.condition(kind).text("status") == "True"


class Objects:
    """The objects of all files of a cluster, each once; `noted` is what was not read."""

    def __init__(self, files: Sequence[Text], noted: Noted) -> None:
        self.source = ", ".join(file.place for file in files)
        self.noted = noted
        self._known: dict[tuple[str, str], dict[str, Doc]] = {}
        self._asked: set[str] = set()
        for file in files:
            read = _json_values if file.text.lstrip()[:1] in (b"{", b"[") else _yaml_values
            values = read(file)
            if not values:
                raise InputError(file.place, "no object", "the output of kubectl get -o json")
            for k, value in enumerate(values, 1):  # there may be several in a row
                place = file.place if len(values) == 1 else f"{file.place}, document {k}"
                self.add(Doc(value, place))

    def add(self, document: Doc) -> None:
        """Add an object, or all objects of a list."""
        kind, version = document.text("kind"), document.text("apiVersion") or ""
        if kind is None:
            raise InputError(document.place, "no field kind", "an object of Kubernetes")
        if kind.endswith("List") and "items" in document.value:
            # The items of a list of one kind need not say which (the API leaves it out).
            each = {"kind": kind[:-4], "apiVersion": version} if kind != "List" else {}
            for item in document.docs("items"):
                self.add(Doc({**each, **item.value}, item.place))
            return
        group = version.rpartition("/")[0] or (KUEUE if kind == "Workload" and not version else "")
        named = Doc(document.value, f"{document.place} ({kind} {show(document.id)})")
        other = self._known.setdefault((kind, group), {}).setdefault(document.id, named)
        if other.value != named.value:
            found = f"{kind} {show(document.id)} in another state than in {other.place}"
            raise InputError(document.place, found, "each object once, of one moment")

    def of(self, kind: str, *groups: str) -> list[Doc]:
        """Return all objects of a kind, in the given API groups (by default, in any)."""
        self._asked.add(kind)
        known = ((k, g, docs) for (k, g), docs in self._known.items())
        return [d for k, g, ds in known if k == kind and g in (groups or (g,)) for d in ds.values()]

    def named(self, kind: str, groups: Sequence[str], id: str) -> Doc | None:
        """Return the object of an id, of a kind in one of some API groups, or None."""
        self._asked.add(kind)
        found = (self._known.get((kind, group), {}).get(id) for group in groups)
        return next((doc for doc in found if doc is not None), None)

    def note_rest(self) -> None:
        """Count the objects of kinds that nobody has asked for."""
        for (kind, _), docs in self._known.items():
            if kind not in self._asked:
                first = f"{kind} {next(iter(docs))}"
                self.noted.add("object of a kind that is not read", first, len(docs))

    def latest_s(self) -> float | None:
        """Return the latest time that any object tells."""
        every = [doc for docs in self._known.values() for doc in docs.values()]
        found = [doc.time_s("metadata", "creationTimestamp") for doc in every]
        found += [doc.time_s("status", "startTime") for doc in every]
        for key in ("lastTransitionTime", "lastHeartbeatTime"):
            found += [c.time_s(key) for doc in every for c in doc.docs("status", "conditions")]
        return max((time for time in found if time is not None), default=None)


def _json_values(file: Text) -> list[Any]:
    def number(word: str) -> float:
        raise ValueError(f"{word} is no number of JSON")

    decoder, found = json.JSONDecoder(parse_constant=number), []
    try:
        text, at = file.text.decode().strip(), 0
        while at < len(text):
            value, end = decoder.raw_decode(text, at)
            found.append(value)
            at = _BLANKS.match(text, end).end()  # type: ignore[union-attr]
        return found
    except RecursionError:
        expected = "at most some hundred levels"
        raise InputError(file.place, "brackets nested too deeply", expected) from None
    except ValueError:
        raise as_error(file.place, [syntax(file.text)]) from None


def _yaml_values(file: Text) -> list[Any]:
    need(file.place, "yaml")
    import yaml

    if len(file.text) > YAML_MIB << 20:
        expected = f"at most {YAML_MIB} MiB, or JSON (kubectl get -o json)"
        raise InputError(file.place, f"YAML of {len(file.text) >> 20} MiB", expected)

    class Plain(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """A loader that leaves times as texts."""

    Plain.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if not pair[0].endswith((":timestamp", ":merge"))]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        depth = 0
        for event in yaml.parse(file.text, Loader=Plain):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > _DEEPEST:  # libyaml crashes far down
                alias = isinstance(event, yaml.AliasEvent)
                found = f"the alias *{event.anchor}" if alias else f"more than {_DEEPEST} levels"
                raise InputError(_marked(file, event.start_mark), found, _FORM)
        return [value for value in yaml.load_all(file.text, Loader=Plain) if value is not None]
    except yaml.MarkedYAMLError as error:
        place, found = _marked(file, error.problem_mark), f"broken YAML ({error.problem})"
        raise InputError(place, found, _FORM) from None
    except yaml.YAMLError as error:
        found = " ".join(str(error).split())
        raise InputError(file.place, found, _FORM) from None
    except (ValueError, KeyError, AttributeError, TypeError) as error:  # such as !!bool x
        found = f"a value that its tag does not fit ({error})"
        raise InputError(file.place, found, _FORM) from None


def _marked(file: Text, mark: Any) -> str:
    return f"{file.place}, line {mark.line + 1} column {mark.column + 1}" if mark else file.place
