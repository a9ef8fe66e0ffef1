from __future__ import annotations

from pathlib import Path

import pytest

from core.sources.adapters.agent_files import AgentFile, project_slug, read_agent_files
from core.sources.adapters.contract import Folders
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


def test_nothing_below_the_home_folder_is_read_if_the_setting_is_off(project: Path) -> None:
    write(project.parent / "home/.codex/AGENTS.md", "Be kind.\n")
    assert read(project, home=False) == {}


def test_a_private_folder_may_be_named_by_a_variable(project: Path) -> None:
    write(project.parent / "elsewhere/AGENTS.md", "Be kind.\n")
    found = read(project, CODEX_HOME=str(project.parent / "elsewhere"))
    assert [one.lines for one in found.values()] == [("Be kind.",)]


def test_only_the_first_200_lines_of_the_memory_index_are_loaded(project: Path) -> None:
    memory = project.parent / "home/.claude/projects" / project_slug(project) / "memory/MEMORY.md"
    write(memory, "".join(f"- lesson {number}\n" for number in range(300)))
    (found,) = read(project).values()
    assert found.loaded == 200
    assert found.text.endswith("- lesson 199")


def test_long_lines_end_what_is_loaded_of_the_memory_index(project: Path) -> None:
    memory = project.parent / "home/.claude/projects" / project_slug(project) / "memory/MEMORY.md"
    write(memory, f"{'x' * 20_000}\n{'y' * 20_000}\n")
    (found,) = read(project).values()
    assert found.loaded == 1


def test_secrets_are_masked(project: Path) -> None:
    write(project / "CLAUDE.md", "password = hunter2-and-more-9\n")
    assert "hunter2" not in read(project)["CLAUDE.md"].text


def test_a_link_that_leads_out_of_the_project_is_not_read(project: Path) -> None:
    write(project.parent / "secret.md", "do not show\n")
    (project / "CLAUDE.md").symlink_to(project.parent / "secret.md")
    assert read(project) == {}


def test_of_a_large_file_the_first_lines_are_read_and_a_finding_names_the_place(project: Path) -> None:
    write(project / "CLAUDE.md", "- Run the tests.\n" * 20_000)
    files = RunnerFiles(Folders(project=project), "agents")
    (file,) = read_agent_files(files)
    (finding,) = set(files.findings)
    assert 10_000 < len(file.lines) < 20_000
    assert (finding.file, finding.pointer) == ("CLAUDE.md", f"line {len(file.lines) + 1}")


def test_a_folder_in_place_of_a_file_is_ignored(project: Path) -> None:
    (project / "AGENTS.md").mkdir()
    assert read(project) == {}
