"""Anchors of a fix: its files, the function of the error, what its lines define, dependencies."""

from __future__ import annotations

import pytest

from core.questions.extraction.engine import find_anchors
from core.questions.extraction.fixes import Repair
from core.questions.extraction.triggers import Sighting

ARROW = "@@ b.ts @@\n+export const pay = (x) =>"
REQUIRED = '@@ pyproject.toml @@\n+    "python-dateutil>=2.9",\n+name = "shop"'


def repair(*files: str, diff: str = "", file: str = "", function: str = "") -> Repair:
    error = Sighting(error_type="TypeError", message="m", signature="m", where="", file=file, function=function)
    return Repair(error=error, description="Fix it", diff=diff, files=files, trace="")


@pytest.mark.parametrize(
    ("fix", "anchors"),
    [
        (repair("/shop/src/cart.py", "README.md", "tests/test_cart.py"), ["src/cart.py"]),
        (repair("tests/test_cart.py"), ["tests/test_cart.py"]),
        (repair("/elsewhere/cart.py", "../cart.py", ""), []),
        (repair("a.py", "b.py", "c.py", "d.py"), ["a.py", "b.py", "c.py"]),
        (repair("cart.py", file="cart.py", function="Cart.total"), ["cart.py", "cart.py#total"]),
        (repair("cart.py", file="other.py", function="total"), ["cart.py"]),
        (repair("cart.py", file="cart.py", function="<module>"), ["cart.py"]),
        (
            repair("a.py", "b.ts", diff="@@ a.py @@\n class Cart:\n-def old():\n+  def __init__(self):\n" + ARROW),
            ["a.py", "a.py#Cart", "b.ts", "b.ts#pay"],
        ),
        (repair("a.go", diff="@@ a.go @@\n func (c *Cart) Total() int {\n+\treturn 0"), ["a.go", "a.go#Total"]),
        (
            repair("cart.py", "pyproject.toml", diff=REQUIRED),
            ["cart.py", "pyproject.toml", "pyproject.toml#python-dateutil"],
        ),
    ],
)  # fmt: skip
def test_anchors_of_a_fix(fix: Repair, anchors: list[str]) -> None:
    assert list(find_anchors(fix, "/shop")) == anchors
