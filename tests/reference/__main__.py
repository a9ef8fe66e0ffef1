"""`python -m tests.reference [--check]`: write the generated pages and the plugin, or report which are out of date."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tests.fence_token import fix_fence_token
from tests.reference import (
    adapters,
    commands,
    json_output,
    mcp_handshake,
    mcp_server,
    plugin,
    scan_rules,
    settings,
    tested_agents,
)

GENERATORS: Final = (
    *(adapters, commands, json_output, mcp_handshake, mcp_server, scan_rules, settings, tested_agents),
)
ROOT: Final = Path(__file__).parents[2]


def main(arguments: list[str]) -> int:
    """Write all files; with `--check` write nothing, and return 1 if a file is out of date."""
    fix_fence_token()
    files = {one.PAGE: one.render_page() for one in GENERATORS} | plugin.render_pages()
    outdated = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in outdated:
        if "--check" in arguments:
            sys.stdout.write(f"{path.relative_to(ROOT)} is out of date; run: python -m tests.reference\n")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], "utf-8")
    return int(bool(outdated) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
