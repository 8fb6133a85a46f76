"""How good a plan is after how much time."""
