"""`python -m tui`: the program `ralphdeck`."""

from tui.cli import main

main()
