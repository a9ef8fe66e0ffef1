"""Print what is extracted from the recorded sessions: `python -m tests.fix_sessions`. See README.md in this folder."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.fix_sessions.figures import LIMITS, measure
from tests.fix_sessions.payloads import CONVERSATIONS, convert_session
from tests.fix_sessions.report import render
from tests.fix_sessions.sessions import read_other_failures, read_sessions


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fix_sessions", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="only sessions with this text in their names")
    parser.add_argument("--agent", choices=CONVERSATIONS, help="replay all sessions as those of one agent")
    parser.add_argument("--worst", default=0, type=int, metavar="N", help="print N of the worst lessons word for word")
    parser.add_argument("--jobs", default=2, type=int, metavar="N", help="number of processes; default: 2")
    options = parser.parse_args()
    sessions = [session for session in read_sessions() if options.only in session.name]
    if options.agent:
        sessions = [one for session in sessions if (one := convert_session(session, options.agent)) is not None]
    if not sessions:
        parser.error(f"no such session has {options.only!r} in its name")
    with ProcessPoolExecutor(options.jobs) as executor:
        results = measure(sessions, read_other_failures(), executor)
    sys.stdout.write(f"{render(results, options.worst)}\n")
    sys.exit(not all(LIMITS[name].holds(value) for name, value in results.figures().items()))


if __name__ == "__main__":
    main()
