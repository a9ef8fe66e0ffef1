"""The command line of ralphdeck without a screen.

`commands` parse the arguments, `json` has the JSON output, `render` the text output, and `support` what commands share.
The program `ralphdeck` is `tui.cli`, which adds the dashboard.
"""

from core.cli.program import alias, main

__all__ = ["alias", "main"]
