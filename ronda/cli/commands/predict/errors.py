"""``ronda predict errors``: an instance whose declared sizes are wrong."""

from pathlib import Path

from msgspec.structs import replace

from ronda.cli.command import taught
from ronda.cli.load import instance as load_instance
from ronda.cli.load import written
from ronda.cli.options import instance_argument, seed_option, write_options


@taught("errors", "ronda predict errors venus-vcvgl --seed 6 --out wrong.json.zst")
@instance_argument
@seed_option
@write_options
def command(source: str, seed: int, out: Path, as_json: bool) -> None:
    """Let the jobs of INSTANCE declare sizes that are as wrong as Helios found predictions to be.

    10 % of jobs are wrong by up to 10 % of their size, 40 % by 10-50 %, 20 % by 50-100 %, 20 % by
    1-10 times and 10 % by 10-100 times their size, in either direction.
    """
    from ronda.formulations.prediction.helios_errors import with_errors

    found = with_errors(load_instance(source), seed)
    made = found.made | {"errors": seed}
    written(replace(found, made=made), out, as_json=as_json)
