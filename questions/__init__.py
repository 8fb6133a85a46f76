"""What else may be asked about a round: why, what if, which other plans, which moves."""
