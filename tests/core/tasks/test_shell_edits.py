"""Edits of files by shell commands."""

from __future__ import annotations

import pytest

from core.tasks.changes import edits_files, find_shell_hunks


@pytest.mark.parametrize(
    "command",
    [
        "sed -i 's/a/b/' app.py",
        "sed -i '' -e 's/a/b/' app.py",
        "cd app && sed -i.bak 's/a/b/' app.py",
        "perl -pi -e 's/a/b/' app.py",
        "cat > app.py <<'EOF'\nx = 1\nEOF",
        "tee app.py <<EOF\nx = 1\nEOF\n",
        'echo "x = 1" >> app.py',
        "git apply fix.patch",
        "mv a.py b.py",
        "python - <<'EOF'\nfrom pathlib import Path\nPath('a.py').write_text('x')\nEOF",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF",
    ],
)
def test_a_command_that_writes_files_edits_them(command: str) -> None:
    assert edits_files(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "sed -n 1,5p app.py",
        "cat app.py",
        "grep x app.py",
        "pytest -q > log.txt",
        "npm test | tee log.txt",
        "git status",
    ],
)
def test_other_commands_edit_nothing(command: str) -> None:
    assert not edits_files(command)


def test_the_substitutions_of_sed_are_changes() -> None:
    (hunk,) = find_shell_hunks(r"sed -i 's/items\[0\]/items.get(0)/' src/app.py && make")
    assert (hunk.file, hunk.lines) == ("src/app.py", ("-items[0]", "+items.get(0)"))
    assert len(find_shell_hunks("sed -i -e 's|a|b|' -e 's|c|d|g' app.py")) == 2


def test_a_here_document_is_the_new_content() -> None:
    (hunk,) = find_shell_hunks("cat > app.sh <<'EOF'\nset -u\necho hi\nEOF\nchmod +x app.sh")
    assert (hunk.file, hunk.lines) == ("app.sh", ("+set -u", "+echo hi"))
