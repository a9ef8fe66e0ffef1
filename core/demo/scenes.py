"""What the played loops do: tasks, iteration by iteration, with errors that come and get fixed."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Act(Struct, frozen=True):
    """One iteration.

    Attributes:
        action: What the agent does.
        result: What came of it.
        learned: What it says it learned; "" for nothing.
        quality: 0..100.
        pattern: Id of a pattern that it applies; "" for none.
        worked: Whether the pattern helped.
    """

    action: str
    result: str
    learned: str
    quality: int
    pattern: str = ""
    worked: bool = True


class Scene(Struct, frozen=True, kw_only=True):
    """One loop from its start (or from where the sample leaves it) to its end.

    Attributes:
        injected: Patterns that it gets at the start and never applies.
        crashes: It runs as a process of its own, which dies after the last act; otherwise it completes.
    """

    task: str
    criteria: str = ""
    owner: str = "software-implementer"
    tags: tuple[str, ...] = ()
    acts: tuple[Act, ...]
    injected: tuple[str, ...] = ()
    crashes: bool = False


OPENING: Final = (
    Scene(
        task="Fix null customer crash in the invoice mailer",
        acts=(
            Act(
                "Made the customer optional in MailResult, required where it is read",
                "1 failing: Property 'customer' is missing in type 'Skipped' but required in type 'MailResult'",
                "Skipped mails are a type of their own, not a mail without customer",
                82,
                "pat-error-type-mismatch-003",
            ),
            Act(
                "Split MailResult into Sent and Skipped",
                "billing/mailer: 18 passing",
                "A union of results says more than optional fields",
                95,
                "pat-error-optional-types-017",
            ),
        ),
    ),
    Scene(
        task="Migrate payment webhooks to idempotency keys",
        acts=(
            Act(
                "Derived a key for back-office refunds from order and amount",
                "payments: 41 passing, 1 failing: two equal refunds of one order are one",
                "Two equal refunds are legal; the key needs the refund's own id",
                70,
            ),
            Act(
                "Gave refunds an id when the clerk opens the form",
                "payments: 42 passing",
                "The id belongs to the intention, not to the request",
                84,
                "tmpl-idempotency-key-002",
            ),
            Act(
                "Replayed 5,000 webhooks with two workers",
                "3 handled twice: deadlock detected, retried after the key had expired",
                "Retry inside the lifetime of the key, or extend it",
                72,
                "pat-error-deadlock-retry-005",
                worked=False,
            ),
            Act(
                "Took the locks in the same order in charge and refund",
                "replay of 5,000 events: 0 handled twice, 0 deadlocks",
                "One order of locks needs no retry",
                93,
            ),
            Act("Dropped the old log after a release with both", "payments: 44 passing", "", 97),
        ),
    ),
    Scene(
        task="Stabilise the flaky checkout integration tests",
        acts=(
            Act(
                "Replaced the coupon service's timer by a fake one",
                "200 of 200 passed four times",
                "Every real timer in a test is a bet against the machine",
                90,
                "pat-error-fake-timers-010",
            ),
            Act("Repeated everything under full load", "200 of 200 passed with 8 busy cores", "", 96),
        ),
    ),
    Scene(
        task="Add rate limiting to the login endpoint",
        crashes=True,
        acts=(
            Act(
                "Froze the clock of the session tests",
                "1 failing: expected 429, got 500: duplicate key value violates unique constraint",
                "Two attempts in one millisecond share a key",
                61,
                "pat-error-jwt-expired-006",
            ),
            Act(
                "Counted attempts with an upsert",
                "e2e login: 11 passing, 1 failing: the window does not slide",
                "Keep the time of each attempt, not their number",
                74,
                "pat-error-unique-violation-007",
            ),
            Act(
                "Kept attempts as a sorted set in Redis",
                "e2e login: 12 passing, memory of the runner at 1.9 GB",
                "The e2e browser is never closed between tests",
                80,
            ),
        ),
    ),
)
"""By task: the loops that run in the sample."""

REPERTOIRE: Final = (
    Scene(
        task="Return problem details for every API error",
        criteria="npm run test:contract passes",
        tags=("http", "errors"),
        injected=("pat-success-test-generation-001", "pat-error-null-check-015"),
        acts=(
            Act(
                "Wrote the contract of an error answer first",
                "9 failing: expected application/problem+json",
                "One handler at the end can serve all routes",
                35,
                "pat-success-test-generation-001",
            ),
            Act(
                "Added the error handler behind the routers",
                "2 failing: Cannot set headers after they are sent to the client",
                "Two handlers answer and then throw",
                66,
            ),
            Act(
                "Returned after every response in the export routes",
                "contract: 52 passing",
                "A missing return lets the handler run on",
                94,
                "pat-error-headers-sent-014",
            ),
        ),
    ),
    Scene(
        task="Store prices in minor units",
        criteria="npm test and pytest workers pass",
        owner="software-implementer",
        tags=("payments", "migrations"),
        injected=("pat-success-split-by-type-002", "pat-anti-any-cast-003"),
        acts=(
            Act(
                "Added price_minor beside price and wrote to both",
                "migration ok, 4 failing: Object of type Decimal is not JSON serializable",
                "The workers read the new column as Decimal",
                40,
                "pat-success-expand-contract-004",
            ),
            Act(
                "Serialised amounts as strings in the workers",
                "1 failing: Type 'number' is not assignable to type 'MinorUnits'",
                "Brand the number, or anybody adds cents to euros",
                68,
                "pat-error-decimal-json-016",
            ),
            Act(
                "Backfilled 1.2 million rows in batches",
                "backfill done in 41 s, 1 failing",
                "",
                79,
                "tmpl-batched-backfill-004",
            ),
            Act("Read from the new column", "npm: 312 passing, pytest: 130 passing", "", 96),
        ),
    ),
    Scene(
        task="Cut the start-up time of the workers",
        criteria="python -X importtime stays below 400 ms",
        owner="performance-engineer",
        tags=("python", "performance"),
        injected=("pat-anti-premature-optimization-001",),
        acts=(
            Act(
                "Measured the imports before changing any",
                "1,310 ms, of it pandas 620 ms for one helper",
                "One helper pulls in the largest library",
                45,
                "pat-success-profile-first-009",
            ),
            Act(
                "Replaced the helper by twelve lines of Python",
                "640 ms, 1 failing: cannot import name 'Money' from partially initialized module",
                "The import order had hidden a cycle",
                62,
            ),
            Act(
                "Moved the shared types into a module without imports",
                "372 ms, pytest: 130 passing",
                "Types on their own end every cycle",
                93,
                "pat-error-import-cycle-013",
            ),
        ),
    ),
    Scene(
        task="Replace the PDF renderer of the invoices",
        criteria="npm test -- billing/pdf passes",
        tags=("billing", "pdf"),
        crashes=True,
        injected=("pat-success-strangler-008",),
        acts=(
            Act(
                "Put the new renderer behind the old interface",
                "7 failing: line heights differ",
                "Compare text and boxes, not bytes",
                38,
                "pat-success-strangler-008",
            ),
            Act(
                "Compared pages as images with a tolerance",
                "2 failing: Exceeded timeout of 5000 ms for a test",
                "Rendering fonts for the first time takes four seconds",
                63,
            ),
        ),
    ),
    Scene(
        task="Type the events of the message queue",
        criteria="npx tsc --noEmit and pytest workers pass",
        tags=("typescript", "events"),
        injected=("pat-error-field-required-012", "tmpl-zod-schema-005"),
        acts=(
            Act(
                "Split the events by file type and typed the producers",
                "31 errors, 3 events declared twice",
                "Producer and consumer share the declaration",
                30,
                "pat-success-split-by-type-002",
                worked=False,
            ),
            Act(
                "Wrote one schema for each event first",
                "6 errors; workers: Field required [type=missing]",
                "The queue still holds messages of the old schema",
                64,
                "pat-success-types-first-006",
            ),
            Act(
                "Gave new fields a default for one release",
                "tsc passes, pytest: 133 passing",
                "",
                95,
                "pat-error-field-required-012",
            ),
        ),
    ),
    Scene(
        task="Make the product import resumable",
        criteria="an import killed at any row loses nothing",
        tags=("import", "postgres"),
        injected=("pat-error-gateway-reset-004",),
        acts=(
            Act(
                "Kept the number of the last row in the job",
                "kill test: 12 rows twice",
                "Row and progress must be one transaction",
                44,
            ),
            Act(
                "Inserted with ON CONFLICT on the article number",
                "kill test: 0 rows twice, 1 lost: socket hang up",
                "A batch that failed half way was counted as done",
                71,
                "pat-error-unique-violation-007",
            ),
            Act(
                "Sent the batch again after the connection was reset",
                "kill test: 3 rows twice",
                "A blind retry repeats what had arrived",
                58,
                "pat-error-gateway-reset-004",
                worked=False,
            ),
            Act(
                "Wrote progress and rows in one transaction",
                "200 kills: 0 lost, 0 twice",
                "One transaction needs no retry logic",
                97,
            ),
        ),
    ),
)
"""The loops that start while one watches, again and again."""
