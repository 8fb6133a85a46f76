"""The tables of ``docs/formats.md``, made from the JSON Schemas."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

_MARK = re.compile(r"(<!-- fields of (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_UNITS = {"s": "s", "w": "W", "j": "J", "gib": "GiB"}
_BOUNDS = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"))
_INT32 = 2**31 - 1


def fill(page: str, schemas: Sequence[dict[str, Any]]) -> str:
    """Return the page with the table of every record that it marks brought up to date.

    A pair of comments ``fields of NAME`` and ``end`` marks each. A record without a table, or a
    table without a record, is a `ValueError`.
    """
    parts = {name: part for s in schemas for name, part in ((s["title"], s), *s["$defs"].items())}
    enums = {name: part["enum"] for name, part in parts.items() if "enum" in part}
    records = {name: part for name, part in parts.items() if name not in enums}
    marked = [match[2] for match in _MARK.finditer(page)]
    if sorted(marked) != sorted(records):
        odd = sorted(set(marked) ^ set(records)) or [n for n in marked if marked.count(n) > 1]
        raise ValueError(f"records and tables of the page differ in {', '.join(odd)}")
    return _MARK.sub(lambda m: f"{m[1]}\n{table(records[m[2]], enums)}\n{m[3]}", page)


def table(record: dict[str, Any], enums: dict[str, list[str]]) -> str:
    """Return the description and the fields of one record as Markdown."""
    lines = [_prose(record["description"]), ""]
    rows = list(_rows(record, enums))
    if not rows:
        return "\n".join(lines)
    array = record["type"] == "array"
    lines += ["Written as an array of these values, in this order.", ""] if array else []
    lines += ["| field | type | unit | default | meaning |", "| --- | --- | --- | --- | --- |"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _rows(record: dict[str, Any], enums: dict[str, list[str]]) -> Iterable[tuple[str, ...]]:
    if record["type"] == "array":
        fields = {f["title"]: f for f in record["prefixItems"]}
        needed = set(fields)
    else:
        fields, needed = record["properties"], set(record.get("required", ()))
    for name, field in fields.items():
        yield (
            f"`{name}`",
            _type(field, enums),
            _unit(name),
            "required" if name in needed else _default(field),
            _single(field["description"]),
        )


def _type(field: dict[str, Any], enums: dict[str, list[str]]) -> str:
    """Put the schema of a field into words."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        if name in enums:
            return " or ".join(f"`{value}`" for value in enums[name])
        return f"[{name}](#{name.lower()})"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(_type(member, enums) for member in field["anyOf"])
    kind = field.get("type", "any")
    if kind == "array":
        if "prefixItems" in field:
            inner = ", ".join(_type(item, enums) for item in field["prefixItems"])
            return f"array ({inner})"
        return f"array of {_type(field['items'], enums)}"
    if kind == "object":
        values = field.get("additionalProperties")
        return f"object of {_type(values, enums)} by name" if values else "object"
    bounds = (f"{sign} {field[key]:g}" for key, sign in _BOUNDS if field.get(key, _INT32) != _INT32)
    text = "non-empty" if field.get("minLength") else ""
    return " ".join(filter(None, (text, kind, " and ".join(bounds))))


def _unit(name: str) -> str:
    head, _, tail = name.rpartition("_")
    return _UNITS.get(tail, "") if head else {"joules": "J"}.get(name, "")


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{json.dumps(value)}`"


def _prose(text: str) -> str:
    """Turn the reStructuredText of a docstring (double backticks, ``::`` blocks) into Markdown."""
    out, code = [], False
    for line in text.splitlines():
        if line.startswith("    ") and not code:
            out.append("```text")
            code = True
        elif code and line and not line.startswith("    "):
            out[-1:] = ["```", ""]
            code = False
        out.append(line.removeprefix("    ") if code else line.replace("::", ":"))
    return _single("\n".join([*out, "```"] if code else out))


def _single(text: str) -> str:
    return re.sub(r"(?<!`)``(?!`)", "`", text)
