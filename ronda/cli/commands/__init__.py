"""The commands of ``ronda``, one file each; loaded when they are used."""
