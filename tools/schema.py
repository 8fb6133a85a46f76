"""JSON Schemas of the file formats, made from the types that read the files.

``python -m tools.schema [DOCS]`` writes ``DOCS/schemas/*.schema.json`` and brings
the tables in ``DOCS/formats.md`` up to date (DOCS: ``docs``).
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from ronda.instances.arguments import described, summary
from ronda.instances.files.json import KINDS as DOCUMENTS
from ronda.questions.certificates.record import RoundCertificate
from tools import formats_page

KINDS: dict[str, type[msgspec.Struct]] = {
    **DOCUMENTS,
    "ronda/round-certificate/1": RoundCertificate,
}
"""The type of each format that has a schema."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(format: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a file format such as ``"ronda/round/1"``.

    What no schema can say (references between fields, order, units, capacity) is checked by
    `ronda.instances.rules.validate`.
    """
    kind = KINDS[format]
    (top,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    own = structs(kind)
    for name, part in parts.items():
        if name in own:
            _describe(part, own[name])
        else:
            part.pop("description", None)  # an enum: its values are the description
    body = parts.pop(kind.__name__)
    assert top["$ref"].endswith(kind.__name__)
    body["required"] = ["format", *body.get("required", [])]
    head = {"$schema": _DIALECT, "$id": f"urn:{format.replace('/', ':')}"}
    whole: dict[str, Any] = head | body | {"$defs": dict(sorted(parts.items()))}
    return whole


def file_name(format: str) -> str:
    """Return the name of a format's schema file, such as ``round-1.schema.json``."""
    return "-".join(format.split("/")[1:]) + ".schema.json"


def text(format: str) -> str:
    """Return the text of a format's schema file."""
    return json.dumps(schema(format), indent=2, ensure_ascii=False) + "\n"


def write(docs: Path) -> None:
    """Write the schema files and the tables of the format page."""
    folder = docs / "schemas"
    folder.mkdir(parents=True, exist_ok=True)
    for name in KINDS:
        (folder / file_name(name)).write_text(text(name), encoding="utf-8")
    page = docs / "formats.md"
    old = page.read_text(encoding="utf-8")
    page.write_text(formats_page.fill(old, [schema(name) for name in KINDS]), encoding="utf-8")


def structs(kind: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct]]:
    """Return a struct type and all that it refers to, by name."""
    found: dict[str, type[msgspec.Struct]] = {}

    def visit(info: Any) -> None:
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls.__name__ in found:
                return
            found[info.cls.__name__] = info.cls
        if isinstance(info, msgspec.Struct):
            for value in msgspec.structs.asdict(info).values():
                for inner in value if isinstance(value, tuple) else (value,):
                    visit(inner)

    visit(msgspec.inspect.type_info(kind))
    return found


def _describe(part: dict[str, Any], kind: type[msgspec.Struct]) -> None:
    """Put a struct's docstring into its schema, sentence by field."""
    part["description"] = summary(kind)
    words = {k: v.replace("None", "null") for k, v in described(kind).items()}  # as files
    if part["type"] == "array":
        names = kind.__struct_fields__
        for name, item in zip(names, part["prefixItems"], strict=True):
            item["title"] = name
            item["description"] = words[name]
        return
    tag = kind.__struct_config__.tag_field
    for name, field in part["properties"].items():
        field["description"] = "Which of the models this is." if name == tag else words[name]


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
