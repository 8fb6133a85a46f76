"""What completion time an energy budget buys: sweeps, curves, bounds, prices and their report."""
