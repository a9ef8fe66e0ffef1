"""Files that a program writes and addresses that it contacts, by strace."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

STRACE: Final = shutil.which("strace")
_CALLS: Final = (
    "connect,sendto,sendmsg,sendmmsg,open,openat,openat2,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,"
    "symlink,symlinkat,mknod,mknodat"
)
_CALL: Final = re.compile(r"(?:\[pid +\d+\] |\d+ +)?(\w+)\((.*)")
_PATH: Final = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
_WRITING: Final = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC")
_LOCAL: Final = ('inet_addr("127.', 'inet_pton(AF_INET6, "::1"')


def traced(command: Sequence[str], log: Path) -> list[str]:
    """The command under strace, with all its children."""
    assert STRACE is not None
    return [STRACE, "-f", "--seccomp-bpf", "-qq", "-y", "-s", "4096", "-e", f"trace={_CALLS}", "-o", str(log), *command]


def remote_addresses(log: Path) -> list[str]:
    """Calls that contact another machine or resolve a name, as strace prints them."""
    return [
        line
        for line in log.read_text("utf-8", "replace").splitlines()
        if ("sa_family=AF_INET" in line and not any(local in line for local in _LOCAL))
        or ("/etc/resolv.conf" in line and "openat" in line)
    ]


def written_paths(log: Path) -> Iterator[Path]:
    """Files and folders that were created or opened for writing, successfully or not."""
    for line in log.read_text("utf-8", "replace").splitlines():
        call = _CALL.match(line)
        if call is None or (call[1].startswith("open") and not any(flag in line for flag in _WRITING)):
            continue
        if call[1] in ("connect", "sendto", "sendmsg", "sendmmsg"):
            continue
        for folder, name in _PATH.findall(call[2]):
            yield Path(folder, name)
