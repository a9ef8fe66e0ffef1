"""Plant faults in the rules, one at a time, and count how many of them the tests notice.

A fault changes one expression of a function: a comparison (`<` to `<=`), `and` to `or`, `+` to `-`, `not x` to `x`, or
a number to the next one. All chosen faults are compiled into the modules at once, each behind a switch. One run of all
tests records which tests reach which fault; then the tests that reach a fault run with it, until one fails.

    python -m tests.planted_faults --count 200 --seed 7 --report before.json
"""

from __future__ import annotations

import argparse
import ast
import builtins
import copy
import json
import os
import random
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("learning", "decisions", "retrieval", "questions", "show")
TESTS = tuple(f"tests/core/{room}" for room in ROOMS)
SWITCH = "__planted_fault__"
SECONDS = 180
"""Time for the tests of one fault; a fault that makes them slower is noticed, too."""
_PYTEST_OPTIONS = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-o", "addopts="]
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One change of one expression; `position` counts the possible faults of the file from 0."""

    path: str
    position: int
    line: int
    before: str
    after: str


def change_expression(node: ast.AST) -> ast.expr | None:
    """Return a changed copy of an expression, or None if it has no operator or number to change."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
            changed: ast.expr = copy.deepcopy(node)
            assert isinstance(changed, ast.Compare)
            changed.ops = [_COMPARISONS[type(operator)]()]
            return changed
        case ast.BoolOp():
            changed = copy.deepcopy(node)
            assert isinstance(changed, ast.BoolOp)
            changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            return changed
        case ast.BinOp(op=ast.Add() | ast.Sub()) if not isinstance(node.left, (ast.JoinedStr, ast.Constant)):
            changed = copy.deepcopy(node)
            assert isinstance(changed, ast.BinOp)
            changed.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            return changed
        case ast.UnaryOp(op=ast.Not()):
            return copy.deepcopy(node.operand)
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return ast.Constant(value=value + 1)
    return None


class _Planter(ast.NodeTransformer):
    """Visits the bodies of functions; lists the possible faults, and puts a switch around the chosen ones."""

    def __init__(self, path: str, chosen: dict[int, int]) -> None:
        self.path = path
        self.chosen = chosen
        self.faults: list[Fault] = []
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._depth += 1
        node.body = [self.visit(statement) for statement in node.body]
        self._depth -= 1
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Leave patterns as they are: they have no expressions to change."""
        node.guard = self.visit(node.guard) if node.guard else None
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.value = self.visit(node.value) if node.value else None
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        changed = change_expression(node) if self._depth else None
        number = None
        if changed is not None and isinstance(node, ast.expr):
            position = len(self.faults)
            self.faults.append(Fault(self.path, position, node.lineno, ast.unparse(node), ast.unparse(changed)))
            number = self.chosen.get(position)
        super().generic_visit(node)
        if number is None or not isinstance(node, ast.expr):
            return node
        assert changed is not None
        call = ast.Call(ast.Name(SWITCH, ast.Load()), [ast.Constant(number)], [])
        return ast.fix_missing_locations(ast.copy_location(ast.IfExp(call, changed, node), node))


def list_faults(path: Path) -> list[Fault]:
    """List the possible faults of a file in the order of their places."""
    planter = _Planter(path.relative_to(ROOT).as_posix(), {})
    planter.visit(ast.parse(path.read_text("utf-8")))
    return planter.faults


def choose_faults(rooms: Iterable[str], count: int, seed: int) -> list[Fault]:
    """Choose faults at random: the same number in each room."""
    chosen: list[Fault] = []
    names = sorted(rooms)
    for index, room in enumerate(names):
        share = count // len(names) + (index < count % len(names))
        possible = [fault for path in sorted((ROOT / "core" / room).rglob("*.py")) for fault in list_faults(path)]
        chosen += random.Random(f"{seed} {room}").sample(possible, min(share, len(possible)))
    return chosen


class _Loader(SourceFileLoader):
    """Compiles a module with its faults, and neither reads nor writes the cache of compiled modules."""

    chosen: dict[int, int]

    def get_code(self, fullname: str) -> CodeType | None:
        path = Path(self.get_filename(fullname))
        tree = _Planter(path.relative_to(ROOT).as_posix(), self.chosen).visit(ast.parse(path.read_text("utf-8")))
        return compile(tree, str(path), "exec")


class _Finder(MetaPathFinder):
    """Finds the modules that have faults, before the usual finders do."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._chosen: dict[str, dict[int, int]] = defaultdict(dict)
        for number, fault in enumerate(faults):
            self._chosen[str(ROOT / fault.path)][fault.position] = number

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith("core.") else None
        if spec is None or spec.origin not in self._chosen:
            return None
        loader = _Loader(fullname, spec.origin)
        loader.chosen = self._chosen[spec.origin]
        spec.loader = loader
        return spec


class _Switch:
    """Answers whether a fault is on, and records which tests ask."""

    def __init__(self) -> None:
        self.active: int | None = None
        self.test = ""
        self.tests: dict[int, set[str]] = defaultdict(set)

    def __call__(self, number: int) -> bool:
        self.tests[number].add(self.test)
        return number == self.active

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.test = item.nodeid
        return (yield)


def _run_in_child(work: Sequence[str], switch: _Switch, active: int | None, result: Path | None = None) -> int:
    """Run tests in a child process, and return its exit status; the signal number, negative, if it was killed."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    status = int(pytest.ExitCode.INTERNAL_ERROR)
    try:
        if result is None:
            signal.alarm(SECONDS)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        switch.active = active
        options = [*_PYTEST_OPTIONS, *(["-x"] if result is None else [])]
        status = int(pytest.main([*options, *work], plugins=[switch]))
        if result is not None:
            result.write_text(json.dumps({number: sorted(tests) for number, tests in switch.tests.items()}), "utf-8")
    finally:
        os._exit(status)


def record_tests(tests: Sequence[str], switch: _Switch) -> dict[int, list[str]]:
    """Run all tests without a fault, and return those that reach each fault; exit if a test fails."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "tests.json"
        if _run_in_child(tests, switch, None, result):
            sys.exit("The tests fail without a fault; run them first.")
        return {int(number): names for number, names in json.loads(result.read_text("utf-8")).items()}


def is_noticed(number: int, tests: Sequence[str], switch: _Switch) -> bool:
    """Whether a test fails with a fault: first the tests that reach it, then all tests of their files."""
    names = [test for test in tests if test]
    files = sorted({test.partition("::")[0] for test in names})
    for work in (names, files) if names else ():
        status = _run_in_child(work, switch, number)
        if status == pytest.ExitCode.INTERNAL_ERROR:
            sys.exit("pytest could not run the tests.")
        # A test may have a name that pytest does not accept as an argument: it runs with its file.
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.USAGE_ERROR):
            return True
    return False


def main() -> None:
    """Choose, plant and count; print each fault that is not noticed, and a line with the sums of each room."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted_faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--rooms", default=",".join(ROOMS), help="packages of core, separated by commas")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--report", type=Path, help="JSON file for the result of each fault")
    parser.add_argument("tests", nargs="*", default=TESTS, help="tests that may notice a fault")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    faults = choose_faults(arguments.rooms.split(","), arguments.count, arguments.seed)
    switch = _Switch()
    setattr(builtins, SWITCH, switch)
    sys.meta_path.insert(0, _Finder(faults))
    sys.dont_write_bytecode = True
    tests = record_tests(arguments.tests, switch)
    # The child processes find most modules loaded.
    import_module("core.project.project")
    report = []
    noticed: dict[str, int] = defaultdict(int)
    planted: dict[str, int] = defaultdict(int)
    for number, fault in enumerate(faults):
        room = fault.path.split("/")[1]
        planted[room] += 1
        seen = is_noticed(number, tests.get(number, []), switch)
        noticed[room] += seen
        report.append({"fault": [fault.path, fault.line, fault.before, fault.after], "noticed": seen})
        if not seen:
            reach = "" if number in tests else " (no test reaches it)"
            print(f"{fault.path}:{fault.line}: {fault.before} -> {fault.after}{reach}", flush=True)
        if arguments.report is not None:
            arguments.report.write_text(json.dumps(report, indent=0), "utf-8")
    print(", ".join(f"{room} {noticed[room]} of {planted[room]}" for room in planted))
    print(f"{sum(noticed.values())} of {len(faults)} planted faults are noticed")


if __name__ == "__main__":
    main()
