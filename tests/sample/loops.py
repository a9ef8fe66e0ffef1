"""The loops of acme-api: what each did, iteration by iteration, and which patterns it was given."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from tests.sample.tree import Tree, loop_id

DEAD_PID: Final = 4_194_303
"""The highest PID on Linux (2**22 - 1), practically never in use."""


class Step(Struct, frozen=True):
    """One iteration: its duration, action and result."""

    minutes: float
    action: str
    result: str
    learnings: str | None
    quality: int
    """0..100, as in analytics and best output."""


class Use(Struct, frozen=True):
    """An entry of `injected_patterns`; `iteration` None means injected and never applied.

    Without a recorded result, the use has the result of the whole loop.
    """

    pattern: str
    iteration: int | None = None
    successful: bool = True
    recorded: bool = True


class SampleLoop(Struct, frozen=True, kw_only=True):
    """One loop of the sample.

    Attributes:
        key: Short name used inside the sample.
        started: Minutes before `now` at which it started.
        steps: Its finished iterations, oldest first.
        status: The raw status of its state file.
        place: `loops` or `archive`.
        snake: State file in snake_case keys instead of camelCase.
        uses: Patterns injected at its start.
        pid: `currentPid`, only for the crashed loop.
        tracked: Analytics, best output and memory-manager reflections exist beside the state.
    """

    key: str
    task: str
    criteria: str
    owner: str
    priority: str
    tags: tuple[str, ...]
    maximum: int
    started: float
    status: str
    steps: tuple[Step, ...]
    uses: tuple[Use, ...] = ()
    place: str = "loops"
    snake: bool = False
    pid: int | None = None
    tracked: bool = False

    @property
    def id(self) -> str:
        """The ID that the aiwg tools make of the task."""
        return loop_id(self.task)

    @property
    def directory(self) -> str:
        """Relative to `.aiwg`."""
        return f"ralph/{self.place}/{self.id}"

    @property
    def running(self) -> bool:
        """Whether its state file says that it is running."""
        return self.status == "running"

    def start(self, tree: Tree) -> datetime:
        """Start time."""
        return tree.ago(minutes=self.started)

    def step_end(self, tree: Tree, number: int) -> datetime:
        """End of iteration `number` (from 1)."""
        return self.start(tree) + timedelta(minutes=sum(step.minutes for step in self.steps[:number]))

    def end(self, tree: Tree) -> datetime:
        """End of its last iteration."""
        return self.step_end(tree, len(self.steps))


_DAY: Final = 24 * 60

LOOPS: Final = (
    SampleLoop(
        key="invoice-mailer",
        task="Fix null customer crash in the invoice mailer",
        criteria="npm test -- billing/mailer passes",
        owner="software-implementer",
        priority="high",
        tags=("billing", "typescript"),
        maximum=10,
        started=34,
        status="running",
        tracked=True,
        steps=(
            Step(
                11,
                "Reproduced the crash with an invoice whose customer was deleted",
                "2 failing: TypeError: Cannot read properties of null (reading 'email') at src/billing/mailer.ts:58",
                "The customer is null when the account was closed between billing and mailing",
                48,
            ),
            Step(
                12,
                "Guarded sendInvoice at entry and raised ValidationError",
                "1 failing: expected 'skipped' to equal 'failed'",
                "A closed account is no failure; the mailer should skip it and say so",
                63,
            ),
            Step(
                10,
                "Returned a skipped result for closed accounts, kept the error for missing addresses",
                "1 failing: Type 'null' is not assignable to type 'Customer'",
                "MailResult still declares customer as required",
                71,
            ),
        ),
        uses=(
            Use("pat-error-null-check-015", 2),
            Use("pat-error-type-mismatch-003"),
            Use("tmpl-async-error-handler-001"),
            Use("pat-error-optional-types-017"),
        ),
    ),
    SampleLoop(
        key="webhooks",
        task="Migrate payment webhooks to idempotency keys",
        criteria="npm test -- payments passes and no webhook is handled twice in the replay",
        owner="software-implementer",
        priority="high",
        tags=("payments", "webhooks", "postgres"),
        maximum=20,
        started=131,
        status="running",
        tracked=True,
        steps=(
            Step(
                18,
                "Listed every handler that changes money and what its sender uses as a key",
                "4 handlers, 2 senders, keys differ",
                "The card network sends the key in a header, the bank in the body",
                22,
            ),
            Step(
                21,
                "Added table webhook_keys with a unique constraint beside the old log",
                "migration ok, 3 failing: relation webhook_keys does not exist in the test database",
                "The test database is built from a dump, not from the migrations",
                34,
            ),
            Step(
                24,
                "Claimed the key before the work in the charge handler",
                '1 failing: duplicate key value violates unique constraint "webhook_keys_pkey"',
                None,
                52,
            ),
            Step(
                19,
                "Retried the transaction on deadlock while two replays ran at once",
                "replay of 500 events: 0 handled twice, 2 deadlocks retried",
                "The order of the locks differs between charge and refund",
                61,
            ),
            Step(
                26,
                "Sent the capture again when the gateway closed the connection",
                "1 failing: charge captured twice after ECONNRESET",
                "The gateway had already booked the first request; a retry needs the key as well",
                55,
            ),
            Step(
                21,
                "Passed our key on to the gateway, so that its side is idempotent too",
                "payments: 41 passing, 1 failing: refund without key",
                "Refunds from the back office carry no key yet",
                74,
            ),
        ),
        uses=(
            Use("tmpl-idempotency-key-002", 3),
            Use("pat-success-expand-contract-004", 2),
            Use("pat-error-deadlock-retry-005", 4),
            Use("pat-error-gateway-reset-004", 5, successful=False),
            Use("pat-anti-premature-optimization-001"),
        ),
    ),
    SampleLoop(
        key="flaky-checkout",
        task="Stabilise the flaky checkout integration tests",
        criteria="200 repetitions of test/checkout pass",
        owner="debugger",
        priority="medium",
        tags=("testing", "checkout", "flaky"),
        maximum=12,
        started=56,
        status="running",
        steps=(
            Step(
                13,
                "Repeated test/checkout 200 times with seed 4711",
                "9 of 200 failed: Exceeded timeout of 5000 ms for a test",
                "All nine wait for the delivery slot poller",
                40,
            ),
            Step(
                14,
                "Replaced real waiting in the poller's tests by fake timers",
                "3 of 200 failed: expected 2 items in cart, got 3",
                "The remaining failures come from another test's cart",
                58,
            ),
            Step(
                15,
                "Bisected the order: cart.merge.test.ts leaves a session behind",
                "1 of 200 failed",
                "Sessions live in a module variable",
                72,
            ),
            Step(
                13,
                "Gave every test its own session store",
                "200 of 200 passed twice, 1 failed in the third round: Exceeded timeout of 5000 ms for a test",
                "One more real timer in the coupon service",
                81,
            ),
        ),
        uses=(
            Use("pat-success-bisect-flaky-005", 3),
            Use("pat-error-fake-timers-010", 2),
            Use("pat-anti-sleep-in-tests-004", 2),
            Use("pat-anti-skip-failing-test-002", 4),
            Use("pat-error-loop-closed-011"),
        ),
    ),
    SampleLoop(
        key="login-limit",
        task="Add rate limiting to the login endpoint",
        criteria="npm run e2e -- login passes; the sixth attempt in a minute answers 429",
        owner="software-implementer",
        priority="medium",
        tags=("auth", "security"),
        maximum=15,
        started=12.5,
        status="running",
        snake=True,
        steps=(
            Step(
                7,
                "Wrote the e2e test for the sixth attempt",
                "1 failing: expected 429, got 401",
                "The limiter has to run before the password check",
                30,
            ),
            Step(
                5,
                "Added a sliding window in Redis keyed by address and account",
                "1 failing: jwt expired in test/auth/session.test.ts",
                "Unrelated fixture: its token was issued on a fixed date",
                54,
            ),
        ),
        uses=(Use("pat-error-jwt-expired-006"), Use("pat-error-unique-violation-007")),
    ),
    SampleLoop(
        key="strict-utils",
        task="Migrate src/utils to TypeScript strict mode",
        criteria="npx tsc --noEmit --strict passes",
        owner="software-implementer",
        priority="medium",
        tags=("typescript", "refactoring"),
        maximum=20,
        started=9 * 60 + 12,
        status="paused",
        tracked=True,
        steps=(
            Step(
                31,
                "Switched strict on for src/utils and listed the errors",
                "214 errors in 38 files",
                None,
                12,
            ),
            Step(
                40,
                "Grouped the files by type and changed all helpers at once",
                "231 errors: the shared types changed under every group",
                "Splitting by file type makes the groups step on each other",
                9,
            ),
            Step(
                34,
                "Started over from the declarations in src/utils/types.ts",
                "148 errors",
                "One declaration settled 61 errors",
                33,
            ),
            Step(29, "Corrected Result and Page, which are generic over unknown", "97 errors", None, 48),
            Step(
                33,
                "Retried the order import inside one transaction after a deadlock in the integration tests",
                "97 errors, order import fails: deadlock detected (third attempt)",
                "Retrying does not help while both importers lock in a different order",
                45,
            ),
            Step(
                38,
                "Replaced casts to any in the date helpers by parsing",
                "41 errors",
                "Casting to any had hidden two real mistakes",
                66,
            ),
            Step(
                35,
                "Narrowed the event union by its kind",
                "17 errors",
                "The rest waits for the new event names",
                74,
            ),
        ),
        uses=(
            Use("pat-success-split-by-type-002", 2, successful=False),
            Use("pat-success-type-fixing-003", 3),
            Use("pat-error-type-mismatch-003", 4),
            Use("pat-error-deadlock-retry-005", 5, successful=False),
            Use("pat-anti-any-cast-003", 6),
            Use("pat-success-types-first-006", 7),
            Use("pat-anti-global-mock-005"),
        ),
    ),
    SampleLoop(
        key="oauth",
        task="Add OAuth login flow for partner shops",
        criteria="npm run e2e -- oauth passes",
        owner="software-implementer",
        priority="high",
        tags=("auth", "oauth"),
        maximum=8,
        started=5 * 60 + 20,
        status="running",
        pid=DEAD_PID,
        steps=(
            Step(
                24,
                "Registered the partner application and wrote the callback route",
                "e2e: 2 failing: redirect URI mismatch",
                "The partner compares the URI with its trailing slash",
                35,
            ),
            Step(
                17,
                "Wrapped the callback handler for Express",
                "e2e: 1 failing: jwt not active (clock of the partner is 3 s ahead)",
                "Verify with a clock tolerance",
                51,
            ),
        ),
        uses=(
            Use("pat-error-jwt-expired-006", 2),
            Use("tmpl-express-wrapper-006", 2, successful=False),
            Use("pat-error-cors-preflight-008"),
        ),
    ),
    SampleLoop(
        key="billing-docs",
        task="Document the REST endpoints of the billing API",
        criteria="npx redocly lint passes and every endpoint has an example",
        owner="technical-writer",
        priority="low",
        tags=("documentation", "billing"),
        maximum=6,
        started=3 * _DAY + 95,
        status="success",
        tracked=True,
        steps=(
            Step(
                22,
                "Split the endpoints by file type and described the read-only ones",
                "lint: 11 warnings",
                "Recorded requests are quicker to document than the code",
                64,
            ),
            Step(
                26,
                "Derived the remaining descriptions from recorded requests",
                "lint passes, 23 of 23 endpoints have an example",
                "Check the recordings against the description in a test",
                92,
            ),
        ),
        uses=(
            Use("pat-success-split-by-type-002", 1),
            Use("pat-success-test-generation-001", 2, recorded=False),
        ),
    ),
    SampleLoop(
        key="monthly-report",
        task="Speed up the monthly report query",
        criteria="p95 of GET /reports/monthly below 400 ms",
        owner="performance-engineer",
        priority="medium",
        tags=("postgres", "performance", "reports"),
        maximum=8,
        started=8 * _DAY + 220,
        status="failed",
        snake=True,
        steps=(
            Step(
                25,
                "Raised the pool limit from 10 to 40",
                "p95 2.9 s, database at its connection limit",
                None,
                25,
            ),
            Step(
                28,
                "Measured the plan on a copy of production",
                "p95 2.4 s: sequential scan over 41 million ledger rows",
                "The date condition is wrapped in a function",
                41,
            ),
            Step(
                31,
                "Retried the report when it met a deadlock with the settlement job",
                "report locks settlement out: deadlock detected",
                "Report and settlement take their locks in a different order",
                33,
            ),
            Step(
                30,
                "Split the change by file type: all queries first, then the handlers",
                "handlers expect columns that the queries no longer return",
                "Query and handler belong into one step",
                30,
            ),
            Step(
                34,
                "Sent the request to the reporting gateway again after ECONNRESET",
                "p95 3.1 s",
                "The retries are part of the load",
                24,
            ),
            Step(
                27,
                "Repeated the query without a bound until it answered",
                "connection pool runs empty",
                None,
                18,
            ),
        ),
        uses=(
            Use("pat-error-pool-timeout-009", 1, successful=False),
            Use("pat-success-profile-first-009", 2),
            Use("pat-error-deadlock-retry-005", 3, successful=False),
            Use("pat-success-split-by-type-002", 4, successful=False),
            Use("pat-error-gateway-reset-004", 5, successful=False, recorded=False),
            Use("pat-anti-premature-optimization-001", 2),
        ),
    ),
    SampleLoop(
        key="session-store",
        task="Rewrite the session store on Redis streams",
        criteria="npm test -- session passes",
        owner="architect",
        priority="low",
        tags=("redis", "sessions"),
        maximum=10,
        started=10 * _DAY + 90,
        status="aborted",
        steps=(
            Step(
                33,
                "Wrote the new store from its description and deleted the old one",
                "38 failing",
                "Nobody had written down what an expired session answers",
                15,
            ),
            Step(
                41,
                "Split the callers by file type and changed the handlers",
                "29 failing, 6 of them in files not touched",
                "Put the new store behind the old interface instead",
                22,
            ),
        ),
        uses=(
            Use("pat-success-big-bang-010", 1, successful=False),
            Use("pat-success-split-by-type-002", 2, successful=False),
            Use("pat-error-gateway-reset-004", 2, successful=False),
            Use("pat-error-deadlock-retry-005", 1),
            Use("tmpl-express-wrapper-006", 2, successful=False),
            Use("pat-success-profile-first-009"),
        ),
    ),
    SampleLoop(
        key="api-client",
        task="Type the client of the order service",
        criteria="npx tsc --noEmit passes without any in src/orders",
        owner="software-implementer",
        priority="medium",
        tags=("typescript", "orders"),
        maximum=10,
        started=13 * _DAY + 180,
        status="completed",
        tracked=True,
        steps=(
            Step(
                24,
                "Split the client by file type and typed the requests",
                "66 errors, two shared types declared twice",
                "Requests and responses share their types",
                38,
            ),
            Step(
                22,
                "Wrote the types first, from the OpenAPI description",
                "19 errors",
                "The declarations decide, the usages follow",
                69,
            ),
            Step(
                27,
                "Fixed the remaining errors from the declarations outward",
                "2 errors; orders import fails: deadlock detected",
                "The retry hides that stock and order are locked in a different order",
                77,
            ),
            Step(
                18,
                "Parsed the responses with one schema a type",
                "tsc passes, 58 tests passing",
                "Optional in transport, required after parsing",
                94,
            ),
        ),
        uses=(
            Use("pat-success-split-by-type-002", 1, successful=False),
            Use("pat-success-types-first-006", 2),
            Use("pat-success-type-fixing-003", 3),
            Use("pat-error-type-mismatch-003", 3),
            Use("pat-error-deadlock-retry-005", 3, successful=False),
            Use("pat-anti-any-cast-003", 4),
            Use("tmpl-async-error-handler-001", 4),
            Use("pat-success-characterise-011", 4),
        ),
    ),
    SampleLoop(
        key="job-queue",
        task="Move the settlement jobs from cron to the queue",
        criteria="pytest workers passes; a killed worker loses no job",
        owner="software-implementer",
        priority="high",
        tags=("python", "queue", "settlement"),
        maximum=15,
        started=24 * _DAY + 400,
        status="completed",
        place="archive",
        tracked=True,
        steps=(
            Step(
                41,
                "Rewrote the settlement script as a worker in one go",
                "17 failing",
                "Amounts arrive as Decimal and leave as float",
                28,
            ),
            Step(
                37,
                "Serialised amounts as strings, retried settle() on deadlock",
                "9 failing: deadlock detected (gave up after three attempts)",
                "All workers settle the same account first",
                44,
            ),
            Step(
                35,
                "Raised the pool limit for the workers, changed files by their type",
                "11 failing: Timed out fetching a new connection from the connection pool",
                "More connections only move the queue into the database",
                40,
            ),
            Step(
                39,
                "Inserted results with ON CONFLICT on the job id",
                "3 failing: Event loop is closed",
                "The client was created before the loop",
                67,
            ),
            Step(
                36,
                "Opened the client inside the running loop, sent charges again after resets",
                "1 failing: settlement booked twice",
                "A retry against the gateway needs a key",
                79,
            ),
            Step(
                28,
                "Made settle() idempotent by job id",
                "pytest: 122 passing; kill test lost nothing",
                None,
                95,
            ),
        ),
        uses=(
            Use("pat-success-big-bang-010", 1, successful=False),
            Use("pat-error-deadlock-retry-005", 2, successful=False),
            Use("pat-error-pool-timeout-009", 3, successful=False),
            Use("pat-success-split-by-type-002", 3, successful=False),
            Use("pat-error-unique-violation-007", 4),
            Use("pat-error-gateway-reset-004", 5, successful=False),
            Use("tmpl-async-error-handler-001", 4),
            Use("tmpl-idempotency-key-002", 6),
        ),
    ),
    SampleLoop(
        key="payment-coverage",
        task="Raise the coverage of payment processing to 80 percent",
        criteria="npx vitest --coverage reports at least 80 % for src/payments",
        owner="test-engineer",
        priority="medium",
        tags=("testing", "payments"),
        maximum=10,
        started=45 * _DAY + 300,
        status="completed",
        place="archive",
        tracked=True,
        steps=(
            Step(
                33,
                "Derived the tests from the gateway's contract",
                "coverage 58 %, 6 failing: jwt expired",
                "Freeze the clock instead of issuing long tokens",
                55,
            ),
            Step(
                29,
                "Skipped two failing refund tests to see the rest",
                "coverage 66 %, the same refund error in production logs",
                "The skipped tests were right",
                52,
            ),
            Step(
                31,
                "Wrote the types of the refund answer first, then the tests",
                "coverage 74 %, 1 failing: deadlock detected",
                "Run the transaction again when PostgreSQL reports a deadlock",
                73,
            ),
            Step(
                27,
                "Replaced real waiting by fake timers",
                "coverage 83 %, 96 passing",
                "Tests that wait are tests of the machine",
                93,
            ),
        ),
        uses=(
            Use("pat-success-test-generation-001", 1),
            Use("pat-error-type-mismatch-003", 3),
            Use("pat-success-type-fixing-003", 3),
            Use("pat-error-null-check-015", 4, successful=False),
            Use("pat-anti-premature-optimization-001", 4),
        ),
    ),
    SampleLoop(
        key="query-cache",
        task="Optimize the query cache of the product search",
        criteria="bench p95 < 50 ms",
        owner="performance-engineer",
        priority="medium",
        tags=("performance", "search"),
        maximum=4,
        started=76 * _DAY + 240,
        status="failed",
        place="archive",
        steps=(
            Step(
                28,
                "Cached whole result pages for a minute",
                "p95 44 ms, 12 failing: Type 'Page<unknown>' is not assignable to type 'Page<Product>'",
                "The cache forgets the type of what it holds",
                46,
            ),
            Step(
                26,
                "Typed the cache by its loader",
                "p95 61 ms, 2 failing: stock is a minute old",
                "Prices and stock must not be cached with the page",
                58,
            ),
            Step(
                32,
                "Pinned today's answers with characterisation tests",
                "p95 61 ms, 0 failing",
                "Two answers depended on the order of rows",
                66,
            ),
            Step(
                30,
                "Cached only the text of the products",
                "p95 57 ms, 0 failing",
                "Measure the plan first",
                70,
            ),
        ),
        uses=(
            Use("pat-error-type-mismatch-003", 2),
            Use("pat-success-characterise-011", 3),
            Use("pat-anti-any-cast-003", 2),
            Use("tmpl-async-error-handler-001", 2),
            Use("pat-success-test-generation-001"),
        ),
    ),
    SampleLoop(
        key="sign-up",
        task="Fix user validation in sign-up",
        criteria="npm test -- auth passes",
        owner="debugger",
        priority="high",
        tags=("auth", "validation", "typescript"),
        maximum=8,
        started=118 * _DAY + 130,
        status="success",
        place="archive",
        steps=(
            Step(
                19,
                "Ran the failing tests",
                "5 failing: TypeError: Cannot read property 'email' of null at src/auth/validate.ts:42",
                "The user is null before the session is restored",
                42,
            ),
            Step(
                17,
                "Added a null check at the entry of validateUser",
                "2 failing: Type 'string | undefined' is not assignable to type 'string'",
                "Correct the interface, not the call",
                68,
            ),
            Step(
                16,
                "Corrected the interface of the user",
                "31 passing",
                "Declarations first, usages second",
                91,
            ),
        ),
        uses=(
            Use("pat-success-test-generation-001", 1),
            Use("tmpl-async-error-handler-001", 2),
            Use("pat-error-headers-sent-014", 3),
        ),
    ),
    SampleLoop(
        key="contract-tests",
        task="Set up contract tests for the orders API",
        criteria="npm run test:contract passes in CI",
        owner="test-engineer",
        priority="medium",
        tags=("testing", "orders"),
        maximum=12,
        started=205 * _DAY + 260,
        status="completed",
        place="archive",
        steps=(
            Step(
                35,
                "Recorded the consumer's expectations",
                "4 failing: Cannot set headers after they are sent to the client",
                "A missing return lets the handler run on",
                45,
            ),
            Step(
                38,
                "Cached the provider states before they were right",
                "6 failing",
                "Optimizing before the tests pass gives every error two causes",
                38,
            ),
            Step(32, "Returned after every response", "1 failing", None, 77),
            Step(
                24,
                "Derived the last tests from the contract",
                "44 passing",
                "Tests from the contract find gaps",
                90,
            ),
        ),
    ),
)

BY_KEY: Final = {loop.key: loop for loop in LOOPS}
