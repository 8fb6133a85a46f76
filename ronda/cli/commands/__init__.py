"""The commands of ``ronda``, one file each, loaded on use."""
