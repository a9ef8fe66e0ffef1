"""The reason for a fix in the agent's own words (docs/extraction.md#words)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from core.base.masking import mask_secrets
from core.base.regexes import lazy_regex
from core.base.text import MAX_LINE, one_line, visible_line

if TYPE_CHECKING:
    from core.tasks.changes import Hunk

_MAX_TEXT: Final = 4_000
_MAX_SENTENCES: Final = 2
_MIN_WORDS: Final = 4  # words of a reason below which a further sentence is added
_SENTENCE: Final = lazy_regex(
    r"(?<=[.!?])[\"')\]]*\s+(?=[\"'`(\[]*[A-Z0-9`\u00c0-\u024f])|\n{2,}|\n(?=\s*(?:[-*\u2022]|\d+[.)])\s)"
)
_FENCE: Final = lazy_regex(r"```.*?(?:```|\Z)", re.DOTALL)
_MARKUP: Final = lazy_regex(r"^\s{0,8}(?:#{1,6}\s+|[-*\u2022]\s+|\d{1,2}[.)]\s+|>\s+)|\*\*|__", re.MULTILINE)
_LEAD: Final = lazy_regex(
    r"(?:(?:ok(?:ay)?|right|great|good|perfect|sure|yes|no|done|fixed|found (?:it|the (?:bug|issue|problem"
    r"|cause))|got it|all set|aha|hm+|ah|well|so|now|and|alright"
    r"|i (?:see|found it|understand)(?: (?:the|it|now)(?: (?:issue|problem|bug|cause))?)?"
    r"|(?:that|this) was (?:not )?it|classic|simple fix|easy fix|interesting|(?:the )?fix(?: is)?|reason"
    r"|explanation|solution|why|root cause|summary"
    r"|cause|problem|issue|bug"
    r"|here(?:'s| is) (?:the (?:fix|problem|issue|cause)|what (?:happened|changed|I did"
    r"|was wrong)))\s*[!.:,\u2014\u2013-]+\s*)+",
    re.IGNORECASE,
)
_AGENT: Final = (
    r"(?:i'?ll|i will|i am going to|i'm going to|let me|let's|let us|now i(?:'ll| will)?|i|we|going to"
    r"|(?:next|first),? (?:i'll|i will|let me))"
)
_LOOK: Final = (
    r"(?:(?:now|first|quickly|just|also|then|again|once more|simply|go ahead and) )*"
    r"(?:start(?:ing)?(?: (?:with|by))?|run(?:ning)?|re-?run(?:ning)?|look(?:ing)?|check(?:ing)?|see(?:ing)?"
    r"|read(?:ing)?|open(?:ing)?|inspect(?:ing)?|examin(?:e|ing)|verif(?:y|ying)|confirm(?:ing)?"
    r"|find(?:ing)?|search(?:ing)?|try(?:ing)? again|take|test(?:ing)?|investigat(?:e|ing)|explor(?:e|ing)"
    r"|review(?:ing)?|execut(?:e|ing)|list(?:ing)?|view(?:ing)?)"
)
_FILLER: Final = lazy_regex(
    rf"(?:(?:{_AGENT} )?{_LOOK}\b(?!.{{0,200}}\b(?:because|since|so that|instead|only|unless|must|has to|needs? to"
    rf"|never|always)\b).*"
    r"|(?:all|both|the|every|each|\d+|[a-z]+)? ?(?:of the )?(?:\d+ |two |three |four |five "
    r"|six )?(?:unit )?(?:tests?|checks?|suite|build|types?|linter|ruff|mypy|eslint|tsc|pytest|it|everything"
    r"|they|ci|the suite)"
    r"(?: suite| run| file)?s?(?: \S+)? ?(?:now )?(?:all )?(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|(?:is"
    r"|are) (?:now )?(?:all )?(?:green|clean|passing|happy|fixed|done|ok|successful)|reports? no (?:issues?"
    r"|errors?)|works?|compiles?|builds?)\b"
    r"(?: (?:now|again|too|cleanly|successfully|as expected|with no (?:errors|issues)|without (?:errors"
    r"|issues)))*(?:,? and .{0,60})?"
    r"|(?:the )?(?:test|tests|suite|build|check|linter|command)s? (?:fail(?:s|ed)?|(?:is|are) (?:red|failing"
    r"|broken))(?: (?:now|again|too|as expected))*"
    r"|\d+ (?:tests? )?(?:passed|passing|pass)\b.*"
    r"|(?:done|fixed|ok|okay|great|perfect|thanks?|hello|hi|sure|certainly|of course|absolutely|you're right"
    r"|got it|finished|completed?|ready|nice|success)\b[^a-z]*"
    r"|(?:that|this|it|which) (?:should|will|did|does|fixed|fixes|solves?|resolves?) (?:fix|solve|resolve|do"
    r"|work|it|help|the).{0,60}"
    r"|(?:that|this) (?:was|is) (?:not )?(?:it|the (?:problem|issue|bug|cause))"
    rf"|(?:now |next,? |so )?(?:{_AGENT} )?(?:now )?(?:fix|apply|make|do|implement|update|edit|change|correct"
    rf"|adjust|modify|repair"
    rf"|patch)(?:ing|ed)? "
    r"(?:it|this|that|the (?:fix|bug|issue|problem|change|edit|error|code|file|function|test|failure)"
    r"|[\w./-]+\.\w{1,5})(?: (?:now|first|in|for|of|to)(?: \S+){0,4})?"
    r"|let me know .*|would you like .*|is there anything .*|feel free .*|if you .*|do you want .*|i hope .*"
    r"|(?:i )?changed nothing.*|no (?:other|further) changes.*"
    r"|here(?:'s| is| are) .{0,60}|summary|changes(?: made)?|what (?:i )?changed|verification|result"
    r"|files? changed)[\s.!:\u2014-]*",
    re.IGNORECASE,
)
_TAIL: Final = lazy_regex(
    r"[,;]? (?:and |so )?(?:now )?(?:(?:the|all|both|every|\d+) )?(?:\d+ )?(?:tests?|test suite|suite|build|it"
    r"|everything|check) (?:now )?(?:all )?"
    r"(?:pass(?:es)?|(?:is|are) (?:now )?(?:green|passing)|work(?:s)?|succeeds?)(?: now| again)?(?=[.!]?$)",
    re.IGNORECASE,
)
_WORD: Final = lazy_regex(r"[A-Za-z\u00c0-\u024f]{2,}")
_PATHS: Final = lazy_regex(r"/(?:home|Users|tmp|root|var|private)/\S+/")


def find_reason(texts: Iterable[str]) -> str:
    """Return one or two sentences of the reason from the best of the texts; or "".

    The texts are ordered, the best first. A text with only a few words gets a sentence of the next one.
    """
    found: list[str] = []
    for text in texts:
        for sentence in split_reason(text):
            if sentence.casefold() not in (one.casefold() for one in found):
                found.append(sentence)
            if len(found) == _MAX_SENTENCES:
                break
        if sum(len(_WORD.findall(one)) for one in found) >= _MIN_WORDS:
            break
    return join_sentences(found[:_MAX_SENTENCES])


def split_reason(text: str) -> list[str]:
    """Return a message's sentences except greetings, announcements and successes."""
    plain = _MARKUP.sub("", _FENCE.sub("\n\n", mask_secrets(text[:_MAX_TEXT])))
    found = []
    for part in _SENTENCE.split(plain):
        sentence = visible_line(" ".join(part.split()))
        lead = _LEAD.match(sentence)
        sentence = sentence[lead.end() :] if lead else sentence
        if not sentence or _FILLER.fullmatch(sentence):
            continue
        shorter = _TAIL.sub("", sentence)
        sentence = _PATHS.sub("", shorter if len(_WORD.findall(shorter)) >= 2 else sentence)
        sentence = sentence.strip(" \t:-\u2014") if not sentence.endswith(".") else sentence.strip()
        if len(_WORD.findall(sentence)) >= 2:
            # Without its lead, a sentence begins in lower case; other words may be names in the code.
            is_word = lead is not None and lead.end() > 0 and sentence.split()[0].isalpha()
            found.append(sentence[:1].upper() + sentence[1:] if is_word else sentence)
    return found


def describe_hunks(hunks: Sequence[Hunk]) -> str:
    """Describe a change by its code, for a fix without words: In a.py: `old` → `new`."""
    for hunk in hunks:
        old = [line[1:].strip() for line in hunk.lines if line[:1] == "-" and line[1:].strip()]
        new = [line[1:].strip() for line in hunk.lines if line[:1] == "+" and line[1:].strip()]
        if not old and not new:
            continue
        text = f"add `{new[0]}`" if new else f"remove `{old[0]}`"
        if old and new:
            before, after = _differing(old[0], new[0])
            text = f"`{before}` \u2192 `{after}`"
        return one_line(mask_secrets(f"In {hunk.file}: {text}"))
    return ""


def _differing(old: str, new: str) -> tuple[str, str]:
    """Return two lines without long equal ends, cut between words."""
    if len(old) + len(new) < 160:
        return old, new
    start = 0
    for one, two in zip(_tokens(old), _tokens(new), strict=False):
        if one != two:
            break
        start += len(one)
    end = 0
    for one, two in zip(reversed([*_tokens(old[start:])]), reversed([*_tokens(new[start:])]), strict=False):
        if one != two:
            break
        end += len(one)
    return _middle(old, start, end), _middle(new, start, end)


def _middle(text: str, start: int, end: int) -> str:
    """Return a text without its first and last characters, unless nothing is left."""
    return one_line(text[start : len(text) - end].strip() or text, 120)


def _tokens(text: str) -> Iterator[str]:
    return (found[0] for found in re.finditer(r"\s+|\w+|.", text))


def join_sentences(sentences: Sequence[str]) -> str:
    """Join sentences to a text of one line of limited length."""
    text = ""
    for sentence in sentences:
        ended = sentence if sentence[-1:] in ".!?\u2026" else f"{sentence}."
        longer = f"{text} {ended}".strip()
        if text and len(longer) > MAX_LINE:
            break
        text = longer
    return one_line(text)
