"""Conversions that several adapters use: texts, times, beginnings of files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from core.base.masking import clip
from core.files.file_reader import decode_json, open_file
from core.records.times import parse_time
from core.sources.normalize import Fields

MAX_TEXT: Final = 4000  # characters of a task, condition or lesson
MAX_LABEL: Final = 200  # characters of a reason or title
MAX_PLANS: Final = 200  # of one folder
HEAD_BYTES: Final = 4096
_TIME_LENGTH: Final = len("2026-11-20 09:40:00")


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


_Record = TypeVar("_Record", bound=_Identified)


def cut(text: Any, limit: int = MAX_TEXT) -> str:
    """Return a text without outer spaces, cut to `limit` characters; "" for any other value."""
    if not isinstance(text, str):
        return ""
    text = text.strip()
    return text if len(text) <= limit else f"{clip(text, limit - 1)}…"


def local_time(text: str) -> datetime | None:
    """Parse a time; one without a time zone is in the time zone of this machine, as shell scripts write it."""
    time = parse_time(text)
    if time is None or len(text.strip()) > _TIME_LENGTH:
        return time
    try:
        return time.replace(tzinfo=None).astimezone(time.tzinfo)
    except (OverflowError, OSError, ValueError):
        return time


def compact_time(text: str) -> str:
    """Return the letters and digits of a time, such as `20261120T094000`, as part of an ID."""
    return re.sub(r"[^0-9A-Za-z]", "", text)[:15]


def distinct(found: Iterable[_Record]) -> Iterator[_Record]:
    """Yield the first record of each ID."""
    known: set[str] = set()
    for one in found:
        if one.id not in known:
            known.add(one.id)
            yield one


def split_front_matter(lines: Sequence[str], most: int) -> tuple[Sequence[str], int]:
    """Return the lines between the first line and a second line `---`, and the number of lines before the text."""
    if lines and lines[0].strip() == "---":
        for number, line in enumerate(lines[1 : most + 1], start=1):
            if line.strip() == "---":
                return lines[1:number], number + 1
    return (), 0


def decode_quietly(data: bytes) -> Any:
    """Decode JSON without a finding; ValueError if it is damaged, so that the last good version stays."""
    decoded = decode_json(data)
    if decoded.failed:
        raise ValueError("not JSON")
    return decoded.value


def fields_of(value: Any) -> Fields:
    """Return the fields of a JSON object; none if it is something else."""
    return Fields("", value if isinstance(value, dict) else {}, [])


def head_of(path: Path, root: Path) -> bytes:
    """Return the first 4 KiB of a regular file; b"" if there is none, or if it is a link that leads out of `root`."""
    descriptor = open_file(path, root)
    if not isinstance(descriptor, int):
        return b""
    try:
        return os.read(descriptor, HEAD_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
