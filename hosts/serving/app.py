"""The ASGI application: routes, authorisation, limits of size and time, and metrics.

Its OpenAPI document is made from the types of rounds and plans.
"""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import parse_qs

import msgspec
import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ronda.hosts.serving.allowed import served
from ronda.hosts.serving.hosts import HostAnswer, HostNews, HostSettings
from ronda.hosts.serving.lanes import Lanes, LateError, Response, failed
from ronda.hosts.serving.limits import ServerLimits
from ronda.instances.arguments import refuse_unfit
from ronda.instances.base import Index
from ronda.instances.errors import InputError
from ronda.instances.files.canonical import encode
from ronda.instances.files.json import parse
from ronda.instances.files.storage import unpack
from ronda.instances.plan import Plan, SolutionStatus, SolveRecord, StopReason
from ronda.instances.round import Round

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON, TEXT = b"application/json", b"text/plain; version=0.0.4; charset=utf-8"
ROUTES = {
    "/plan": ("POST",),
    "/hosts/": ("PUT", "POST", "DELETE"),
    "/healthz": ("GET",),
    "/metrics": ("GET",),
    "/openapi.json": ("GET",),
}


class RefusedError(Exception):
    """A request that gets a 4xx status, with the reason."""

    def __init__(self, status: int, why: str) -> None:
        self.status, self.why = status, why
        super().__init__(why)


class GoneError(Exception):
    """The error that a client has closed its connection."""


class App:
    """The application of one server."""

    def __init__(self, limits: ServerLimits, lanes: Lanes) -> None:
        self.limits, self.lanes = limits, lanes
        self._hosts: dict[str, bytes] = {}  # saved states of followed hosts
        self._turns: dict[str, asyncio.Lock] = {}  # a host's messages are handled in turn
        self._registry = registry = CollectorRegistry()
        labels = ("route", "status")
        self._requests = Counter("ronda_requests", "Requests.", labels, registry=registry)
        self._seconds = Histogram(
            "ronda_plan_seconds",
            "Seconds from a round to its plan, the wait included.",
            buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60),
            registry=registry,
        )
        self._fallbacks = Counter(
            "ronda_late", "Rounds that the server answered.", registry=registry
        )
        waiting = Gauge("ronda_waiting", "Rounds that wait for a process.", registry=registry)
        waiting.set_function(lambda: self.lanes.waiting)
        memory = Gauge("ronda_rss_bytes", "Memory of server and processes.", registry=registry)
        memory.set_function(lambda: rss_bytes([psutil.Process().pid, *self.lanes.pids]))

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        path = route_of(scope["path"])
        kind, ended = JSON, False

        async def hear() -> Message:
            nonlocal ended
            message = await receive()
            ended = not message.get("more_body", False)
            return message

        try:
            kind, answer = await self._answer(scope, hear)
        except GoneError:
            self.count(path, "gone")
            return
        except RefusedError as refused:
            answer = Response(refused.status, refused.why.encode())
        except InputError as error:
            answer = Response(400, str(error).encode())
        except Exception as error:
            answer = failed(error)
        if answer.status != 200:
            kind, answer = JSON, Response(answer.status, reason(answer.body.decode()))
        self.count(path, answer.status)
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(answer.body))]
        if answer.status == 200:
            await tell(send, answer, headers)
            return
        # A client that sends invalid or too much data is cut off after it could read the reason.
        await tell(send, answer, [*headers, (b"connection", b"close")], more=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limits.body_s):
                while not ended:
                    await hear()
        await send({"type": "http.response.body"})

    def count(self, route: str, status: int | str) -> None:
        """Count a request."""
        self._requests.labels(route, f"{status}").inc()

    async def _answer(self, scope: Message, receive: Receive) -> tuple[bytes, Response]:
        """Return the content type and the answer; raise RefusedError for a refused request."""
        path, headers = route_of(scope["path"]), dict(scope["headers"])
        if path == "other":
            raise RefusedError(404, f"no {scope['path']}: there are {', '.join(ROUTES)}")
        if scope["method"] not in ROUTES[path]:
            use = " or ".join(ROUTES[path])
            raise RefusedError(405, f"{scope['method']} {path}: use {use}")
        if path == "/healthz":  # it needs no token
            return JSON, Response(200, msgspec.json.encode({"waiting": self.lanes.waiting}))
        self._admit(headers)
        if path == "/metrics":
            return TEXT, Response(200, generate_latest(self._registry))
        if path == "/openapi.json":
            return JSON, Response(200, msgspec.json.encode(document()))
        return JSON, await self._decide(scope, headers, receive)

    def _admit(self, headers: Mapping[bytes, bytes]) -> None:
        if self.limits.token is None:
            return
        shown = headers.get(b"authorization", b"")
        if not hmac.compare_digest(shown, b"Bearer " + self.limits.token.encode()):
            raise RefusedError(401, "no token, or another one: Authorization: Bearer TOKEN")

    async def _decide(
        self, scope: Message, headers: Mapping[bytes, bytes], receive: Receive
    ) -> Response:
        """Decide the round in the body of a request, or do what it asks of a followed host."""
        began, loop = time.perf_counter(), asyncio.get_running_loop()
        policy, seed, limit_s = self._asked(scope["query_string"])
        if self.lanes.waiting >= self.limits.queue:
            raise RefusedError(429, f"{self.lanes.waiting} rounds wait already: ask again later")
        end_s = loop.time() + limit_s
        body = await self._body(headers, receive)
        _, _, name = scope["path"].partition("/hosts/")
        try:
            if not name:
                answer = await self.lanes.do("plan", body, policy, seed, end_s=end_s)
            else:
                answer = await self._host(scope["method"], name, body, policy, limit_s)
        except LateError:
            self._fallbacks.inc()
            why = f"no answer within {limit_s:g} s"
            if name:
                raise RefusedError(503, f"{why}: nothing that was told counts") from None
            answer = await asyncio.to_thread(kept, body, policy, why)
        if scope["method"] != "DELETE":
            self._seconds.observe(time.perf_counter() - began)
        return answer

    async def _host(
        self, method: str, name: str, body: bytes, policy: str, limit_s: float
    ) -> Response:
        """Begin, update or end a followed host; a late or failed answer changes nothing."""
        hosts, loop = self._hosts, asyncio.get_running_loop()
        if method == "PUT" and name not in hosts and len(hosts) >= self.limits.hosts:
            raise RefusedError(429, f"{len(hosts)} hosts are followed already: end one")
        try:
            async with self._turns.setdefault(name, asyncio.Lock()):
                if method != "PUT" and name not in hosts:
                    raise RefusedError(404, f"no host {name!r}: PUT what it has first")
                if method == "DELETE":
                    del hosts[name]
                    return Response(200, b"{}")
                work = ("begin", body, policy) if method == "PUT" else ("follow", hosts[name], body)
                answer = await self.lanes.do(*work, end_s=loop.time() + limit_s)
                if answer.status == 200:
                    hosts[name] = answer.state
                return answer
        finally:
            if name not in hosts:
                self._turns.pop(name, None)

    def _asked(self, query: bytes) -> tuple[str, int, float]:
        """Return the policy, seed and time limit of a request."""
        given = parse_qs(query.decode("latin-1"))
        for name in given:
            if name not in ("policy", "seed", "time_limit"):
                raise RefusedError(400, f"unknown parameter {name!r}: policy, seed, time_limit")
        most_s = self.limits.time_limit_s
        try:
            seed = int(given.get("seed", ["0"])[-1])
            limit_s = float(given.get("time_limit", [str(most_s)])[-1])
        except ValueError as error:
            raise RefusedError(400, f"seed or time_limit: {error}") from None
        if not 0 < limit_s <= most_s:
            raise RefusedError(400, f"time_limit above 0, at most {most_s:g} s")
        refuse_unfit("seed", seed, Index)
        named = given.get("policy")
        return self.limits.policy if named is None else served(named[-1]), seed, limit_s

    async def _body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Read a body within the limits of time and size."""
        most = int(self.limits.body_mib * 2**20)
        too_large = RefusedError(413, f"more than {self.limits.body_mib:g} MiB")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > most:
            raise too_large
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self.limits.body_s):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise GoneError
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise too_large
                    more = message.get("more_body", False)
        except TimeoutError:
            raise RefusedError(408, f"the body took more than {self.limits.body_s:g} s") from None
        return b"".join(parts)


def route_of(path: str) -> str:
    """Return the route of a path."""
    if path.startswith("/hosts/") and path.count("/") == 2 and len(path) > len("/hosts/"):
        return "/hosts/"
    return path if path in ROUTES and path != "/hosts/" else "other"


async def tell(
    send: Send, answer: Response, headers: list[tuple[bytes, bytes]], *, more: bool = False
) -> None:
    """Send an answer; `more` keeps the connection open."""
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body, "more_body": more})


def reason(why: str) -> bytes:
    """Return the body of a refusal."""
    return msgspec.json.encode({"error": why})


def kept(body: bytes, policy: str, why: str) -> Response:
    """Return the plan that keeps running jobs running, for a round without a decision."""
    round_ = parse(unpack(body, "round"), "round", Round)
    plan = Plan(
        policy=policy,
        allocations=round_.held,
        stop=StopReason.TIME_LIMIT,
        status=SolutionStatus.FALLBACK,
        record=SolveRecord(message=why),
    )
    return Response(200, encode(plan))


def rss_bytes(pids: list[int]) -> int:
    """Return the resident memory of processes in bytes."""
    total = 0
    for pid in pids:
        try:
            total += psutil.Process(pid).memory_info().rss
        except psutil.NoSuchProcess:  # the process has just ended
            continue
    return total


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
