"""Settings from the project's files, with their sources and findings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.paths import ProjectPaths
from core.base.settings import (
    AntiPatternSettings,
    ExtractionSettings,
    InjectionSettings,
    LearningSettings,
    MaturitySettings,
    PruningSettings,
    Settings,
    WatchSettings,
)
from core.sources.configuration import DEFAULT, MAX_BYTES, Configuration
from tests.core.sources.adapters.fixtures import ANY_JSON

SECTION: Final = "/ralph/cross_loop_learning"
DOCUMENTED: Final = """\
# In aiwg.yml or .aiwg/config.yml
ralph:
  cross_loop_learning:
    extraction:
      enabled: true
      auto_extract_on_completion: true
      min_success_rate_threshold: 0.6
      min_usage_count_for_evaluation: 3
      extract_code_templates: true
      merge_similar_patterns: true
      similarity_threshold: 0.80
    injection:
      enabled: true
      top_k_patterns: 5
      min_success_rate: 0.6
      max_patterns_injected: 10
      include_error_patterns: true
      include_success_patterns: true
      include_anti_patterns: true
      include_code_templates: true
    pruning:
      min_success_rate: 0.5
      min_usage_count: 3
      max_age_days: 90
      archive_instead_of_delete: true
      archive_path: ".aiwg/ralph/shared/archive/"
      auto_prune: true
      prune_interval_days: 7
"""
"""Every documented key with its documented value."""
OTHERS: Final = Settings(
    learning=LearningSettings(half_life_days=30.0, max_marks=7, neutral_counts_as="failure"),
    maturity=MaturitySettings(min_feedback=4.5, multiplier_deprecated=0.1),
    anti_pattern=AntiPatternSettings(min_observations=5, anti_pattern_prefix="NEVER: "),
    extraction=ExtractionSettings(enabled=False, similarity_threshold=0.9, max_match_share=0.1),
    injection=InjectionSettings(top_k_patterns=2, include_anti_patterns=False, order="lower-bound"),
    pruning=PruningSettings(max_age_days=30, auto_prune=False),
    watch=WatchSettings(sweep_seconds=5.0, retry_seconds=(0.01, 0.5)),
    interval_level=0.95,
)


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    """A project without settings."""
    (tmp_path / ".aiwg").mkdir()
    return ProjectPaths(tmp_path)


def read_written(paths: ProjectPaths, text: str | bytes, file: str = "aiwg.yml") -> Configuration:
    """Read the configuration of a project with this file."""
    (paths.project / file).write_bytes(text.encode() if isinstance(text, str) else text)
    return Configuration.read(paths)


def read_section(paths: ProjectPaths, content: Any) -> Configuration:
    """Read the configuration of a project with this content in the settings section."""
    return read_written(paths, yaml.safe_dump({"ralph": {"cross_loop_learning": content}}))


def list_findings(configuration: Configuration) -> list[tuple[str, str, str]]:
    """Place (below the settings section), code and message of each finding."""
    return [(f.pointer.removeprefix(SECTION), f.code, f.message) for f in configuration.findings]


def test_without_a_file_everything_is_a_default(paths: ProjectPaths) -> None:
    configuration = Configuration.read(paths)
    assert configuration == Configuration()
    assert configuration.settings == Settings()
    names = [setting.name for setting in configuration.listed()]
    assert {setting.source for setting in configuration.listed()} == {DEFAULT}
    assert len(names) == len(set(names)) > 60
    assert {"extraction.max_match_share", "pruning.max_age_days", "interval_level"} <= set(names)


@pytest.mark.parametrize("file", ["aiwg.yml", ".aiwg/config.yml"])
def test_every_documented_key_is_known(paths: ProjectPaths, file: str) -> None:
    configuration = read_written(paths, DOCUMENTED, file)
    assert configuration.findings == ()
    assert configuration.settings == Settings()
    source = configuration.sources["injection.top_k_patterns"]
    assert source == f"{file}:{SECTION}/injection/top_k_patterns"
    assert sum(source != DEFAULT for source in configuration.sources.values()) == 20


def test_every_setting_can_be_set(paths: ProjectPaths) -> None:
    content: dict[str, Any] = {}
    for setting in Configuration(settings=OTHERS).listed():
        group, _, field = setting.name.rpartition(".")
        value = list(setting.value) if isinstance(setting.value, tuple) else setting.value
        (content.setdefault(group, {}) if group else content)[field] = value
    configuration = read_section(paths, content)
    assert configuration.findings == ()
    assert configuration.settings == OTHERS
    assert DEFAULT not in configuration.sources.values()


def test_the_first_file_with_settings_counts(paths: ProjectPaths) -> None:
    mine = "ralph: {cross_loop_learning: {injection: {top_k_patterns: 1}}}"
    read_written(paths, "ralph: {max_loops: 4}\nother: [1]\n")
    assert read_written(paths, mine, ".aiwg/config.yml").file == ".aiwg/config.yml"
    configuration = read_written(paths, mine.replace("1", "2"))
    assert (configuration.file, configuration.settings.injection.top_k_patterns) == ("aiwg.yml", 2)
    (finding,) = configuration.findings
    assert (finding.file, finding.code) == (".aiwg/config.yml", "unused-settings")


@pytest.mark.parametrize(
    ("content", "place", "hint"),
    [
        ({"injection": {"topKPatterns": 3}}, "/injection/topKPatterns", "did you mean top_k_patterns?"),
        ({"injection": {"min_sucess_rate": 3}}, "/injection/min_sucess_rate", "did you mean min_success_rate?"),
        (
            {"injection": {"similarity_threshold": 0.9}},
            "/injection/similarity_threshold",
            "did you mean extraction.similarity_threshold?",
        ),
        ({"extractoin": {}}, "/extractoin", "did you mean extraction?"),
        ({"top_k_patterns": 3}, "/top_k_patterns", "did you mean injection.top_k_patterns?"),
        ({"pruning": {"zzz": 1}}, "/pruning/zzz", "valid settings: min_success_rate, min_usage_count, max_age_days,"),
    ],
)
def test_an_unknown_key_gets_a_suggestion(paths: ProjectPaths, content: Any, place: str, hint: str) -> None:
    configuration = read_section(paths, content)
    ((pointer, code, message),) = list_findings(configuration)
    assert (pointer, code) == (place, "unknown-key")
    assert message.startswith(f"unknown setting {place.rpartition('/')[2]!r}; {hint}")
    assert configuration.settings == Settings()


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"scan": {"judge": ["sh", "-c", "id"]}}, "/scan/judge"),
        ({"trust": {"claims": "count"}}, "/trust"),
        ({"decisions": {"scripts": "all"}}, "/decisions"),
        ({"notify": {"command": ["sh", "-c", "id"]}}, "/notify"),
    ],
)
def test_a_setting_of_the_user_is_ignored_in_a_file_of_the_project(
    paths: ProjectPaths, content: Any, place: str
) -> None:
    configuration = read_section(paths, content)
    assert [(pointer, code) for pointer, code, _ in list_findings(configuration)] == [(place, "own-setting")]
    assert configuration.settings == Settings()


@pytest.mark.parametrize("text", ["ralph: {cross-loop-learning: {}}", "cross_loop_learning: {}", "ralph: {x: 1}"])
def test_only_a_misspelled_section_is_reported(paths: ProjectPaths, text: str) -> None:
    wrong = [f"'{key}'" for key in ("cross-loop-learning", "cross_loop_learning") if key in text]
    findings = read_written(paths, text).findings
    assert [f.message for f in findings] == [
        f"{key} is not a section of settings; did you mean ralph.cross_loop_learning?" for key in wrong
    ]


@pytest.mark.parametrize(
    ("group", "field", "value", "message"),
    [
        ("injection", "top_k_patterns", "many", "must be a whole number of at least 0, not 'many'"),
        ("injection", "top_k_patterns", 2.5, "must be a whole number of at least 0, not '2.5'"),
        ("injection", "top_k_patterns", -1, "must be a whole number of at least 0, not '-1'"),
        ("injection", "top_k_patterns", "9" * 5000, "must be a whole number of at least 0, not '999"),
        ("injection", "min_success_rate", "60%", "must be a number from 0 to 1, not '60%'"),
        ("injection", "min_success_rate", float("nan"), "must be a number from 0 to 1, not '.nan'"),
        ("injection", "min_success_rate", [0.5], "must be a number from 0 to 1, not ['0.5']"),
        ("injection", "enabled", "maybe", "must be true or false, not 'maybe'"),
        ("injection", "order", {"by": "score"}, "must be score or lower-bound, not {'by': 'score'}"),
        ("maturity", "half_life_days", 0, "must be a number of days above 0, not 0.0"),
        ("learning", "burst_minutes", 1e12, "must be a number from 0 to 1,000,000,000, not 1"),
        ("pruning", "max_age_days", 10**9, "must be a whole number from 0 to 36,500, not 1000000000"),
        ("pruning", "archive_instead_of_delete", False, "must be true: pruned patterns are always archived"),
        ("pruning", "archive_path", "/tmp", "must be .aiwg/ralph/shared/archive/, not '/tmp'"),
        ("watch", "sweep_seconds", 0, "must be a number from 0.05 to 86,400, not 0.0"),
        ("watch", "retry_seconds", 3, "must be at most 10 numbers, not '3'"),
        ("watch", "retry_seconds", [0.1] * 11, "must be at most 10 numbers, not (0.1, "),
        ("watch", "retry_seconds", [0.1, "soon"], "must be a number from 0 to 10, not 'soon'"),
        ("anti_pattern", "anti_pattern_prefix", "a\x1b[2J\n## b", "must be a text of 1 to 40 visible characters"),
    ],
)
def test_an_invalid_value_is_reported_and_the_default_used(
    paths: ProjectPaths, group: str, field: str, value: Any, message: str
) -> None:
    configuration = read_section(paths, {group: {field: value}, "interval_level": 0.5})
    ((pointer, code, text),) = list_findings(configuration)
    assert (pointer, code) == (f"/{group}/{field}", "bad-value")
    assert text.startswith(f"{field} {message}")
    assert configuration.settings == Settings(interval_level=0.5)
    assert configuration.sources.get(f"{group}.{field}", DEFAULT) == DEFAULT


def test_an_empty_file_gives_defaults(paths: ProjectPaths) -> None:
    for text in (
        "",
        "# nothing\n",
        "ralph:\n",
        "ralph: {cross_loop_learning: {injection: , extraction: {enabled: ~}}}",
    ):
        assert read_written(paths, text).settings == Settings()
        assert Configuration.read(paths).findings == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: &a [x, x]\nb: &b [*a, *a]\nralph: [*b, *b]\n", "yaml-alias"),
        ("[" * 3000, "too-deep"),
        ("ralph: {" * 100, "too-deep"),
        ("ralph: [", "bad-yaml"),
        ("- 1\n", "wrong-type"),
        ("ralph: 3\n", "wrong-type"),
        ("ralph: {cross_loop_learning: [1]}\n", "wrong-type"),
        ("ralph: {cross_loop_learning: {injection: 1}}\n", "wrong-type"),
        ("ralph: {}\nralph: {}\n", "duplicate-key"),
        ("#" * (MAX_BYTES + 1), "too-large"),
        ("x: !!python/object/apply:os.system [false]\n# \xff\n".encode("latin-1"), "bad-encoding"),
    ],
)
def test_a_hostile_file_is_a_finding(paths: ProjectPaths, text: str | bytes, code: str) -> None:
    configuration = read_written(paths, text)
    assert code in [finding.code for finding in configuration.findings]
    assert configuration.settings == Settings()


def test_links_out_of_the_project_and_pipes_are_not_read(paths: ProjectPaths, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside") / "aiwg.yml"
    outside.write_text("ralph: {cross_loop_learning: {injection: {top_k_patterns: 1}}}")
    (paths.project / "aiwg.yml").symlink_to(outside)
    os.mkfifo(paths.aiwg / "config.yml")
    configuration = Configuration.read(paths)
    assert [finding.code for finding in configuration.findings] == ["link-outside", "not-a-file"]
    assert configuration.settings == Settings()


def test_findings_of_a_bad_file_are_few_and_short(paths: ProjectPaths) -> None:
    many = {f"\x1b[31m[/b]{number}" + "x" * 500: "y" * 500 for number in range(300)}
    configuration = read_section(paths, {**many, "injection": many})
    assert 0 < len(configuration.findings) <= 40
    assert all(len(f.pointer) < 200 and len(f.message) < 400 for f in configuration.findings)
    assert not any("\x1b" in f.pointer + f.message for f in configuration.findings)


FIELDS: Final = sorted({name.rpartition(".")[2] for name in Configuration().sources})
GROUPS: Final = sorted({name.rpartition(".")[0] for name in Configuration().sources} - {""})


@settings(max_examples=25)
@given(
    st.dictionaries(st.sampled_from(GROUPS), st.dictionaries(st.sampled_from(FIELDS), ANY_JSON, max_size=4) | ANY_JSON)
)
def test_any_value_gives_valid_settings(tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]) -> None:
    configuration = read_section(ProjectPaths(tmp_path_factory.mktemp("any")), content)
    changed = [s for s in configuration.listed() if s.source != DEFAULT]
    assert all(setting.value is not None for setting in changed)
    assert len(configuration.findings) <= 20


def registry(paths: ProjectPaths, name: str = "registry.json", **policy: Any) -> Path:
    """Write a registry file with a pruning policy."""
    paths.patterns.mkdir(parents=True, exist_ok=True)
    file = paths.patterns / name
    file.write_text(json.dumps({"pattern_registry": {}, "pruning_policy": policy}))
    return file


def test_the_registry_policy_fills_missing_settings(paths: ProjectPaths) -> None:
    file = registry(paths, min_success_rate=0.7, max_age_days=30)
    found = read_section(paths, {"pruning": {"max_age_days": 60}}).with_registry(paths)
    assert (found.settings.pruning.min_success_rate, found.settings.pruning.max_age_days) == (0.7, 60)
    assert found.sources["pruning.min_success_rate"] == f"{paths.relative(file)}:/pruning_policy/min_success_rate"
    assert found.sources["pruning.max_age_days"].startswith("aiwg.yml:")
    assert found.sources["pruning.auto_prune"] == DEFAULT
    assert found.findings == ()


def test_an_invalid_registry_policy_is_a_finding(paths: ProjectPaths) -> None:
    registry(paths, "a.json", min_success_rate=7, archive_instead_of_delete=False, max_days=3)
    registry(paths, "b.json", min_success_rate=0.7)
    found = Configuration.read(paths).with_registry(paths)
    assert found.settings == Settings()
    assert [(one.code, one.file.rpartition("/")[2]) for one in found.findings] == [
        ("unused-settings", "b.json"),
        ("bad-value", "a.json"),
        ("bad-value", "a.json"),
        ("unknown-key", "a.json"),
    ]


def test_a_registry_without_a_policy_changes_nothing(paths: ProjectPaths) -> None:
    registry(paths).write_text('{"error_patterns": [{"note": "pruning_policy"}]}')
    before = Configuration.read(paths)
    assert before.with_registry(paths) == before


def test_the_minimum_uses_for_evaluation_apply_to_pruning(paths: ProjectPaths) -> None:
    found = read_section(paths, {"extraction": {"min_usage_count_for_evaluation": 5}})
    assert found.settings.pruning.min_usage_count == 5
    assert found.sources["pruning.min_usage_count"].endswith("/extraction/min_usage_count_for_evaluation")
    registry(paths, min_usage_count=7)
    assert found.with_registry(paths).settings.pruning.min_usage_count == 7
    own = read_section(paths, {"extraction": {"min_usage_count_for_evaluation": 5}, "pruning": {"min_usage_count": 2}})
    assert own.with_registry(paths).settings.pruning.min_usage_count == 2
