"""The pages of the documentation are true: examples run, commands and options exist, links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from core.cli.command_table import GroupPlace, translate_alias
from tui.cli import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(ROOT.glob("docs/**/*.md"))]
EXAMPLES = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    )
]
MAX_README_WORDS = 1200


@pytest.mark.parametrize("block", EXAMPLES)
def test_python_examples_print_what_their_comments_show(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "example", "exec"), {})  # noqa: S102 (our own text)
    assert printed.getvalue().splitlines() == re.findall(r"^# (.*)$", block, re.MULTILINE)


def _commands() -> Iterator[tuple[str, list[str]]]:
    """Every `ralphdeck ...` command line in a code block or in backticks, with the page that shows it."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if "reference" in page.parts:
            continue
        fenced = re.findall(r"```(?:sh|json|text)?\n(.*?)```", text, re.DOTALL)
        inline = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
        for source in (*(re.sub(r"(?m)(^|\s)#.*$", "", block) for block in fenced), *inline):
            for found in re.finditer(r"(?:^|[|(/\s\"])ralphdeck ([a-z][^\n|&>#)\"]*)", source, re.MULTILINE):
                line = found.group(1).replace("...", "").replace("\u2026", "")
                with contextlib.suppress(ValueError):  # a quotation that goes on in the next line
                    yield page.relative_to(ROOT).as_posix(), shlex.split(line)


def test_commands_and_options_that_pages_show_exist() -> None:
    assert [f"{page}: ralphdeck {shlex.join(words)}" for page, words in _commands() if not _exists(words)] == []


def test_former_commands_have_successors_that_exist() -> None:
    """The table of former commands names other words than those of today."""
    table = (ROOT / "CHANGELOG.md").read_text("utf-8").partition("| former | now |")[2].partition("\n\n")[0]
    rows = [[re.findall("`([^`]+)`", cell) for cell in row.split("|")[1:3]] for row in table.splitlines()[2:]]
    assert rows
    for former, present in rows:
        assert not {*former} & {*present}, f"{former} is not a former spelling"
        commands = [text.split() for text in present if text != "ralphdeck --completion SHELL"]
        assert [words for words in commands if not _exists(words)] == []


def _exists(words: list[str]) -> bool:
    """Whether a command line names a command with options that it has."""
    command: click.Command = cli
    context = click.Context(cli, info_name="ralphdeck", **cli.context_settings)
    rest = translate_alias(words)
    while rest and isinstance(command, click.Group):
        subcommand = command.get_command(context, rest[0])
        if subcommand is None:
            break
        command, context = subcommand, click.Context(subcommand, parent=context)
        rest.pop(0)
    options = {
        name for parameter in command.get_params(context) for name in (*parameter.opts, *parameter.secondary_opts)
    }
    used = {word.partition("=")[0] for word in rest if word.startswith("--")}
    is_complete = not isinstance(command, click.Group) or not rest or rest[0].startswith("-")
    return command is not cli and is_complete and used <= options


def test_messages_name_commands() -> None:
    """Messages, help texts and tables that name a command to run name one that exists."""
    wrong = []
    for file in (file for folder in ("core", "tui") for file in (ROOT / folder).rglob("*.*")):
        if file.suffix not in {".py", ".yaml", ".toml"}:
            continue
        for name, inner in re.findall(
            r"(?:(?:(?:see|run|with): |[^\"]`)ralphdeck |what=\"[^\"]*\", command=\")([a-z][a-z-]*)(?: ([a-z-]+))?",
            file.read_text("utf-8"),
        ):
            place = cli.places.get(name)
            if place is None or (inner and isinstance(place, GroupPlace) and inner not in place.commands):
                wrong.append(f"{file.relative_to(ROOT)}: ralphdeck {name} {inner}")
    assert wrong == []


def test_links_between_pages_lead_to_files_and_headings() -> None:
    missing = []
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or (anchor and anchor not in _anchors(file)):
                missing.append(f"{page.relative_to(ROOT)}: {target}")
    assert missing == []


def test_sections_of_the_docs_that_the_code_cites_exist() -> None:
    cited = {
        (file.relative_to(ROOT).as_posix(), *found)
        for folder in ("core", "tui", "tests")
        for file in (ROOT / folder).rglob("*.py")
        if file.name != "test_language.py"  # cites a page that does not exist, as an example
        for found in re.findall(r"\b(docs/[\w/-]+\.md)(?:#([\w-]+))?", file.read_text(encoding="utf-8"))
    }
    missing = [
        f"{file}: {page}#{anchor}"
        for file, page, anchor in sorted(cited)
        if not (ROOT / page).exists() or (anchor and anchor not in _anchors(ROOT / page))
    ]
    assert missing == []


def test_modules_that_the_docs_name_exist() -> None:
    """A name in backticks such as `core.x.y` is a module, or an attribute of one."""
    missing = [
        f"{page.name}: {name}"
        for page in PAGES
        for name in re.findall(r"`((?:core|tui)(?:\.\w+)+)`", page.read_text(encoding="utf-8"))
        if not _can_resolve(name)
    ]
    assert missing == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= MAX_README_WORDS


def _can_resolve(dotted_name: str) -> bool:
    try:
        pkgutil.resolve_name(dotted_name)
    except (ImportError, AttributeError):
        return False
    return True


def _anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, as the site builder makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    explicit = {found for heading in headings for found in re.findall(r"\{#([\w-]+)\}", heading)}
    plain = (re.sub(r"\{#.*?\}|`|\*", "", heading).strip().lower() for heading in headings)
    return explicit | {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip()) for heading in plain}
