"""Decisions about acme-api's patterns, made by the real curator at past times."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import count
from types import SimpleNamespace
from unittest.mock import patch

import msgspec

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.decisions.commands import Deprecate, Dismiss, Note, Promote, Quarantine
from core.decisions.curator import Curator
from core.decisions.record_changes import extract
from core.index.refresh import Index
from core.learning.scoreboard import Scoreboard
from core.records.authors import sign_unattended
from core.records.decisions import extraction_question_id
from core.records.extractions import Extraction, Proposal
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.snapshot import Snapshot
from tests.factories import decide, decide_question, make_assessment
from tests.sample.loops import BY_KEY
from tests.sample.patterns import ERRORS, UNREAD
from tests.sample.shared import error_record
from tests.sample.tree import Tree

REWRITTEN = "tmpl-frozen-clock-003"
"""Promoted, and reworded by an agent since."""
SUSPECTED = "pat-success-openapi-first-007"
"""In quarantine until it is reviewed."""
CONTRADICTED = "pat-error-deadlock-retry-005"
"""Promoted when all of its three uses had worked; four of the six since then failed."""
READ = ("contract-tests", "sign-up", "query-cache", "payment-coverage")
"""Old loops from which nothing more is extracted."""


def write_decisions(tree: Tree) -> None:
    """Write the decision log, and its changes in the pattern files."""
    numbers = count()

    def token(size: int) -> str:
        return hashlib.sha256(f"decision {next(numbers)}".encode()).hexdigest()[: 2 * size]

    with patch("core.decisions.decision_writer.secrets", SimpleNamespace(token_hex=token)):
        _decide(tree)
    for lock in tree.root.rglob("*.lock"):
        lock.unlink()


def _decide(tree: Tree) -> None:
    paths = ProjectPaths(tree.root)
    settings = Settings()
    snapshot = Index(paths, settings, clock=lambda: tree.now, is_kept=False).load()
    patterns = snapshot.patterns
    dana = Curator(paths, settings, by="dana")
    imre = Curator(paths, settings, by="imre")

    def board(now: datetime) -> Scoreboard:
        return Scoreboard.build(
            Snapshot(patterns=patterns, loops=snapshot.loops, events=snapshot.events, curation=dana.ledger.state()),
            now,
            settings,
        )

    for number, key in enumerate(READ):
        loop = BY_KEY[key]
        summary = f"declined the patterns of {loop.id}"
        answer = Dismiss(key=extraction_question_id(loop.id), summary=summary, about=loop.id)
        decide_question(imre, answer, now=tree.ago(days=31, minutes=-2 * number))
    early = tree.ago(days=30, hours=3)
    seen = msgspec.structs.replace(
        board(early).assessment(CONTRADICTED),
        successes=3,
        failures=0,
        uses=3,
        rate=1.0,
        computed=Maturity.ESTABLISHED,
        state=Maturity.ESTABLISHED,
    )
    decide(dana, Promote, patterns[CONTRADICTED], seen, now=early, reason="holds in orders and in the settlement tests")
    decide(
        dana,
        Note,
        patterns["pat-success-types-first-006"],
        make_assessment(),
        text="A good default for every move to strict mode; see the order client.",
        now=tree.ago(days=12, hours=6),
    )
    _ask_again(tree, dana, imre, Curator(paths, settings, by=sign_unattended("watch")), patterns, board)
    for curator, identity, reason, days in (
        (imre, "pat-success-profile-first-009", "measured twice by hand, the plans agree", 5.0),
        (dana, "pat-error-import-cycle-013", "", 1.9),
    ):
        now = tree.ago(days=days)
        decide(curator, Promote, patterns[identity], board(now).assessment(identity), now=now, reason=reason)
    imre.undo(now=tree.ago(days=1.8), any_author=True)
    now = tree.ago(days=1.2)
    identity = "pat-error-cors-preflight-008"
    decide(
        imre,
        Deprecate,
        patterns[identity],
        board(now).assessment(identity),
        now=now,
        reason="the gateway answers preflight requests since Monday; the service must not",
    )


def _ask_again(
    tree: Tree,
    dana: Curator,
    imre: Curator,
    watch: Curator,
    patterns: Mapping[str, Pattern],
    board: Callable[[datetime], Scoreboard],
) -> None:
    """Make decisions that leave a question open."""
    now = tree.ago(days=11)
    reason = "no test waits for midnight any more"
    decide(dana, Promote, patterns[REWRITTEN], board(now).assessment(REWRITTEN), now=now, reason=reason)
    file = tree.root / patterns[REWRITTEN].file
    text = file.read_text(encoding="utf-8")
    reworded = text.replace("A clock that a test moves by hand", "A clock that a test sets and moves by hand")
    file.write_text(reworded, encoding="utf-8", newline="")
    extraction = _unread(tree)
    watch.write_records(
        lambda batch: extract(batch, extraction, patterns, unattended=True),
        now=tree.ago(days=8),
        known=watch.settled_count(),
    )
    now = tree.ago(days=6.5)
    reason = "the recording step may keep customers' data"
    decide(imre, Quarantine, patterns[SUSPECTED], board(now).assessment(SUSPECTED), now=now, reason=reason)


def _unread(tree: Tree) -> Extraction:
    """An unattended extraction from a loop."""
    (sample,) = (one for one in ERRORS if one.key == UNREAD)
    record = error_record(tree, sample)
    del record["pattern_id"]
    proposal = Proposal(type=PatternType.ERROR, slug="event-loop", record=record)
    return Extraction(source_id=BY_KEY[sample.discovered_by].id, proposals=(proposal,))
