"""`python -m tests.reference [--check]`: write the generated pages of `docs/`, or report which are out of date."""

from __future__ import annotations

import sys
from typing import Final

from tests.reference import commands, json_output, mcp_server, settings

GENERATORS: Final = (commands, json_output, mcp_server, settings)


def main(arguments: list[str]) -> int:
    """Write all pages; with `--check` write nothing, and return 1 if a page is out of date."""
    outdated = [one for one in GENERATORS if not one.PAGE.exists() or one.PAGE.read_text("utf-8") != one.render_page()]
    for one in outdated:
        if "--check" in arguments:
            sys.stdout.write(f"{one.PAGE.name} is out of date; run: python -m tests.reference\n")
        else:
            one.PAGE.write_text(one.render_page(), "utf-8")
    return int(bool(outdated) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
