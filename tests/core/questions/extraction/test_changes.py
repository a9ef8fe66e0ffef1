"""Changes from which nothing is learned, and changes after which a test checks less."""

from __future__ import annotations

from core.questions.extraction.changes import (
    Weakening,
    find_weakening,
    is_environment_error,
    is_install,
    teaches_nothing,
)
from core.records.debug_sessions import Failure
from core.records.episodes import Action
from core.tasks.changes import compare_texts


def is_nothing(file: str, old: str, new: str) -> bool:
    return teaches_nothing(compare_texts(file, f"{old}\n", f"{new}\n"), [file])


def test_suppressed_checks_and_changes_of_the_environment_teach_nothing() -> None:
    for file, old, new in [
        ("a.py", "x = f()", "x = f()  # type: ignore"),
        ("a.py", "import os", "import os  # noqa: F401"),
        ("a.ts", "const x = f();", "// @ts-ignore\nconst x = f();"),
        ("a.js", "var x = 1;", "var x = 1; // eslint-disable-line no-var"),
        ("pytest.ini", "[pytest]", "[pytest]\npythonpath = src"),
        ("requirements.txt", "flask", "flask\nrequests"),
        ("jest.config.js", "module.exports = {}", "module.exports = { testTimeout: 60000 }"),
        (".env", "A=1", "A=2"),
        ("pyproject.toml", "[tool.pytest.ini_options]", '[tool.pytest.ini_options]\naddopts = "-p no:x"'),
    ]:
        assert is_nothing(file, old, new), (file, old, new)


def test_changes_of_code_teach() -> None:
    for file, old, new in [
        ("a.py", "x = 1", "x = 2"),
        ("a.ts", "const x = f();", "const x = await f(); // @ts-ignore"),
        ("test_a.py", "from app import totals", "from app import total"),
        ("conftest.py", "def client():", "def client(app):"),
        ("package.json", '  "main": "a.js"', '  "main": "b.js"'),
        ("Makefile", "prog: main.o", "prog: main.o hash.o"),
    ]:
        assert not is_nothing(file, old, new), (file, old, new)


def command(text: str, error: str = "", *, success: bool = False) -> Action:
    return Action(number=1, type="bash", tool="Bash", params=(("command", text),), success=success, error=error)


def test_a_missing_program_is_an_error_of_the_environment() -> None:
    for text, error, expected in [
        ("python -m pytets", "No module named pytets", True),
        ("python -m pytest", "/usr/bin/python: No module named pytest", True),
        ("pytets -q", "bash: line 1: pytets: command not found", True),
        ("npm run tset", 'npm error Missing script: "tset"', True),
        ("python tets.py", "python: can't open file 'tets.py': [Errno 2] No such file or directory", True),
        ("python -m pytest", "ModuleNotFoundError: No module named 'loader'", False),
        ("sh build.sh", "build.sh: 3: gti: not found", False),
        ("python -m pytest", "TypeError: x", False),
    ]:
        action = command(text, error)
        assert is_environment_error(action, [Failure(message=error)]) is expected, (text, error, expected)


def test_commands_that_install_or_change_the_environment() -> None:
    for text, expected in [
        ("pip install requests", True),
        ("npm ci", True),
        ("source .venv/bin/activate", True),
        ("chmod +x run.sh", True),
        ("npm test", False),
        ("go test ./...", False),
    ]:
        assert is_install(command(text, success=True)) is expected, (text, expected)


def kind(file: str, old: str, new: str) -> str:
    return find_weakening(compare_texts(file, f"{old}\n", f"{new}\n" if new else ""), [file])


def test_a_skipped_test() -> None:
    for file, old, new in [
        ("test_a.py", "def test_a():", "@pytest.mark.skip\ndef test_a():"),
        ("a.test.js", "test('adds', () => {", "test.skip('adds', () => {"),
        ("a.spec.ts", "it('adds', () => {", "xit('adds', () => {"),
        ("a_test.go", "func TestA(t *testing.T) {", "func TestA(t *testing.T) {\n\tt.Skip()"),
        ("src/ATest.java", "  @Test", "  @Disabled\n  @Test"),
        ("tests/a.rs", "#[test]", "#[test]\n#[ignore]"),
        ("test_a.py", "def test_a():", "def test_a():\n    return"),
    ]:
        assert kind(file, old, new) is Weakening.SKIPPED, (file, old, new)


def test_a_deleted_test() -> None:
    for file, old, new in [
        ("test_a.py", "def test_a():\n    assert total() == 5", ""),
        ("test_a.py", "    assert total() == 5\n    x = 1", "    x = 1"),
        ("test_a.py", "CASES = [\n    (1, 2),\n    (2, 3),\n]", "CASES = [\n    (1, 2),\n]"),
    ]:
        assert kind(file, old, new) is Weakening.DELETED, (file, old, new)


def test_a_test_that_the_shell_deletes() -> None:
    for command in ("rm tests/test_a.py", "git rm -q tests/test_a.py && ls"):
        assert find_weakening([], [""], [command]) is Weakening.DELETED, command
    assert find_weakening([], [""], ["rm src/a.py"]) is Weakening.NONE


def test_a_weakened_test() -> None:
    for file, old, new in [
        ("test_a.py", "    assert total() == 5", "    pass"),
        ("test_a.py", "    assert total() == 5", "    # assert total() == 5\n    total()"),
        ("test_a.py", "    assert total() == 5", "    assert True"),
        ("test_a.py", "    assert total() == 5", "    assert total() >= 4"),
        ("test_a.py", "    assert total() == 5", "    assert total() is not None"),
        ("test_a.py", "    assert total() == 5", "    assert total() in (4, 5)"),
        ("test_a.py", "    assert mean() == 1.5", "    assert mean() == pytest.approx(1.5, abs=1)"),
        ("test_a.py", "    with pytest.raises(ValueError):", "    with pytest.raises(Exception):"),
        (
            "test_a.py",
            "    assert f() == 1",
            "    try:\n        assert f() == 1\n    except Exception:\n        ...",
        ),
        ("test_a.py", "@pytest.mark.timeout(5)", "@pytest.mark.timeout(60)"),
        ("test_a.py", "        self.assertEqual(f(), 1)", "        self.assertIsNotNone(f())"),
        ("a.test.ts", "  expect(f()).toEqual([1, 2]);", "  expect(f()).toContain(1);"),
        ("a.test.ts", "  expect(f()).toBe(1);", "  expect(f()).toBeDefined();"),
        ("a.test.js", "  assert.strictEqual(f(), 1);", "  assert.ok(f());"),
        ("a_test.go", "\tassert.Equal(t, 1, f())", "\tassert.NotNil(t, f())"),
        ("tests/a.rs", "    assert_eq!(f(), 1);", "    assert!(f() > 0);"),
        ("ATest.java", "    assertEquals(1, f());", "    assertTrue(f() > 0);"),
    ]:
        assert kind(file, old, new) is Weakening.WEAKENED, (file, old, new)


def test_a_test_with_other_expected_values() -> None:
    for file, old, new in [
        ("test_a.py", "    assert total() == 5", "    assert total() == 7"),
        ("test_a.py", "    (1, 'a'),", "    (1, 'b'),"),
        ("a.test.js", "const expected = 30;", "const expected = 25;"),
        ("src/__snapshots__/a.test.ts.snap", "exports[`menu 1`] = `- Home`;", "exports[`menu 1`] = `* Home`;"),
    ]:
        assert kind(file, old, new) is Weakening.CHANGED, (file, old, new)


def test_other_changes_weaken_no_test() -> None:
    for file, old, new in [
        ("a.py", "    assert total() == 5", "    assert total() >= 4"),
        ("test_a.py", "from app import totals", "from app import total"),
        ("test_a.py", "    mock('requests.get')", "    mock('app.requests.get')"),
        ("test_a.py", "    assert f() == 0.3", "    assert f() == pytest.approx(0.3)"),
        ("test_a.py", "    assert f() == 0.3", "    assert abs(f() - 0.3) < 1e-9"),
        ("a.test.js", "  expect(f()).toBe(0.3);", "  expect(f()).toBeCloseTo(0.3, 5);"),
        ("a.test.js", "  expect(f()).toBe([1]);", "  expect(f()).toEqual([1]);"),
        ("a.test.js", "  expect(f()).toEqual(1);", "  expect(await f()).toEqual(1);"),
        ("test_a.py", "    assert f() == 1", "    assert f() == 1\n    assert g() > 0"),
        ("conftest.py", "def client():", "def client(app):"),
    ]:
        assert kind(file, old, new) is Weakening.NONE, (file, old, new)


def test_a_test_that_is_skipped_beside_a_change_of_code() -> None:
    hunks = compare_texts("a.py", "x = 1\n", "x = 2\n")
    hunks += compare_texts("test_a.py", "def test_a():\n", "@pytest.mark.xfail\ndef test_a():\n")
    assert find_weakening(hunks, ["a.py", "test_a.py"]) is Weakening.SKIPPED
