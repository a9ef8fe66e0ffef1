"""Files that agents load, and the statements in them: rules, skills, imports, subfolders."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.records.instructions import Instruction, Loading
from core.sources.adapters.agent_files import (
    MAX_STATEMENTS,
    AgentFile,
    project_slug,
    read_agent_files,
    read_all_agent_files,
    read_instructions,
)
from core.sources.adapters.folders import Folders
from core.sources.adapters.runner_files import RunnerFiles


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop"


def read(project: Path, *, home: bool = True, **environment: str) -> dict[str, AgentFile]:
    folders = Folders(project=project, home=project.parent / "home" if home else None, environment=environment)
    return {one.file: one for one in read_agent_files(RunnerFiles(folders, "agents"))}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_file_of_several_agents_is_listed_once(project: Path) -> None:
    write(project / "AGENTS.md", "Run the tests.\n")
    assert read(project)["AGENTS.md"].agents == ("Codex", "Cursor", "Copilot CLI", "opencode")


def test_files_below_the_home_folder_follow_those_of_the_project(project: Path) -> None:
    write(project / "CLAUDE.md", "Be brief.\n")
    write(project / ".claude/rules/tests.md", "Use pytest.\n")
    write(project.parent / "home/.claude/CLAUDE.md", "Be kind.\n")
    assert list(read(project)) == [".claude/rules/tests.md", "CLAUDE.md", "~/.claude/CLAUDE.md"]


def test_only_regular_files_of_the_project_are_read_and_secrets_masked(project: Path) -> None:
    write(project.parent / "home/.codex/AGENTS.md", "Be kind.\n")
    write(project.parent / "secret.md", "do not show\n")
    (project / "CLAUDE.md").symlink_to(project.parent / "secret.md")
    (project / "AGENTS.md").mkdir()
    assert read(project, home=False) == {}
    (project / "CLAUDE.md").unlink()
    write(project / "CLAUDE.md", "password = hunter2-and-more-9\n")
    assert "hunter2" not in read(project)["CLAUDE.md"].text


def test_a_private_folder_may_be_named_by_a_variable(project: Path) -> None:
    write(project.parent / "elsewhere/AGENTS.md", "Be kind.\n")
    found = read(project, CODEX_HOME=str(project.parent / "elsewhere"))
    assert [one.lines for one in found.values()] == [("Be kind.",)]


def test_only_the_first_200_lines_or_25_kb_of_the_memory_index_are_loaded(project: Path) -> None:
    memory = project.parent / "home/.claude/projects" / project_slug(project) / "memory/MEMORY.md"
    write(memory, "".join(f"- lesson {number}\n" for number in range(300)))
    (found,) = read(project).values()
    assert found.loaded == 200
    assert found.text.endswith("- lesson 199")
    write(memory, f"{'x' * 20_000}\n{'y' * 20_000}\n")
    (found,) = read(project).values()
    assert found.loaded == 1


def test_of_a_large_file_the_first_lines_are_read_and_a_finding_names_the_place(project: Path) -> None:
    write(project / "CLAUDE.md", "- Run the tests.\n" * 20_000)
    files = RunnerFiles(Folders(project=project), "agents")
    (file,) = read_agent_files(files)
    (finding,) = set(files.findings)
    assert 10_000 < len(file.lines) < 20_000
    assert (finding.file, finding.pointer) == ("CLAUDE.md", f"line {len(file.lines) + 1}")


def statements(*lines: str) -> list[Instruction]:
    file = AgentFile(agents=("Codex",), file="AGENTS.md", lines=lines, loaded=len(lines))
    return [one for found in read_instructions([file]) for one in found.statements]


def read_all(project: Path) -> dict[str, AgentFile]:
    return {one.file: one for one in read_all_agent_files(RunnerFiles(Folders(project=project), "agents"))}


def test_items_and_sentences_are_statements_with_lines_and_section() -> None:
    found = statements("# Shop", "## Style", "- **Use** tabs", "  for indentation.", "", "Be brief. Run `npm test`.")
    assert [(one.text, one.lines, one.section, one.is_whole) for one in found] == [
        ("Use tabs for indentation.", (3, 4), "Shop > Style", True),
        ("Be brief.", (6, 6), "Shop > Style", False),
        ("Run `npm test`.", (6, 6), "Shop > Style", False),
    ]


def test_an_item_has_the_item_above_it() -> None:
    (found,) = statements("- Before committing, run:", "  - `npm run lint`")
    assert found.text == "Before committing, run: `npm run lint`"


def test_code_tables_comments_and_own_text_are_not_read() -> None:
    assert not statements("```", "- never mind this", "```", "| a table | of words |", "<!-- a comment", "of lines -->")
    assert not statements("<!-- BEGIN ralphdeck v1 hash:00 -->", "- Use tabs always.", "<!-- END ralphdeck -->")
    assert not statements(
        *("<!-- BEGIN lessons of ralphdeck v1 hash:00 added:1 -->", "- Use tabs always."),
        "<!-- END lessons of ralphdeck -->",
    )
    assert not statements("- Use tabs always.", "", "<!-- ralphdeck v1 hash:00 -->")


def test_the_number_of_statements_is_limited() -> None:
    files = [AgentFile(agents=("Codex",), file=f"{n}.md", lines=("- Use tabs.",) * 900, loaded=900) for n in range(9)]
    assert sum(len(one.statements) for one in read_instructions(files)) == MAX_STATEMENTS


def test_rules_skills_and_subfolders_are_loaded_on_demand(tmp_path: Path) -> None:
    write(tmp_path / ".cursor/rules/ts.mdc", "---\nglobs: **/*.ts,*.tsx\nalwaysApply: false\n---\nUse tabs.\n")
    write(tmp_path / ".cursor/rules/all.mdc", "---\nglobs: \nalwaysApply: true\n---\nUse tabs.\n")
    write(tmp_path / ".claude/rules/api/py.md", '---\npaths:\n  - "src/**/*.py"\n---\nUse tabs.\n')
    write(tmp_path / ".github/instructions/a.instructions.md", "---\napplyTo: '**'\n---\nUse tabs.\n")
    write(tmp_path / ".claude/skills/db/SKILL.md", "---\nname: db\n---\nUse tabs.\n")
    write(tmp_path / "site/AGENTS.md", "Use tabs.\n")
    write(tmp_path / "node_modules/x/AGENTS.md", "Use tabs.\n")
    found = {file: (one.loading, one.scope) for file, one in read_all(tmp_path).items()}
    assert found == {
        ".cursor/rules/ts.mdc": (Loading.PATH, ("**/*.ts", "*.tsx")),
        ".cursor/rules/all.mdc": (Loading.START, ()),
        ".claude/rules/api/py.md": (Loading.PATH, ("src/**/*.py",)),
        ".github/instructions/a.instructions.md": (Loading.START, ()),
        ".claude/skills/db/SKILL.md": (Loading.REQUEST, ()),
        "site/AGENTS.md": (Loading.PATH, ("site/**",)),
    }


def test_imports_stay_in_the_project_and_end(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    write(tmp_path / "secret.md", "do not show")
    write(project / "CLAUDE.md", "See @notes/a.md, @../secret.md and `@notes/code.md`; mail ada@notes/mail.md\n")
    write(project / "notes/a.md", "@../CLAUDE.md @b.md Use tabs.\n")
    for name in ("b", "code", "mail"):
        write(project / f"notes/{name}.md", "Be brief.\n")
    assert list(read_all(project)) == ["CLAUDE.md", "notes/a.md", "notes/b.md"]


def test_a_link_and_its_target_are_one_file(tmp_path: Path) -> None:
    write(tmp_path / "AGENTS.md", "Use tabs.\n")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    (found,) = read_all(tmp_path).values()
    assert {"Claude Code", "Codex"} <= set(found.agents)


def test_files_that_import_each_other_are_read_once(tmp_path: Path) -> None:
    names = [f"{number}.md" for number in range(30)]
    for name in ("CLAUDE.md", *names):
        write(tmp_path / name, "".join(f"@{other}\n" for other in names for _ in range(5)))
    assert read_all(tmp_path).keys() == {"CLAUDE.md", *names}  # following each path would take hours
