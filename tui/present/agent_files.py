"""Files that agents load by themselves, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from core.base.text import plural, visible_line
from core.retrieval.rendering import count_tokens
from tui.present.context import PREFIX

if TYPE_CHECKING:
    from core.adapters.agent_files import AgentFile
    from core.retrieval.similarity import Repetition


def agent_file_lines(files: Sequence[AgentFile], repeated: Mapping[str, Repetition]) -> list[Content]:
    """Show what agents load by themselves, and mark the lines that the context repeats."""
    if not files:
        return [Content.styled("No agent loads a file of this project by itself.", "$quiet")]
    keys = {(place.file, place.line): key.removeprefix(PREFIX) for key, place in repeated.items()}
    lines: list[Content] = []
    for file in files:
        unread = len(file.lines) - file.loaded
        size = f"  {', '.join(file.agents)}, about {count_tokens(file.text):,} tokens"
        lines += [Content(""), Content.assemble((visible_line(file.file, 200), "bold $accent"), (size, "$quiet"))]
        for number, text in enumerate(file.lines, start=1):
            if number == file.loaded + 1:
                lines.append(Content.styled(f"not loaded: the last {plural(unread, 'line')}", "$warning"))
            key = keys.get((file.file, number))
            mark = (f"  also injected: {visible_line(key, 80)}", "$warning") if key else ""
            style = "$quiet" if number > file.loaded else ""
            lines.append(Content.assemble((visible_line(text, 2000), style), mark))
    return lines[1:]


def agent_size_line(files: Sequence[AgentFile]) -> Content:
    """Return how much agents load by themselves."""
    tokens = sum(count_tokens(file.text) for file in files)
    return Content.assemble((f"{tokens:,}", "bold"), (f" tokens in {plural(len(files), 'file')} of agents", "$quiet"))
