"""Removal of contexts and of texts by which runners control loops (docs/extraction.md#material)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.base.context_blocks import remove_contexts
from core.base.regexes import lazy_regex

if TYPE_CHECKING:
    from core.records.extractions import Material
    from core.records.loops import Iteration

_CONTROL: Final = re.compile(
    r"---\s?RALPH_STATUS\s?---(?s:.){0,4000}?---\s?END_RALPH_STATUS\s?---"
    r"|<(?P<tag>promise|ralph|command-name|command-message)\b[^<>]{0,80}>[^<]{0,500}(?:</(?P=tag)\s{0,9}>|\Z)"
    r"|</?(?:promise|ralph|command-(?:name|message|args))\b[^<>]{0,80}>"
    r"|\b(?:LOOP|TASKS?|ALL_TASKS|PROJECT|PLAN|STORY)_(?:COMPLETED?|DONE)\b"
    r"|\bEXIT_SIGNAL\s?[:=]\s?\w+"
    r"|(?:^|\n)[ \t]{0,9}/(?:[a-z][\w-]{0,60}:[a-z][\w:-]{0,60}|(?:cancel-)?ralph[\w-]{0,60}|goal|loop)(?=\s|\Z)"
    r"|(?:^|\n)[ \t]{0,9}/[a-z][\w-]{0,60}[ \t]{0,9}(?=\n|\Z)"
    r"|(?:^|\n)[ \t*_`#>-]{0,9}(?:COMPLETED?|ALL DONE|GUTTER|[Cc]ompletion promise detected)[ \t*_`.!]{0,9}(?=\n|\Z)"
)
"""Promises, reports and markers of the end, and slash commands."""
_SPACES: Final = lazy_regex(r"\s+")
_CODE: Final = frozenset(
    {
        "template_code",
        "code_template",
        "error_pattern",
        "error_message",
        "error_places",
        "task_description_pattern",
        "diff_pattern",
        "source_loops",
    }
)
_MIN_START: Final = 20  # characters from which the start of a prompt is recognised
_PROMISE_RUNNERS: Final = frozenset({"ralph-loop"})  # whose condition is the phrase that ends the loop


def remove_controls(text: str, own: Iterable[str] = ()) -> str:
    """Return a text without contexts and texts that control a loop, such as `<promise>DONE</promise>`.

    A text without them is not changed.
    `own` are the prompt and the phrases of the loop: a text or line that says only this is left out.
    """
    if not text:
        return text
    is_long = "\n" in text
    rest = _CONTROL.sub("\n" if is_long else " ", remove_contexts(text))
    found = text if rest == text else rest.strip() if is_long else _SPACES.sub(" ", rest).strip()
    phrases = [words for one in own if (words := _normalize(one))]
    if not phrases:
        return found
    if _is_own(found, phrases):
        return ""
    lines = found.split("\n")
    kept = [line for line in lines if not _is_own(line, phrases)]
    return found if len(kept) == len(lines) else "\n".join(kept).strip()


def _normalize(text: str) -> str:
    return _SPACES.sub(" ", text).strip(" .!*_`\"'#>").casefold()


def _is_own(text: str, phrases: list[str]) -> bool:
    words = _normalize(text).removesuffix("\u2026")
    return any(words == one or (len(words) >= _MIN_START and one.startswith(words)) for one in phrases)


def clean_material(material: Material) -> Material:
    """Return the material of a runner's loop without its prompt and the other texts that control it."""
    loop = material.loop
    if loop is None or not loop.runner:
        return material
    task = remove_controls(loop.task)
    own = (loop.task, task, *task.splitlines(), *loop.criteria)
    criteria = () if loop.runner in _PROMISE_RUNNERS else tuple(filter(None, map(remove_controls, loop.criteria)))
    return replace(
        material,
        loop=replace(loop, task=task, criteria=criteria),
        iterations=tuple(_clean_iteration(one, own) for one in material.iterations),
    )


def _clean_iteration(one: Iteration, own: tuple[str, ...]) -> Iteration:
    fix = one.fix
    return replace(
        one,
        action="" if one.is_prompt else remove_controls(one.action, own),
        result=remove_controls(one.result, own),
        learnings=tuple(filter(None, (remove_controls(text, own) for text in one.learnings))),
        fix=None if fix is None else replace(fix, description=remove_controls(fix.description, own)),
    )


def clean_record(value: Any) -> Any:
    """Return a part of a record without texts that control a loop; code stays as it is."""
    if isinstance(value, str):
        return remove_controls(value)
    if isinstance(value, Mapping):
        return {key: one if key in _CODE else clean_record(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned for one in value if (cleaned := clean_record(one)) or not isinstance(one, str)]
    return value
