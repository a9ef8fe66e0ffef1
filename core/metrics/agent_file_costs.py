"""What the files cost that agents load by themselves, in tokens per session (docs/instructions.md#cost)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from core.extraction.instruction_pairs import choose_kept
from core.records.instructions import Loading, Relation
from core.retrieval.rendering import count_tokens

if TYPE_CHECKING:
    from core.adapters.agent_files import AgentFile
    from core.records.instructions import InstructionPair


class AgentFileCost(Struct, frozen=True, kw_only=True):
    """The estimated tokens of one file, and what of it an agent gets twice.

    `tokens` are in each session of its `agents` from the start, `on_demand` only in those that need the file.
    `repeated` are its lines that repeat another file of the same agent or a pattern, and `repeated_tokens` their size.
    """

    file: str
    agents: tuple[str, ...]
    loading: Loading
    tokens: int
    on_demand: int
    repeated: tuple[int, ...] = ()
    repeated_tokens: int = 0


def measure_agent_files(files: Iterable[AgentFile], pairs: Sequence[InstructionPair] = ()) -> tuple[AgentFileCost, ...]:
    """Return the cost of each file (`AdapterFiles.all_agent_files`), the most expensive first.

    `pairs` are those of `ProjectReader.instruction_pairs`.
    """
    removed = {choose_kept(one)[1] for one in pairs if one.relation is Relation.REPEATS and one.shares_agent}
    found = []
    for file in files:
        own = sorted(
            (one for one in removed if one.file == file.file and not one.pattern_id), key=lambda one: one.lines
        )
        tokens = count_tokens(file.resident)
        found.append(
            AgentFileCost(
                file=file.file,
                agents=file.agents,
                loading=file.loading,
                tokens=tokens,
                on_demand=count_tokens(file.text) - tokens,
                repeated=tuple(dict.fromkeys(one.lines[0] for one in own)),
                repeated_tokens=sum(count_tokens(one.text) for one in own),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.tokens, -one.on_demand, one.file)))
