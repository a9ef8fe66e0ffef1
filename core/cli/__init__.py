"""The command line of ralphdeck: one module a command group, argument parsing and printing only.

What scripts may rely on is described in `core.cli.shapes` (JSON) and in `ralphdeck --help` (exit codes).
"""

from core.cli.entry import alias, main

__all__ = ["alias", "main"]
