"""Real documents, and small changes of them that keep most of their shape."""

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from world import BREAKAGE

import ronda
from ronda.instances import generate
from ronda.instances.files.canonical import encode

Rng = np.random.Generator
Place = tuple[Any, Any]
"""A list or an object, and the index or name in it."""

ANSWER = "answer to "

ODD: tuple[Any, ...] = (
    *(None, True, [], {}, "", "x", "x" * 300, "é\u202e\x1b[31m\x00", "../../x", [[0]], {"a": 1}),
    *(0, -1, 1, 0.5, 3, 64, 10**6, 2**31 - 1, 2**53, 10**19),
    *(5e-324, 1e-300, 1e-9, 1e9, 1e17, 1e300, 1.7e308, -1e300),
)
"""What may stand anywhere instead."""

QUESTIONS: dict[str, Callable[[], Any]] = {
    **{f"tiny-{seed}": partial(generate.tiny_round, seed) for seed in range(4)},
    "round": partial(generate.round, 8, seed=1),
    "horizon": partial(generate.horizon, 4, 16, "loose", 1),
    "breaks": lambda: generate.broken(generate.horizon(4, 16, "loose", 2), BREAKAGE, 2),
    **{
        name: partial(ronda.load, name)
        for name in ("one-gpu", "clock-or-gpus", "energy-hand", "probe-wake", "probe-racks")
    },
}
"""Small rounds and instances, by name."""

NAMES = tuple(f"{kind}{name}" for name in QUESTIONS for kind in ("", ANSWER))
"""All documents: the questions, and an answer to each."""


@cache
def document(name: str) -> bytes:
    """Return a document as JSON."""
    question: Any = QUESTIONS[question_of(name)]()
    if not name.startswith(ANSWER):
        return encode(question)
    if isinstance(question, ronda.Round):
        return encode(ronda.solve(question, "prices"))
    return encode(ronda.run(question, "srtf"))


def question_of(name: str) -> str:
    """Return the name of the question that a document answers, or is."""
    return name.removeprefix(ANSWER)


def mutant(name: str, rng: Rng) -> bytes:
    """Return a document with one to three changes; one in ten is changed as text."""
    text = document(name)
    if rng.random() < 0.1:
        return _spoilt(text, rng)
    whole = json.loads(text)
    for _ in range(int(rng.integers(1, 4))):
        places = list(_places(whole))
        if places:
            CHANGES[rng.integers(len(CHANGES))](places, rng)
    return json.dumps(whole, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _places(inside: Any) -> Iterator[Place]:
    """Yield every place in a document."""
    keys: Any = ()
    if isinstance(inside, dict | list):
        keys = list(inside) if isinstance(inside, dict) else range(len(inside))
    for key in keys:
        yield inside, key
        yield from _places(inside[key])


def _pick(places: list[Place], rng: Rng, kind: Any = object) -> Place | None:
    """Return a place at random that holds something of a kind, if there is one."""
    fit = [(box, key) for box, key in places if _holds(box, key, kind)]
    return fit[rng.integers(len(fit))] if fit else None


def _holds(box: Any, key: Any, kind: Any) -> bool:
    """Tell whether a place is still there (an earlier change may have removed it) and fits."""
    try:
        return isinstance(box[key], kind)
    except (IndexError, KeyError):
        return False


def _odd(places: list[Place], rng: Rng) -> None:
    """Put something odd."""
    box, key = places[rng.integers(len(places))]
    box[key] = ODD[rng.integers(len(ODD))]


def _scale(places: list[Place], rng: Rng) -> None:
    """Change a number by a factor or by one."""
    if found := _pick(places, rng, (int, float)):
        box, key = found
        number = box[key]
        factor = float(rng.choice([-1.0, 0.0, 0.5, 2.0, 10.0, 1e-6, 1e6, 1e15]))
        whole = isinstance(number, int)
        box[key] = number + 1 if rng.random() < 0.3 else number * (int(factor) if whole else factor)


def _drop(places: list[Place], rng: Rng) -> None:
    """Remove something."""
    box, key = places[rng.integers(len(places))]
    del box[key]


def _repeat(places: list[Place], rng: Rng) -> None:
    """Repeat an element of a list."""
    lists = [(box, key) for box, key in places if isinstance(box, list) and key < len(box)]
    if lists:
        box, key = lists[rng.integers(len(lists))]
        box.insert(key, box[key])


def _swap(places: list[Place], rng: Rng) -> None:
    """Exchange what stands at two places, as far as the types agree."""
    if found := _pick(places, rng):
        box, key = found
        other = _pick(places, rng, type(box[key]))
        if other is not None:
            there, name = other
            box[key], there[name] = json.loads(json.dumps([there[name], box[key]]))


def _name(places: list[Place], rng: Rng) -> None:
    """Give a word the place of another."""
    found, other = _pick(places, rng, str), _pick(places, rng, str)
    if found and other:
        found[0][found[1]] = other[0][other[1]]


def _add(places: list[Place], rng: Rng) -> None:
    """Add an unknown field."""
    if found := _pick(places, rng, dict):
        found[0][found[1]]["unknown"] = ODD[rng.integers(len(ODD))]


CHANGES: tuple[Callable[[list[Place], Rng], None], ...] = (
    *(_odd, _scale, _scale, _scale, _drop, _repeat, _swap, _name, _add),
)
"""What may happen; numbers are changed most, as they pass the readers."""


def _spoilt(text: bytes, rng: Rng) -> bytes:
    """Cut a text, repeat a part of it, or put bytes into it."""
    first, last = sorted(rng.integers(0, len(text), 2).tolist())
    piece = (b"", text[first:last], b"1e999", b"\xff", b'"format":', b"[" * 5000, b"NaN")
    return (
        text[:first]
        + piece[rng.integers(len(piece))]
        + text[last if rng.random() < 0.5 else first :]
    )
