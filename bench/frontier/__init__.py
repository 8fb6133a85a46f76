"""What completion time an energy budget buys."""
