"""`python -m exactdp`: the command line, where the command `exactdp` is not on the path."""

from exactdp.apps.cli import main

if __name__ == "__main__":  # worker processes import this file, too
    main()
