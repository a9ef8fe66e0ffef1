"""Run the program `ralphdeck` with `python -m tui`."""

from tui.cli import main

main()
