"""The OpenAPI document of the server, made from the types of rounds and plans."""

from functools import cache
from typing import Any

import msgspec

from ronda.hosts.serving.hosts import HostAnswer, HostNews, HostSettings
from ronda.instances.plan import Plan
from ronda.instances.round import Round

REFUSALS = {
    "400": "What is wrong with the request or the round",
    "401": "No token, or another one",
    "408": "The header or the body took too long",
    "413": "The body is too large",
    "422": "No plan keeps every limit",
    "429": "Too many rounds wait, or hosts are followed",
    "431": "The header is too large",
    "500": "A mistake of ronda's, told in its log",
}


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    kinds = (Round, Plan, HostSettings, HostNews, HostAnswer)
    (round_, plan, settings, news, told), parts = msgspec.json.schema_components(
        kinds, ref_template="#/components/schemas/{name}"
    )

    def json(schema: Any) -> dict[str, Any]:
        return {"application/json": {"schema": schema}}

    def get(about: str, kind: str) -> dict[str, Any]:
        ok = {"description": about, "content": {kind: {}}}
        return {"get": {"summary": about, "responses": {"200": ok}}}

    def operation(
        about: str, parameters: Any, body: Any, answer: Any, refusals: Any, ok: str = ""
    ) -> dict[str, Any]:
        answers = {"200": {"description": ok or about, "content": json(answer)}}
        answers |= {s: {"description": w, "content": json(error)} for s, w in refusals.items()}
        found = {"summary": about, "parameters": parameters, "responses": answers}
        return found | ({"requestBody": {"required": True, "content": json(body)}} if body else {})

    empty = {"type": "object"}
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    parameters = [
        {"name": name, "in": "query", "schema": {"type": kind}, "description": about}
        for name, kind, about in (
            ("policy", "string", "A policy of ronda, with parameters as in prices(gap=1e-3)"),
            ("seed", "integer", "Of everything random"),
            ("time_limit", "number", "Seconds for the decision, its wait included"),
        )
    ]
    name = [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]
    late = {"404": "No such host", "503": "No answer in time: nothing that was told counts"}
    take = "Take what has happened, and say what to change"
    return {
        "openapi": "3.1.0",
        "info": {"title": "ronda", "version": "1"},
        "paths": {
            "/plan": {
                "post": operation("Decide a round", parameters, round_, plan, REFUSALS, "The plan")
            },
            "/hosts/{name}": {
                "put": operation("Begin to follow a host", name, settings, empty, REFUSALS),
                "post": operation(take, name, news, told, REFUSALS | late),
                "delete": operation("End to follow a host", name, None, empty, REFUSALS | late),
            },
            "/healthz": get("Whether it is there, and how many rounds wait", "application/json"),
            "/metrics": get("Counters for Prometheus", "text/plain"),
        },
        "components": {
            "schemas": parts,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }
