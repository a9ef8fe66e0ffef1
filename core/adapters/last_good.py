"""Last good contents of files that are written in place, so that a reader may find a part of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from core.adapters.transcripts import DAMAGE
from core.records.findings import Finding
from core.storage.file_reader import RawFile, Stamp

if TYPE_CHECKING:
    from core.adapters.folders import Reports
    from core.storage.decoded import Problem

RETRY_SECONDS: Final = 0.05  # before a file that cannot be decoded is read once more
FAILED_SECONDS: Final = 2.0  # how long a file cannot be decoded before it is reported

_Key = tuple[str, Path]  # the form of the content, and the file


class _Good(Struct, gc=False):
    stamp: Stamp
    value: Any
    findings: list[Finding]


class _Failure(Struct, gc=False):
    """A file that cannot be decoded since a time; `findings` is empty until it is reported."""

    stamp: Stamp
    since: float
    findings: list[Finding]


class LastGood:
    """Decodes files, and keeps the last good value of each while it cannot be decoded.

    `clock` returns monotonic seconds. `pause` waits before a second try; None if nothing may wait.
    """

    def __init__(self, files: Reports, clock: Callable[[], float], pause: Callable[[float], object] | None) -> None:
        self._files, self._clock, self._pause = files, clock, pause
        self._good: dict[_Key, _Good] = {}
        self._failures: dict[_Key, _Failure] = {}

    def find_failing(self) -> set[Path]:
        """Return the files that cannot be decoded and are not reported yet."""
        return {path for (_, path), failure in self._failures.items() if not failure.findings}

    def read(
        self,
        form: str,
        path: Path,
        stamp: Stamp | None,
        read: Callable[[], RawFile | Problem | None],
        convert: Callable[[bytes], Any],
    ) -> Any:
        """Return the converted content of a file; `stamp` is its version if that is certain."""
        key, found = (form, path), self._files.findings
        good, failure = self._good.get(key), self._failures.get(key)
        last = good.value if good is not None else None
        if failure is not None and failure.findings and failure.stamp == stamp:
            found += failure.findings
            return last
        if good is not None and failure is None and good.stamp == stamp:
            found += good.findings
            return last
        for is_last in (True,) if self._pause is None else (False, True):
            count, raw = len(found), read()
            if not isinstance(raw, RawFile):
                if raw is not None:
                    self._files.report(path, raw.message, raw.code)
                return last
            with suppress(*DAMAGE):
                value = convert(raw.data)
                self._failures.pop(key, None)
                self._good[key] = _Good(raw.stamp, value, found[count:])
                return value
            if self._pause is not None and not is_last:
                del found[count:]
                self._pause(RETRY_SECONDS)
                continue
            now = self._clock()
            failure = self._failures.setdefault(key, _Failure(raw.stamp, now, []))
            failure.stamp = raw.stamp
            if abs(now - failure.since) < FAILED_SECONDS:
                del found[count:]
                break
            if len(found) == count:
                self._files.report(path, "cannot be decoded", "undecodable")
            failure.findings = found[count:]
        return last
