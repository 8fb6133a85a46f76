"""``python -m ronda``: the command line."""

from ronda.cli import main

if __name__ == "__main__":
    main()
