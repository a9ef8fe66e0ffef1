"""`python -m core.cli` is `ralphdeck`."""

from core.cli import main

main()
