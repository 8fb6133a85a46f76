"""Published systems: each in one room, found by name and known to nothing below it."""
