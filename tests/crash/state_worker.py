"""A child process that adds documents to the user's own state until it is killed, or up to a number."""

from __future__ import annotations

import sys
from pathlib import Path

from core.files.user_files import UserStore


def main() -> None:
    path, writer, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    store = UserStore(path)
    for number in range(count):
        with store.transaction() as tables:
            tables.table(writer).insert({"number": number})
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
