"""Print the speed budget with measured values: `python -m tests.bench`. See docs/performance.md.

`--scan FILE...` measures only the safety scan and the secret masks, on labelled texts by source (see
`tests/bench/labelled_scan.py`). `--queue` measures only the order of the review queue, in simulated registries.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.bench import labelled_scan, queue
from tests.bench.place import Sizes
from tests.bench.report import print_tables, write_page
from tests.bench.rows import GROUPS
from tests.bench.run import Run
from tests.bench.sized import SIZES


def _sizes(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names).difference(SIZES):
        raise argparse.ArgumentTypeError(f"unknown size {', '.join(sorted(unknown))}; use {', '.join(SIZES)}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of all sizes, without the slow rows: two and a half minutes"
    )
    parser.add_argument("--compare", metavar="REVISION", help="measure the code of this Git revision, too, in turns")
    parser.add_argument("--repeat", type=int, metavar="N", help="rounds; default: 3 with --compare, else 1")
    parser.add_argument(
        "--sizes",
        type=_sizes,
        metavar="SIZE,...",
        help=f"projects for commands and hooks: {', '.join(SIZES)}; default: all, with --quick {SIZES[0]}",
    )
    parser.add_argument("--only", nargs="+", metavar="GROUP", help=f"only these groups or rows: {', '.join(GROUPS)}")
    parser.add_argument("--folder", type=Path, help="keep the generated projects here, for the next run")
    parser.add_argument("--write", action="store_true", help="write the table into docs/performance.md")
    parser.add_argument("--queue", type=int, metavar="N", help="only the review queue, in N worlds of each kind")
    parser.add_argument("--scan", nargs="+", type=Path, metavar="FILE", help="only the scan, on labelled texts (JSONL)")
    options = parser.parse_args()
    if options.scan:
        print(labelled_scan.report(options.scan))
    elif options.queue:
        queue.report(1000, options.queue)
    else:
        sizes = Sizes().quick() if options.quick else Sizes()
        projects = options.sizes or (SIZES[:1] if options.quick else SIZES)
        with tempfile.TemporaryDirectory(prefix="ralphdeck-bench-") as temporary:
            run = Run(Path(temporary), options.folder or Path(temporary), sizes, projects, slow=not options.quick)
            run.measure(options.only or (), options.compare, options.repeat or (3 if options.compare else 1))
            print_tables(run)
            if options.write:
                write_page(run)


main()
