"""The OpenAPI document of the server, made from the types of rounds and plans."""

from functools import cache
from typing import Any

import msgspec

from ronda.instances.plan import Plan
from ronda.instances.round import Round

REFUSALS = {
    "400": "What is wrong with the request or the round",
    "401": "No token, or another one",
    "408": "The header or the body took too long",
    "413": "The body is too large",
    "422": "No plan keeps every limit",
    "429": "Too many rounds wait",
    "431": "The header is too large",
}


@cache
def document() -> dict[str, Any]:
    """Return the document."""
    (round_, plan), parts = msgspec.json.schema_components(
        (Round, Plan), ref_template="#/components/schemas/{name}"
    )

    def json(schema: dict[str, Any]) -> dict[str, Any]:
        return {"application/json": {"schema": schema}}

    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    refusals = {s: {"description": w, "content": json(error)} for s, w in REFUSALS.items()}
    parameters = [
        {"name": name, "in": "query", "schema": {"type": kind}, "description": about}
        for name, kind, about in (
            ("policy", "string", "A policy of ronda, with parameters as in prices(gap=1e-3)"),
            ("seed", "integer", "Of everything random"),
            ("time_limit", "number", "Seconds for the decision, its wait included"),
        )
    ]

    def get(about: str, kind: str) -> dict[str, Any]:
        ok = {"description": about, "content": {kind: {}}}
        return {"get": {"summary": about, "responses": {"200": ok}}}

    plan_of = {
        "summary": "Decide a round",
        "parameters": parameters,
        "requestBody": {"required": True, "content": json(round_)},
        "responses": {"200": {"description": "The plan", "content": json(plan)}} | refusals,
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "ronda", "version": "1"},
        "paths": {
            "/plan": {"post": plan_of},
            "/healthz": get("Whether it is there, and how many rounds wait", "application/json"),
            "/metrics": get("Counters for Prometheus", "text/plain"),
        },
        "components": {
            "schemas": parts,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }
