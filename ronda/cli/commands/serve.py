"""``ronda serve``: decide rounds over HTTP."""

import asyncio
import os
from pathlib import Path

import click

from ronda.cli.command import taught
from ronda.cli.options import json_option, policy_option, time_limit_option
from ronda.cli.output import emit, note
from ronda.hosts.serving.limits import ServerLimits
from ronda.instances.errors import InputError, need
from ronda.instances.files.storage import label


@taught(
    "serve",
    "ronda serve --workers 2",
    "ronda serve --host 0.0.0.0 --token-file token.txt --time-limit 2",
)
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(1, 65_535), default=8383)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="File with the token that requests must show; needed for other addresses than loopback.",
)
@click.option(
    "--workers", type=click.IntRange(1, 1024), help="Processes that decide.  [default: a core each]"
)
@click.option("--max-mib", type=click.FloatRange(1e-3), default=32.0)
@policy_option
@time_limit_option(10.0, "For one round, its wait included; requests may ask for less.")
@json_option
def command(
    host: str,
    port: int,
    token_file: Path | None,
    workers: int | None,
    max_mib: float,
    policy: str,
    time_limit: float,
    as_json: bool,
) -> None:
    """Decide the rounds that are posted to /plan, in warm processes, until interrupted.

    With --json, the command prints its address once it listens. /healthz reports whether the
    service is up, /metrics has counts for Prometheus, and /openapi.json describes the requests. A
    round that is not decided in time is answered with the running jobs as they are.
    """
    need("ronda serve", "h11", "prometheus_client", "uvicorn")
    from ronda.hosts.serving.serve import serve  # imports them

    limits = ServerLimits(
        host=host,
        port=port,
        token=None if token_file is None else _token(token_file),
        policy=policy,
        workers=workers or len(os.sched_getaffinity(0)),
        time_limit_s=time_limit,
        body_mib=max_mib,
    )

    def ready() -> None:
        url = f"http://{host}:{port}/plan"
        if as_json:
            emit({"url": url, "workers": limits.workers})
        else:
            note(f"{url}, {limits.workers} processes")

    asyncio.run(serve(limits, ready=ready))


def _token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("--token-file", f"{label(path)}: {error}", "a file to read") from None
