"""`python -m core.cli`: the program without a screen."""

from core.cli.program import main

main()
