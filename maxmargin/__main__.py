"""The command line, as ``python -m maxmargin``."""

from maxmargin.cli import app

app(prog_name="maxmargin")
