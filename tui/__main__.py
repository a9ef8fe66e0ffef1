"""The program `ralphdeck`, also as `python -m tui`."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit with its code. A hook of an agent does not wait for the command framework."""
    if sys.argv[1:2] == ["hook"]:
        from core.cli.hook_call import answer_call

        answer_call(sys.argv[1:])
    from tui.cli import main as run_program

    run_program()


if __name__ == "__main__":
    main()
