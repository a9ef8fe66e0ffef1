"""What is done at the played tasks: attempts, action by action, with errors that come and get fixed."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Doing(Struct, frozen=True):
    """One action.

    Attributes:
        type: One of the seven of (1).
        what: The file, command, pattern or question that it is about.
        why, expected: Its reasoning and its expected outcome.
        came: Its output.
        error: Why it failed; "" if it did not.
        change: Old and new text of an edit.
        quality: 0..1, what the work is worth after it; None where nobody measured. It ends the iteration.
    """

    type: str
    what: str
    why: str
    expected: str
    came: str = ""
    error: str = ""
    change: tuple[str, str] | None = None
    quality: float | None = None


class Try(Struct, frozen=True, kw_only=True):
    """One attempt at a task, or the rest of one that the sample leaves open; that has no approach of its own.

    Attributes:
        iteration: The one that it begins with.
        learning: What it teaches, said by the agent itself; "" leaves the draft.
    """

    approach: str = ""
    steps: tuple[str, ...] = ()
    doings: tuple[Doing, ...]
    succeeds: bool
    reason: str
    learning: str
    iteration: int = 1


class PlayedTask(Struct, frozen=True, kw_only=True):
    """One task; `id` is that of a task of the sample, "" for a new one."""

    id: str = ""
    description: str = ""
    criteria: str = ""
    tags: tuple[str, ...] = ()
    tries: tuple[Try, ...]


OPEN_TASK: Final = PlayedTask(
    id="task-002",
    tries=(
        Try(
            iteration=3,
            succeeds=True,
            reason="32 tests pass in any order, with 50 concurrent merges",
            learning="Reset the shared fixtures between tests, and shuffle their order to see whether it helped.",
            doings=(
                Doing(
                    "edit",
                    "test/checkout/coupons.test.ts",
                    "A test makes what it needs",
                    "It passes alone and behind the others",
                    "1 replacement",
                    change=("const cart = await firstCart(account);", "const cart = await createCart(account);"),
                ),
                Doing(
                    "bash",
                    "npx vitest run test/checkout --sequence.shuffle",
                    "In any order",
                    "32 passed",
                    "32 passed",
                    quality=0.85,
                ),
                Doing(
                    "bash",
                    "pytest workers -q",
                    "The workers merge carts as well",
                    "123 passed",
                    "122 passed, 1 failed",
                    "AttributeError: module 'carts' has no attribute 'merge_with_retry'",
                ),
                Doing("grep", "merge_with_retry", "Who else used the wrapper", "One worker", "workers/carts.py:40"),
                Doing(
                    "edit",
                    "workers/carts.py",
                    "The retry is gone on this side too",
                    "123 passed",
                    "1 replacement",
                    change=("await merge_with_retry(cart)", "await merge(cart)"),
                ),
                Doing("bash", "pytest workers -q", "The last criterion", "123 passed", "123 passed", quality=0.96),
            ),
        ),
    ),
)
"""Goes on where the sample leaves it."""

NEW_TASKS: Final = (
    PlayedTask(
        description="Keep the price of a cart line while the cart is open",
        criteria="npm test -- cart passes and the price list can change at any time",
        tags=("checkout", "prices"),
        tries=(
            Try(
                approach="Copy the price into the line when the page is drawn",
                steps=("Find where the price is read", "Copy it into the line", "Change the price list in a test"),
                succeeds=False,
                reason="Two devices show two prices of one line",
                learning="Settle the price in the type of the line before the first page that shows it.",
                doings=(
                    Doing("grep", "priceOf(", "Find where the price is read", "A few places", "9 places in 6 files"),
                    Doing("read", "src/cart/line.ts", "What a line holds", "Article and amount", "articleId, amount"),
                    Doing(
                        "edit",
                        "src/cart/page.ts",
                        "Copy the price when the page is drawn",
                        "The page no longer changes",
                        "1 replacement",
                        change=("priceOf(line.articleId)", "line.shownPrice ?? priceOf(line.articleId)"),
                    ),
                    Doing(
                        "bash",
                        "npm test -- cart",
                        "With a price list that changes",
                        "44 passing",
                        "42 passing, 2 failing",
                        "AssertionError: expected 1990 to equal 2190",
                        quality=0.4,
                    ),
                    Doing("task", "Ask which price counts at checkout", "Nobody wrote it down", "A rule", "The first"),
                ),
            ),
            Try(
                approach="Put the price into the line when the article is added",
                steps=("Extend the type of a line", "Fill it in addLine", "Backfill open carts"),
                succeeds=True,
                reason="44 tests pass while the price list changes",
                learning="",
                doings=(
                    Doing(
                        "edit",
                        "src/cart/line.ts",
                        "Types first",
                        "Errors where lines are made",
                        "1 replacement",
                        change=("amount: number;", "amount: number;\n  price: MinorUnits;"),
                    ),
                    Doing(
                        "bash",
                        "npx tsc --noEmit",
                        "Let the compiler name them",
                        "Two or three errors",
                        "Found 2 errors.",
                        "src/cart/add.ts(8,3): error TS2741: Property 'price' is missing in type 'Line'.",
                        quality=0.6,
                    ),
                    Doing(
                        "edit",
                        "src/cart/add.ts",
                        "The price of the moment",
                        "tsc passes",
                        "2 replacements",
                        change=("{ articleId, amount }", "{ articleId, amount, price: priceOf(articleId) }"),
                    ),
                    Doing("write", "migrations/0142_line_price.sql", "Open carts have no price yet", "One statement"),
                    Doing("glob", "test/cart/*.test.ts", "Which tests make lines by hand", "A few", "5 files"),
                    Doing("bash", "npm test -- cart", "The criterion", "44 passing", "44 passing", quality=0.95),
                ),
            ),
        ),
    ),
    PlayedTask(
        description="Answer health checks while the workers start",
        criteria="pytest workers passes and /health answers within 100 ms of the start",
        tags=("python", "operations"),
        tries=(
            Try(
                approach="Open the port first, connect afterwards",
                steps=("Measure the start", "Open the port first", "Say when the connections are ready"),
                succeeds=True,
                reason="/health answers after 38 ms",
                learning="",
                doings=(
                    Doing("bash", "time python -m workers --check", "Measure", "Below a second", "1.9 s", quality=0.3),
                    Doing("read", "workers/__main__.py", "What comes first", "The connections", "connect(); serve()"),
                    Doing(
                        "edit",
                        "workers/__main__.py",
                        "Open the port first",
                        "It answers at once",
                        "1 replacement",
                        change=("await connect()\nawait serve()", "async with serve():\n    await connect()"),
                    ),
                    Doing(
                        "bash",
                        "pytest workers -q",
                        "Nothing else may change",
                        "123 passed",
                        "121 passed, 2 failed",
                        "RuntimeError: Event loop is closed",
                        quality=0.7,
                    ),
                    Doing("grep", "AsyncClient(", "A client before the loop", "One module", "workers/health.py:6"),
                    Doing(
                        "edit",
                        "workers/health.py",
                        "Open it inside the loop",
                        "123 passed",
                        "1 replacement",
                        change=("client = AsyncClient()", "async with AsyncClient() as client:"),
                    ),
                    Doing("bash", "pytest workers -q", "All of it", "123 passed", "123 passed", quality=0.97),
                ),
            ),
        ),
    ),
)
"""Begin while one watches."""
