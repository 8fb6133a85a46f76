"""What speed is worth now.

Here options get values: `rank` (heSRPT), its thrifty form and the others, the cost of switching,
and ageing. What a round's limits are is in `ronda.formulations.allocation`.
"""

from ronda.formulations.objectives.forms import minds_power, parameters, values
from ronda.formulations.objectives.outlook import Outlook, horizon_s
from ronda.formulations.objectives.thrift import worth_of_a_watt

__all__ = [
    "Outlook",
    "horizon_s",
    "minds_power",
    "parameters",
    "values",
    "worth_of_a_watt",
]
