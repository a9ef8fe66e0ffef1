"""What the scan of a text has found (see `core.scanning`)."""

from __future__ import annotations

from msgspec import Struct


class Suspicion(Struct, frozen=True, gc=False):
    """One thing that a text might do to an agent that reads it.

    Attributes:
        rule: Id of the rule that found it, see `core.scanning.rules`.
        critical: It keeps the pattern out of every context until somebody releases it for a reason; else it only
            gets a mark.
        field: Where it stands, by the name of a field of `Pattern`; "" across fields.
        excerpt: The words that it was found by; untrusted.
    """

    rule: str
    critical: bool
    field: str
    excerpt: str
