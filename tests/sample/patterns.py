"""The forty shared patterns of acme-api, of all four types and in all four states.

`successes` and `failures` are the counts of the registry; the loops' `uses` are the uses that loops on disk record. The
state follows from both: tests compare `EXPECTED_STATES` with the scoring.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct


class Sample(Struct, frozen=True, kw_only=True):
    """One pattern of the sample.

    Attributes:
        key: Its ID.
        body: The keys of its type, without counts, times and lineage.
        successes, failures: Counts of the registry, including the discovery.
        discovered_by: Key of the loop that discovered it (`loops.LOOPS`).
        last_used_days: Age of the last use; None = the newest recorded use.
        trend: `effectiveness_trend`: (days ago, rate, sample size).
    """

    key: str
    body: dict[str, Any]
    successes: int
    failures: int
    discovered_by: str
    last_used_days: float | None = None
    trend: tuple[tuple[float, float, int], ...] = ()


def _error(
    error_type: str,
    pattern: str,
    hints: list[str],
    fix: str,
    category: str,
    code: str,
    language: str,
    tags: list[str],
) -> dict[str, Any]:
    return {
        "error_signature": {
            "error_type": error_type,
            "error_pattern": pattern,
            "error_location_hints": hints,
        },
        "fix_approach": {
            "description": fix,
            "fix_category": category,
            "code_template": code,
            "code_template_language": language,
        },
        "tags": tags,
    }


def _success(
    category: str,
    task_pattern: str,
    description: str,
    steps: list[str],
    tools: list[str],
    iterations: tuple[float, int, int],
    preconditions: list[str],
    benefits: list[str],
    limitations: list[str],
    tags: list[str],
) -> dict[str, Any]:
    average, minimum, maximum = iterations
    return {
        "task_category": category,
        "task_description_pattern": task_pattern,
        "approach": {
            "description": description,
            "steps": steps,
            "tools_used": tools,
            "typical_iterations": {"average": average, "minimum": minimum, "maximum": maximum},
        },
        "average_iterations": average,
        "preconditions": preconditions,
        "benefits": benefits,
        "limitations": limitations,
        "tags": tags,
    }


def _anti(
    approach: str,
    mode: str,
    symptoms: list[str],
    why: str,
    better: str,
    better_id: str | None,
    tags: list[str],
) -> dict[str, Any]:
    alternative = {"description": better}
    if better_id:
        alternative["success_pattern_id"] = better_id
    return {
        "approach_description": approach,
        "failure_mode": mode,
        "failure_symptoms": symptoms,
        "why_it_fails": why,
        "better_alternative": alternative,
        "tags": tags,
    }


def _template(
    language: str, code: str, description: str, use_case: str, placeholders: dict[str, str], tags: list[str]
) -> dict[str, Any]:
    return {
        "language": language,
        "template_code": code,
        "description": description,
        "use_case": use_case,
        "placeholders": placeholders,
        "tags": tags,
    }


UNREAD: Final = "pat-error-event-loop-001"
"""Extracted unattended; a duplicate of `pat-error-loop-closed-011`."""
ERRORS: Final = (
    Sample(
        key="pat-error-type-mismatch-003",
        successes=17,
        failures=1,
        discovered_by="sign-up",
        trend=((118, 1.0, 1), (92, 1.0, 4), (60, 0.9, 10), (30, 0.93, 14)),
        body=_error(
            "TypeError",
            "Type '.*' is not assignable to type '.*'",
            ["src/**/*.ts", "src/orders/client.ts:toOrder"],
            "Correct the interface where the value is declared, then its usages; assert a type only at the "
            "edge "
            "where untyped data enters",
            "add_type_validation",
            "export interface {{Name}} {\n  {{field}}: {{type}} | undefined;\n}\n",
            "typescript",
            ["typescript", "types", "interfaces"],
        ),
    ),
    Sample(
        key="pat-error-null-check-015",
        successes=3,
        failures=1,
        discovered_by="sign-up",
        body=_error(
            "TypeError",
            "Cannot read propert(y|ies) .* of (null|undefined)",
            ["src/auth/*.ts:validate*", "src/billing/mailer.ts:send*"],
            "Guard the object at function entry and raise a ValidationError that names the missing field",
            "add_null_check",
            'if ({{variable}} == null) {\n  throw new ValidationError("{{message}}");\n}\n',
            "typescript",
            ["typescript", "null-safety", "validation"],
        ),
    ),
    Sample(
        key="pat-error-event-loop-001",
        successes=1,
        failures=0,
        discovered_by="monthly-report",
        body=_error(
            "RuntimeError",
            "Event loop is closed",
            ["workers/reports/*.py"],
            "Create the client inside the running loop, and close it in the fixture that has opened it",
            "refactor_code_structure",
            "async with {{factory}}() as client:\n    yield client\n",
            "python",
            ["python", "asyncio"],
        ),
    ),
    Sample(
        key="pat-error-gateway-reset-004",
        successes=2,
        failures=4,
        discovered_by="query-cache",
        body=_error(
            "Other",
            "(ECONNRESET|socket hang up)",
            ["src/payments/gateway.ts:charge"],
            "Send the same request to the payment gateway again, up to three times without a pause",
            "add_error_handling",
            "for (let attempt = 0; attempt < 3; attempt++) {\n"
            "  try { return await {{call}}; } catch { /* again */ }\n}\n",
            "typescript",
            ["payments", "network", "retry"],
        ),
    ),
    Sample(
        key="pat-error-deadlock-retry-005",
        successes=5,
        failures=4,
        discovered_by="payment-coverage",
        trend=((45, 1.0, 1), (32, 1.0, 3)),
        body=_error(
            "RuntimeError",
            "deadlock detected",
            ["src/orders/repository.ts:reserveStock", "workers/settlement.py:settle"],
            "Run the transaction again when PostgreSQL reports a deadlock, at most three times",
            "add_error_handling",
            "await withRetry(() => db.transaction({{work}}), { on: isDeadlock, times: 3 });\n",
            "typescript",
            ["postgres", "transactions", "retry"],
        ),
    ),
    Sample(
        key="pat-error-jwt-expired-006",
        successes=9,
        failures=1,
        discovered_by="payment-coverage",
        trend=((45, 1.0, 1), (28, 1.0, 5), (9, 0.89, 9)),
        body=_error(
            "ValidationError",
            "jwt (expired|not active)",
            ["src/auth/token.ts:verify", "test/auth/*.test.ts"],
            "Verify with a clock tolerance of five seconds, and freeze the clock in tests instead of issuing "
            "long-lived tokens",
            "fix_logic_error",
            "jwt.verify({{token}}, {{key}}, { clockTolerance: 5 });\n",
            "typescript",
            ["auth", "jwt", "time"],
        ),
    ),
    Sample(
        key="pat-error-unique-violation-007",
        successes=4,
        failures=1,
        discovered_by="query-cache",
        body=_error(
            "RuntimeError",
            'duplicate key value violates unique constraint ".*"',
            ["src/**/repository.ts", "migrations/*.sql"],
            "Insert with ON CONFLICT on the business key and read the row back, instead of select-then-insert",
            "fix_logic_error",
            "INSERT INTO {{table}} ({{columns}}) VALUES ({{values}})\nON CONFLICT ({{key}}) DO NOTHING RETURNING *;\n",
            "sql",
            ["postgres", "idempotency", "migrations"],
        ),
    ),
    Sample(
        key="pat-error-cors-preflight-008",
        successes=2,
        failures=0,
        discovered_by="api-client",
        last_used_days=7,
        body=_error(
            "Other",
            "Response to preflight request doesn't pass access control check",
            ["src/http/app.ts"],
            "Register the CORS middleware before the routes and let it answer OPTIONS itself",
            "refactor_code_structure",
            "app.use(cors({ origin: {{origins}}, credentials: true }));\napp.use({{router}});\n",
            "typescript",
            ["http", "cors", "express"],
        ),
    ),
    Sample(
        key="pat-error-pool-timeout-009",
        successes=5,
        failures=3,
        discovered_by="query-cache",
        body=_error(
            "TimeoutError",
            "Timed out fetching a new connection from the connection pool",
            ["src/db/pool.ts", "src/reports/monthly.ts"],
            "Raise the connection limit of the pool until the timeouts are gone",
            "other",
            "new Pool({ max: {{limit}} });\n",
            "typescript",
            ["postgres", "performance", "pool"],
        ),
    ),
    Sample(
        key="pat-error-fake-timers-010",
        successes=8,
        failures=1,
        discovered_by="payment-coverage",
        last_used_days=0.03,
        body=_error(
            "TimeoutError",
            "Exceeded timeout of \\d+ ?ms for a test",
            ["test/checkout/*.test.ts", "test/payments/*.test.ts"],
            "Use fake timers and advance them; real waiting makes the test depend on the machine's load",
            "fix_logic_error",
            "vi.useFakeTimers();\nawait vi.advanceTimersByTimeAsync({{milliseconds}});\n",
            "typescript",
            ["testing", "flaky", "timers"],
        ),
    ),
    Sample(
        key="pat-error-loop-closed-011",
        successes=4,
        failures=0,
        discovered_by="job-queue",
        last_used_days=6,
        body=_error(
            "RuntimeError",
            "Event loop is closed",
            ["workers/**/*.py", "tests/workers/conftest.py"],
            "Create the client inside the running loop and close it in the same fixture that opened it",
            "refactor_code_structure",
            "@pytest.fixture\nasync def {{client}}():\n    async with {{factory}}() as client:\n        yield client\n",
            "python",
            ["python", "asyncio", "testing"],
        ),
    ),
    Sample(
        key="pat-error-field-required-012",
        successes=4,
        failures=0,
        discovered_by="job-queue",
        last_used_days=4,
        body=_error(
            "ValidationError",
            "Field required \\[type=missing, .*\\]",
            ["workers/events.py", "workers/settlement.py"],
            "Give the new event field a default for one release, because the queue still holds messages of "
            "the old "
            "schema",
            "add_type_validation",
            "{{field}}: {{type}} | None = None  # until the queue has drained\n",
            "python",
            ["python", "pydantic", "events"],
        ),
    ),
    Sample(
        key="pat-error-import-cycle-013",
        successes=2,
        failures=0,
        discovered_by="monthly-report",
        last_used_days=2,
        body=_error(
            "Other",
            "(?i)error|cannot|timeout|denied|undefined",
            ["workers/**/*.py"],
            "Move the shared types into a module without imports of its own; a local import only hides the cycle",
            "refactor_code_structure",
            "from workers.types import {{Name}}\n",
            "python",
            ["python", "imports"],
        ),
    ),
    Sample(
        key="pat-error-headers-sent-014",
        successes=5,
        failures=0,
        discovered_by="contract-tests",
        last_used_days=168,
        body=_error(
            "Other",
            "Cannot set headers after they are sent to the client",
            ["src/http/**/*.ts"],
            "Return after every response; a missing return lets the handler run on into the next one",
            "fix_logic_error",
            "return res.status({{status}}).json({{body}});\n",
            "typescript",
            ["http", "express"],
        ),
    ),
    Sample(
        key="pat-error-decimal-json-016",
        successes=7,
        failures=0,
        discovered_by="job-queue",
        last_used_days=5,
        body=_error(
            "TypeError",
            "Object of type Decimal is not JSON serializable",
            ["workers/settlement.py", "workers/invoices.py"],
            "Serialise amounts as strings in minor units; a float silently changes the cents",
            "fix_logic_error",
            "json.dumps({{payload}}, default=lambda value: str(value))\n",
            "python",
            ["python", "money", "json"],
        ),
    ),
    Sample(
        key="pat-error-optional-types-017",
        successes=1,
        failures=0,
        discovered_by="api-client",
        body=_error(
            "TypeError",
            "Property '.*' is missing in type '.*' but required in type '.*'",
            ["src/orders/client.ts", "src/billing/dto.ts"],
            "Mark the field optional in the transport type and require it only after it has been parsed",
            "add_type_validation",
            "type {{Name}}Input = Partial<Pick<{{Name}}, {{fields}}>>;\n",
            "typescript",
            ["typescript", "types", "dto"],
        ),
    ),
)

SUCCESSES: Final = (
    Sample(
        key="pat-success-types-first-006",
        successes=8,
        failures=1,
        discovered_by="payment-coverage",
        trend=((45, 1.0, 1), (20, 1.0, 5)),
        body=_success(
            "refactoring",
            "(?i)(typescript|type errors?|strict|refactor)",
            "Write the types first",
            [
                "Write or correct the interfaces of the module",
                "Let the compiler list every place that no longer fits",
                "Change one file at a time, leaves of the import graph first",
                "Run the tests of that file before going to the next",
            ],
            ["Read", "Edit", "Bash (npx tsc --noEmit)"],
            (3.1, 2, 6),
            ["The module compiles today"],
            ["The compiler keeps the list of open work", "Each step can be committed on its own"],
            ["Little help where data comes in untyped"],
            ["typescript", "types", "refactoring"],
        ),
    ),
    Sample(
        key="pat-success-split-by-type-002",
        successes=2,
        failures=5,
        discovered_by="payment-coverage",
        body=_success(
            "refactoring",
            "(?i)(refactor|migrate|split|rework)",
            "Split work by file type",
            [
                "Group the files to change by their type: handlers, services, tests",
                "Change all files of one type in one iteration",
                "Go to the next type when the first compiles",
            ],
            ["Glob", "Edit"],
            (4.1, 2, 8),
            ["The files of one type do not depend on each other"],
            ["Every edit of an iteration looks alike"],
            ["Shared types change under every group at once"],
            ["refactoring", "planning"],
        ),
    ),
    Sample(
        key="pat-success-test-generation-001",
        successes=9,
        failures=1,
        discovered_by="contract-tests",
        trend=((205, 1.0, 1), (118, 1.0, 2), (40, 0.9, 6)),
        last_used_days=3,
        body=_success(
            "testing",
            "(?i)(add|write|generate|raise|coverage).*(tests?|coverage)",
            "Derive the tests from the contract, not from the code",
            [
                "Read the OpenAPI description or the function's documentation",
                "List edge cases and error answers before opening the implementation",
                "Write the tests and see each of them fail for the right reason",
                "Change the code until they pass",
                "Check with mutation testing that they can fail at all",
            ],
            ["Read", "Write", "Bash (npm test)"],
            (2.5, 1, 5),
            ["A test runner is configured", "The contract is written down"],
            ["Tests say what is promised, not what happens to be", "Finds missing error answers early"],
            ["Slow where there is no contract yet"],
            ["testing", "tdd", "contracts"],
        ),
    ),
    Sample(
        key="pat-success-type-fixing-003",
        successes=13,
        failures=2,
        discovered_by="sign-up",
        trend=((118, 1.0, 1), (80, 0.8, 5), (33, 0.9, 10)),
        body=_success(
            "debugging",
            "(?i)fix.*(type|typescript|tsc)",
            "Fix type errors from the declarations outward",
            [
                "Run tsc --noEmit and keep the whole list",
                "Group the errors by the declaration that causes them",
                "Correct the interface definitions first, their usages second",
                "Run tsc again and compare the number of errors",
            ],
            ["Bash (npx tsc --noEmit)", "Grep", "Edit"],
            (2.8, 1, 6),
            ["tsc runs in the project"],
            ["One declaration often settles dozens of errors"],
            ["Generated clients need their generator changed instead"],
            ["typescript", "types", "debugging"],
        ),
    ),
    Sample(
        key="pat-success-expand-contract-004",
        successes=5,
        failures=0,
        discovered_by="sign-up",
        last_used_days=24,
        body=_success(
            "migration",
            "(?i)(migrat|schema|column|rename)",
            "Expand, backfill, contract",
            [
                "Add the new column or table beside the old one",
                "Write to both, read from the old one",
                "Backfill in batches that can be repeated",
                "Read from the new one, and drop the old one a release later",
            ],
            ["Write", "Bash (npm run migrate)"],
            (5.0, 4, 7),
            ["Deployments roll, two versions run at once"],
            ["Every step can be rolled back on its own"],
            ["Takes two releases"],
            ["postgres", "migrations", "zero-downtime"],
        ),
    ),
    Sample(
        key="pat-success-bisect-flaky-005",
        successes=3,
        failures=1,
        discovered_by="job-queue",
        body=_success(
            "testing",
            "(?i)(flaky|intermittent|unstable|stabili[sz]e)",
            "Make a flaky test fail on demand before mending it",
            [
                "Repeat the test two hundred times with a fixed seed",
                "Bisect the order of the tests before it",
                "Print the shared state at the first difference",
                "Remove the cause, then repeat two hundred times again",
            ],
            ["Bash (npx vitest --repeat)", "Read", "Edit"],
            (3.7, 2, 6),
            ["The runner can repeat and shuffle"],
            ["Shows that the repair worked"],
            ["Races between machines do not show"],
            ["testing", "flaky"],
        ),
    ),
    Sample(
        key="pat-success-openapi-first-007",
        successes=2,
        failures=0,
        discovered_by="billing-docs",
        last_used_days=1.5,
        body=_success(
            "documentation",
            "(?i)(document|openapi|endpoint)",
            "Document an endpoint from a recorded request",
            [
                "Record one good and one refused request of the endpoint",
                "Write the OpenAPI entry from the recording",
                "Check the recording against the entry in a test",
            ],
            ["Bash (curl)", "Write"],
            (2.0, 1, 3),
            ["The service runs locally"],
            ["Examples are real and stay true"],
            [],
            ["documentation", "openapi"],
        ),
    ),
    Sample(
        key="pat-success-strangler-008",
        successes=1,
        failures=0,
        discovered_by="session-store",
        body=_success(
            "architecture",
            "(?i)(replace|rewrite|extract).*(service|store|module)",
            "Put the new implementation behind the old interface",
            [
                "Extract the interface of the old implementation",
                "Write the new one against the same tests",
                "Switch callers one at a time behind a flag",
            ],
            ["Read", "Edit", "Bash (npm test)"],
            (6.0, 6, 6),
            ["Callers go through one module"],
            ["Old and new can be compared at any time"],
            ["Needs a flag that somebody removes later"],
            ["architecture", "refactoring"],
        ),
    ),
    Sample(
        key="pat-success-profile-first-009",
        successes=5,
        failures=0,
        discovered_by="query-cache",
        body=_success(
            "optimization",
            "(?i)(speed|slow|optimi[sz]e|latency|p95)",
            "Measure the query plan before adding an index",
            [
                "Run EXPLAIN (ANALYZE, BUFFERS) on production-sized data",
                "Find the node where the time is spent",
                "Change one thing and measure again",
                "Keep the plans before and after with the change",
            ],
            ["Bash (psql)", "Read"],
            (3.0, 2, 4),
            ["A copy of the data of realistic size"],
            ["No index that nobody uses"],
            ["Plans change with the data"],
            ["postgres", "performance"],
        ),
    ),
    Sample(
        key="pat-success-big-bang-010",
        successes=3,
        failures=3,
        discovered_by="query-cache",
        last_used_days=10,
        body=_success(
            "refactoring",
            "(?i)(rewrite|replace|redesign)",
            "Rewrite the module in one go and then mend the tests",
            [
                "Write the new module from its description",
                "Delete the old one",
                "Mend the tests until they pass",
            ],
            ["Write", "Bash (npm test)"],
            (7.5, 4, 12),
            ["The module is small"],
            ["No intermediate state to keep working"],
            ["Behaviour that no test covers is lost"],
            ["refactoring", "rewrite"],
        ),
    ),
    Sample(
        key="pat-success-characterise-011",
        successes=4,
        failures=1,
        discovered_by="sign-up",
        body=_success(
            "refactoring",
            "(?i)(refactor|untested|legacy)",
            "Pin the behaviour with characterisation tests before refactoring",
            [
                "Call the old code with real inputs and record its answers",
                "Turn the recordings into tests",
                "Refactor in small steps under them",
                "Replace the recordings by meaningful tests at the end",
            ],
            ["Bash (npm test)", "Write", "Edit"],
            (4.2, 3, 6),
            ["Inputs can be recorded"],
            ["Refactoring without fear of silent changes"],
            ["Pins bugs as well"],
            ["testing", "refactoring", "legacy"],
        ),
    ),
)

ANTIS: Final = (
    Sample(
        key="pat-anti-premature-optimization-001",
        successes=9,
        failures=1,
        discovered_by="contract-tests",
        last_used_days=8,
        trend=((205, 1.0, 1), (70, 1.0, 3)),
        body=_anti(
            "Optimizing code before its tests pass",
            "scope_creep",
            ["Iterations go by without progress on the task", "The diff touches files the task never named"],
            "Optimization moves the code while its behaviour is still wrong, so every later error has two "
            "possible causes",
            "Finish the task first, then measure, then optimize what the measurement shows",
            "pat-success-profile-first-009",
            ["optimization", "scope"],
        ),
    ),
    Sample(
        key="pat-anti-skip-failing-test-002",
        successes=4,
        failures=0,
        discovered_by="payment-coverage",
        body=_anti(
            "Skipping a failing test to get a green run",
            "incorrect_fix",
            ["The number of skipped tests grows", "The same error comes back two iterations later"],
            "The failing test was right about the code",
            "Make the failure reproducible and mend its cause",
            "pat-success-bisect-flaky-005",
            ["testing", "flaky"],
        ),
    ),
    Sample(
        key="pat-anti-any-cast-003",
        successes=11,
        failures=1,
        discovered_by="sign-up",
        trend=((118, 1.0, 1), (75, 0.8, 5), (40, 0.88, 8)),
        body=_anti(
            "Silencing a type error with a cast to any",
            "repeated_same_error",
            ["The error moves to the next caller", "as any spreads through the module"],
            "The cast removes the check and leaves the wrong value",
            "Correct the declaration that the value comes from",
            "pat-success-type-fixing-003",
            ["typescript", "types"],
        ),
    ),
    Sample(
        key="pat-anti-sleep-in-tests-004",
        successes=3,
        failures=1,
        discovered_by="job-queue",
        body=_anti(
            "Adding a sleep to a test until it passes",
            "quality_degradation",
            ["The suite gets slower with every iteration", "The test fails again under load"],
            "A sleep guesses how long something takes; the loaded machine takes longer",
            "Wait for the condition, or use fake timers",
            None,
            ["testing", "flaky", "timers"],
        ),
    ),
    Sample(
        key="pat-anti-global-mock-005",
        successes=2,
        failures=0,
        discovered_by="api-client",
        last_used_days=11,
        body=_anti(
            "Mocking the HTTP client for the whole test suite",
            "breaking_change",
            ["Tests pass although the client's arguments are wrong"],
            "No test sees the real serialisation any more",
            "Start a local stub server and let the real client talk to it",
            None,
            ["testing", "mocks", "http"],
        ),
    ),
    Sample(
        key="pat-anti-catch-all-006",
        successes=3,
        failures=2,
        discovered_by="payment-coverage",
        last_used_days=9,
        body=_anti(
            "Catching every exception in the worker's main loop",
            "incorrect_fix",
            ["Messages vanish from the queue without a trace"],
            "A programming error looks like a bad message and is acknowledged",
            "Catch what a bad message can raise, and let the rest end the worker",
            None,
            ["python", "errors", "queue"],
        ),
    ),
    Sample(
        key="pat-anti-unbounded-retry-007",
        successes=1,
        failures=0,
        discovered_by="monthly-report",
        body=_anti(
            "Retrying a failing query without an upper bound",
            "infinite_loop",
            ["The same query appears dozens of times in the log", "The connection pool runs empty"],
            "The query fails because of the load that the retries create",
            "Retry at most three times with a growing pause, then report",
            None,
            ["postgres", "retry"],
        ),
    ),
)

TEMPLATES: Final = (
    Sample(
        key="tmpl-async-error-handler-001",
        successes=19,
        failures=1,
        discovered_by="contract-tests",
        last_used_days=1,
        body=_template(
            "typescript",
            "try {\n  return await {{call}};\n} catch (error) {\n"
            '  throw new {{ErrorClass}}("{{message}}", { cause: error });\n}\n',
            "Wrap an asynchronous call and keep the cause",
            "A service calls another service and has to say which step failed",
            {
                "call": "The asynchronous call",
                "ErrorClass": "An error of the service's own family",
                "message": "What was being attempted, for a person",
            },
            ["typescript", "async", "errors"],
        ),
    ),
    Sample(
        key="tmpl-idempotency-key-002",
        successes=4,
        failures=0,
        discovered_by="payment-coverage",
        body=_template(
            "typescript",
            "const seen = await keys.claim({{key}}, { ttl: '24h' });\nif (seen) return seen.response;\n"
            "const response = await {{handle}};\nawait keys.store({{key}}, response);\nreturn response;\n",
            "Claim an idempotency key before doing the work",
            "A webhook or payment request may be delivered more than once",
            {"key": "The sender's idempotency key", "handle": "The work that must happen once"},
            ["payments", "webhooks", "idempotency"],
        ),
    ),
    Sample(
        key="tmpl-frozen-clock-003",
        successes=2,
        failures=0,
        discovered_by="job-queue",
        last_used_days=14,
        body=_template(
            "python",
            "@pytest.fixture\ndef clock(monkeypatch):\n    clock = FakeClock({{start}})\n"
            '    monkeypatch.setattr("{{module}}.now", clock.now)\n    return clock\n',
            "A clock that a test moves by hand",
            "Code asks for the time and a test has to decide what it is told",
            {"start": "The moment the test starts at", "module": "The module under test"},
            ["python", "testing", "time"],
        ),
    ),
    Sample(
        key="tmpl-batched-backfill-004",
        successes=4,
        failures=0,
        discovered_by="job-queue",
        last_used_days=13,
        body=_template(
            "other",
            "UPDATE {{table}} SET {{new}} = {{expression}}\nWHERE id IN (\n"
            "  SELECT id FROM {{table}} WHERE {{new}} IS NULL ORDER BY id LIMIT 1000 FOR UPDATE SKIP "
            "LOCKED\n);\n",
            "Backfill a column in batches that can be repeated",
            "A new column gets its values while the service runs",
            {"table": "The table", "new": "The new column", "expression": "Its value from the old columns"},
            ["postgres", "migrations"],
        ),
    ),
    Sample(
        key="tmpl-zod-schema-005",
        successes=1,
        failures=0,
        discovered_by="api-client",
        body=_template(
            "typescript",
            "export const {{Name}} = z.object({\n  {{field}}: z.{{type}}(),\n});\n"
            "export type {{Name}} = z.infer<typeof {{Name}}>;\n",
            "One schema that is the type and the check",
            "Untyped data enters the service",
            {"Name": "Name of the type", "field": "A field", "type": "Its zod type"},
            ["typescript", "validation", "zod"],
        ),
    ),
    Sample(
        key="tmpl-express-wrapper-006",
        successes=4,
        failures=3,
        discovered_by="sign-up",
        body=_template(
            "javascript",
            "const wrap = (handler) => (req, res, next) =>\n  Promise.resolve(handler(req, res, next)).catch(next);\n",
            "Send rejections of an asynchronous handler to Express",
            "Express 4 handlers that are async functions",
            {},
            ["javascript", "express", "async"],
        ),
    ),
)

EXPECTED_STATES: Final = {
    "candidate": 11,
    "established": 12,
    "proven": 10,
    "deprecated": 7,
}
"""Number of patterns in each state, before any decision."""
