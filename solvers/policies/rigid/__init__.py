"""Policies that give each job what it asked for: FIFO, SJF, SRTF, Tiresias."""
