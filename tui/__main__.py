"""The program `ralphdeck`, also as `python -m tui`."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    if sys.argv[1:2] == ["hook"]:  # an agent does not wait for the command framework
        _import_msgspec()
        from core.cli.hook_call import answer_call

        answer_call(sys.argv[1:])
    from tui.cli import main as run_program

    run_program()


def _import_msgspec() -> None:
    """Import msgspec without `typing_extensions`: 8 ms for what Python 3.11 has."""
    if "typing_extensions" not in sys.modules:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]
        import msgspec  # noqa: F401

        del sys.modules["typing_extensions"]


if __name__ == "__main__":
    main()
