"""``ronda mcp``: a session as an assistant has it, over standard input and output."""

import asyncio
import json
import sys
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from ronda.instances.files import canonical
from ronda.instances.files.packaged import load

Calls = list[tuple[str, dict[str, Any]]]


def _answers(calls: Calls) -> tuple[list[str], list[Any]]:
    """Return the tools of a server for a packaged round, and its answers to calls."""

    async def session() -> tuple[list[str], list[Any]]:
        command = ["-m", "ronda", "mcp", "round-tenants"]
        server = StdioServerParameters(command=sys.executable, args=command)
        async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            tools = (await client.list_tools()).tools
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
            return [t.name for t in tools], [await client.call_tool(*call) for call in calls]

    return asyncio.run(session())


def test_a_session() -> None:
    """Each tool answers; what a client may not say is one line, and nothing is read for it."""
    text = canonical.encode(load("clock-or-gpus")).decode()
    tools, found = _answers(
        [
            ("jobs", {}),
            ("why", {"job": "j71"}),
            ("queues", {}),
            ("solve", {"policy": "fifo"}),
            ("solve", {"policy": "fifo", "round": text}),
            ("whatif", {"gpus": {"vc0/A100": 8}}),
            ("fits", {"request": {"per": {"gpus": 4}, "partitions": ["vc0"]}}),
            ("why", {"job": "../../etc/passwd"}),
            ("solve", {"policy": "/etc/passwd"}),
            ("solve", {"policy": "milp(solver=/bin/sh)"}),
            ("solve", {"round": "/etc/passwd"}),
            ("whatif", {"gpus": {"H100": 8}}),
            ("fits", {"request": {"per": "many"}}),
            ("fits", {"request": {"gpus": 4}}),
        ]
    )
    assert tools == ["why", "fits", "jobs", "queues", "solve", "whatif"]
    good, bad = found[:7], found[7:]
    jobs, why, queues, plan, other, more, fits = (json.loads(each.content[0].text) for each in good)
    assert jobs["waiting_count"] == 8
    assert why["reason"]["kind"] == "limit"
    assert queues["queues"]
    assert plan["allocations"]
    assert other["round"] == load("clock-or-gpus").name
    assert more["said"]
    assert fits["sizes"]
    for each in bad:
        assert each.is_error
        assert len(each.content[0].text.splitlines()) == 1
        assert "root:" not in each.content[0].text
