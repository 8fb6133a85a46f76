"""Policies that choose clocks or sleep: PowerFlow, milp-energy, Zeus, race-to-idle."""
