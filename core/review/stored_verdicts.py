"""Results of slow searches for questions, stored so that what has not changed is not searched again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

_DIGEST_BYTES: Final = 16
_Verdict = TypeVar("_Verdict", bound=Struct)


class StoredVerdicts(Protocol):
    """Verdicts as bytes, by kind and key, made by the same code with the same settings.

    They are derived: one that is lost is made again. Both methods are called by one thread at a time.
    """

    def get(self, kind: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """Return the stored verdicts of these keys, without those that are not stored."""

    def put(self, kind: str, verdicts: Mapping[str, bytes]) -> None:
        """Store verdicts, in place of those with the same keys."""


class VerdictsInMemory:
    """Verdicts of one process."""

    def __init__(self) -> None:
        self._verdicts: dict[tuple[str, str], bytes] = {}

    def get(self, kind: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        found = ((key, self._verdicts.get((kind, key))) for key in keys)
        return {key: data for key, data in found if data is not None}

    def put(self, kind: str, verdicts: Mapping[str, bytes]) -> None:
        self._verdicts.update(((kind, key), data) for key, data in verdicts.items())


def read_verdicts(
    stored: StoredVerdicts, kind: str, keys: Iterable[str], verdict_type: type[_Verdict]
) -> dict[str, _Verdict]:
    """Return the stored verdicts of these keys; one that cannot be decoded counts as not stored."""
    decoder, found = msgspec.msgpack.Decoder(verdict_type), dict[str, _Verdict]()
    for key, data in stored.get(kind, keys).items():
        try:
            found[key] = decoder.decode(data)
        except msgspec.MsgspecError:
            continue
    return found


def write_verdicts(stored: StoredVerdicts, kind: str, verdicts: Mapping[str, Struct]) -> None:
    encode = msgspec.msgpack.encode
    if verdicts:
        stored.put(kind, {key: encode(verdict) for key, verdict in verdicts.items()})


def digest_of(*values: Any) -> bytes:
    """Return a digest of values that msgspec can encode, 16 bytes."""
    return blake2b(msgspec.msgpack.encode(values), digest_size=_DIGEST_BYTES).digest()
