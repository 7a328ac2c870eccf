"""``python -m converter``: the command line."""

from converter.cli import main

main(prog_name="converter")
