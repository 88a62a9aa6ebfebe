"""The command line, as ``python -m maxmargin``."""

from maxmargin.cli import app

if __name__ == "__main__":
    app(prog_name="maxmargin")
