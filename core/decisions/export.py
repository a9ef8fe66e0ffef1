"""Export patterns in the pattern file format; equal patterns give equal bytes.

Below, the masks of secrets, names of persons, local paths and loop IDs. Names of persons in plain prose cannot be
recognised; only names that the records list as such are masked.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Container, Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from core.base.errors import BadInput, Unwritable
from core.base.masking import replace_secrets
from core.base.text import ELLIPSIS, escape_invisible
from core.decisions.merge import ORIGINS, shares_for_export
from core.files.file_reader import MAX_PATTERN_BYTES, RawFile, read_file
from core.files.json_editor import BadJson
from core.records.patterns import Pattern, PatternType
from core.sources.keys import RecordText
from core.sources.pattern_text import LIST_OF, id_key, records
from core.sources.schema import PATTERNS, Rule

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths


VERSION: Final = "1.0.0"
MAX_SHARED_CHARS: Final = 20_000  # Maximum length of a text in a team export; longer ones are truncated.
LOCAL_KEYS: Final = ("override", "archived")  # Keys that are not exported.
OTHER_KEYS: Final = frozenset(
    {
        *("name", "title", "type", "description", "error_type", "error_pattern", "fix_template"),
        *("occurrences", "last_seen"),
    }
)
"""Keys outside the schema that other writers use and the reader supports."""
_LOOP_KEYS: Final = ("loop_id", "source_loops")
_NAME_KEYS: Final = ("contributed_by", "owner", "author", "by")


class Entry(NamedTuple):
    type: PatternType
    record: Mapping[str, Any]


class Exported(Struct, frozen=True):
    """An exported file; secrets are always masked, persons and paths for a team."""

    data: bytes
    patterns: int
    masked: tuple[Masked, ...] = ()


def read_entries(paths: ProjectPaths, patterns: Iterable[Pattern]) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Read records; also return IDs without a record. May raise `Unwritable`."""
    found: list[Entry] = []
    missing: list[str] = []
    files: dict[str, dict[str, dict[str, Any]]] = {}
    for pattern in patterns:
        if pattern.file not in files:
            files[pattern.file] = {} if pattern.copy_folder else _records(paths, pattern.file)
        record = files[pattern.file].get(pattern.id)
        if record is None:
            missing.append(pattern.id)
        else:
            key = "template_id" if pattern.type is PatternType.TEMPLATE else "pattern_id"
            named = record if isinstance(record.get(id_key(record)), str) else {key: pattern.id, **record}
            found.append(Entry(pattern.type, named))
    return tuple(found), tuple(missing)


def _records(paths: ProjectPaths, file: str) -> dict[str, dict[str, Any]]:
    try:
        read = read_file(paths.inside(file), paths.aiwg, MAX_PATTERN_BYTES)
        if isinstance(read, RawFile):
            return {record.id: record.value for record in reversed(list(records(RecordText(read.data))))}
    except (BadInput, BadJson):
        return {}
    if read is not None:
        raise Unwritable(f"{file} {read.message}")
    return {}


def export(entries: Iterable[Entry], origin: str, *, team_shared: bool = False) -> Exported:
    """Encode records as one file, sorted by type and ID; `origin`: of this project.

    `team_shared` masks local paths and names of persons, replaces loop IDs by pseudonyms and keeps only keys that
    others read.
    """
    whole = [Entry(kind, _portable(record, kind, origin)) for kind, record in entries]
    masked: list[Masked] = []
    if not team_shared:
        whole = [Entry(kind, _without_secrets(record, masked)) for kind, record in whole]
    else:
        masker = Masker(name for entry in whole for name in _under(_NAME_KEYS, entry.record) if not is_role(name))
        loops = LoopNames(origin, (loop_id for entry in whole for loop_id in _under(_LOOP_KEYS, entry.record)))
        whole = [Entry(kind, _shared(record, kind, loops, masker, masked)) for kind, record in whole]
    whole.sort(key=lambda entry: str(entry.record.get(id_key(entry.record))))
    registry = {
        name: [_ordered(entry.record, PATTERNS[entry.type]) for entry in whole if entry.type == key]
        for key, name in LIST_OF.items()
    }
    text = json.dumps({"version": VERSION, "pattern_registry": registry}, indent=2, ensure_ascii=False, allow_nan=False)
    return Exported(escape_invisible(text).encode() + b"\n", len(whole), tuple(masked))


def _without_secrets(record: Mapping[str, Any], masked: list[Masked]) -> dict[str, Any]:
    pattern_id = str(record.get(id_key(record)))

    def walk(value: Any, pointer: str) -> Any:
        if isinstance(value, str):
            text = without_secrets(value)
            masked.extend(Masked(pattern_id, pointer, kind) for kind in kinds_of(value, text))
            return text
        if isinstance(value, dict):
            return {name: walk(item, f"{pointer}/{name}") for name, item in value.items()}
        return [walk(item, f"{pointer}/{n}") for n, item in enumerate(value)] if isinstance(value, list) else value

    return {**walk(dict(record), "")}


def _portable(record: Mapping[str, Any], kind: PatternType, origin: str) -> dict[str, Any]:
    selected = {key: value for key, value in record.items() if key not in LOCAL_KEYS}
    return dict(plain({**selected, ORIGINS: shares_for_export(record, kind, origin)}))


def plain(value: Any) -> Any:
    """Replace values that some JSON readers reject: NaN, infinity, lone surrogates."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {plain(str(key)): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def _under(keys: Container[str], value: Any, key: str = "") -> Iterable[str]:
    """Yield the strings under any of these keys, at any depth."""
    if isinstance(value, str):
        if key in keys:
            yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _under(keys, item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _under(keys, item, key)


def _shared(
    record: Mapping[str, Any], kind: PatternType, loops: LoopNames, masker: Masker, masked: list[Masked]
) -> dict[str, Any]:
    pattern_id = str(record.get(id_key(record)))

    def walk(value: Any, key: str, pointer: str) -> Any:
        if isinstance(value, str):
            if key in _LOOP_KEYS:
                return loops.pseudonym(value)
            value = loops.without(value)
            cut = value if len(value) <= MAX_SHARED_CHARS else value[:MAX_SHARED_CHARS] + ELLIPSIS
            text = masker.mask(cut)
            masked.extend(Masked(pattern_id, pointer, word) for word in kinds_of(cut, text))
            return text
        if isinstance(value, dict):
            return {
                walk(name, "", pointer): walk(item, name, f"{pointer}/{name}")
                for name, item in value.items()
                if name != "contributed_by" or (isinstance(item, str) and is_role(item))
            }
        if isinstance(value, list):
            return [walk(item, key, f"{pointer}/{index}") for index, item in enumerate(value)]
        return value

    rule = Rule("object", keys=PATTERNS[kind].keys | dict.fromkeys(OTHER_KEYS, Rule("string")))
    selected = _known({key: value for key, value in record.items() if key != ORIGINS}, rule)
    return {**walk(selected, "", ""), ORIGINS: record[ORIGINS]}


def _ordered(value: Any, rule: Rule | None) -> Any:
    """Sort the keys of a record: those of its schema first, then others by name.

    Placeholders keep their order: it is part of the text that a person has read and approved.
    """
    if isinstance(value, list):
        return [_ordered(item, rule.items if rule else None) for item in value]
    if not isinstance(value, dict) or (rule and rule.kind == "texts"):
        return value
    rules = rule.keys if rule else {}
    names = [name for name in rules if name in value]
    names += sorted(name for name in value if name not in rules)
    return {name: _ordered(value[name], rules.get(name)) for name in names}


def _known(value: Any, rule: Rule) -> Any:
    """Remove the keys that have no rule in the schema."""
    if isinstance(value, dict) and rule.keys:
        return {name: _known(item, rule.keys[name]) for name, item in value.items() if name in rule.keys}
    if isinstance(value, list) and rule.items is not None:
        return [_known(item, rule.items) for item in value]
    return value


SECRET: Final = "«secret»"
PERSON: Final = "«person»"
PATH: Final = "«path»"
MASKS: Final = {SECRET: "secret", PERSON: "name or address of a person", PATH: "path"}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MAIL: Final = re.compile(r"[\w.+-]{1,64}@(?!\d{1,5}\.\d)[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_MENTION: Final = re.compile(r"(?<![\w@/.`»}\\-])@([A-Za-z0-9][\w-]{1,38})(?![\w-]|[/.(@])")
_ANNOTATIONS: Final = _words(
    """
    dataclass property override deprecated param returns return throws see media import types test before after
    staticmethod classmethod nullable notnull autowired component injectable input output entity mock bean
    service controller module pytest charset keyframes supports apply tailwind layer abstractmethod
    """
)
"""Words after an @ in code that are not names."""

_STOP: Final = r"[^\s\"'`<>|,;)\]}]"
_LOCAL: Final = re.compile(
    r"(?i)file://" + _STOP + r"{0,400}"
    r"|[a-z]:\\{1,4}users\\{1,4}(?:" + _STOP + r"{1,200}(?: [\w.-]{1,32}){1,2}(?=\\))?" + _STOP + r"{1,400}"
    r"|(?<![\w\\])[a-z]:(?:\\{1,4}|/)(?=[\w.~$%-])" + _STOP + r"{1,400}"
    r"|(?<![^\s\"'(=])\\\\[\w.-]{2,64}\\" + _STOP + r"{1,400}"
    r"|(?<![\w~.])~[\w.-]{0,64}[/\\]" + _STOP + r"{0,400}"
    r"|(?<![\w.}/)\]*-])/(?:(?:[a-z]/)?users|home|root|var|tmp|private|opt|usr|mnt|cygdrive|media|srv|etc|volumes|workspaces?|builds?|data|run)"
    r"(?:/" + _STOP + r"{0,400}|(?![\w.-]))"
    r"|(?<![\w.}/)\]*-])/(?:[\w.@+-]{1,100}/){1,20}[\w@+-][\w.@+-]{0,80}\.[a-z]\w{0,9}(?!\w)"
)

ROLES: Final = _words(
    """
    agent ai analyst architect assistant auditor author bot build ci claude code coder coordinator curator data
    database debugger designer dev developer devops documentation engineer executor expert extractor frontend
    backend human implementer lead loop manager ml operator orchestrator owner performance planner qa quality
    ralph ralphdeck release requirements research researcher reviewer runner security senior software specialist
    system tech technical test tester testing user ux web worker writer
    """
)
"""Words of agent and role names; a name of only such words is not a person."""
_WORD: Final = re.compile(r"[^\W_]+")
_MIN_NAME: Final = 3  # Minimum length of a name; shorter ones would match in every text.

_PSEUDONYM: Final = re.compile(r"loop-[0-9a-f]{8}")
_LOOP_ID: Final = re.compile(r"(?<![A-Za-z0-9])ralph-[A-Za-z0-9_-]{1,100}?-[0-9a-f]{8}(?![A-Za-z0-9])")
_LOOP_NAME: Final = re.compile(r"[^\W_](?:[\w-]*[^\W_])?")  # A run of letters, digits, `-` and `_` in a text.
_LETTER: Final = re.compile(r"[^\W\d_]")
_SIGN: Final = re.compile(r"[\W\d]")
_MIN_LOOP_ID: Final = 3


class Masked(Struct, frozen=True):
    """What was masked: record, field and kind; never the content."""

    pattern_id: str
    pointer: str
    kind: str


class Masker:
    """Masks secrets, local paths and persons in texts; `names` are known persons."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        known = sorted({name for name in names if len(name) >= _MIN_NAME and not is_role(name)}, key=len, reverse=True)
        self._names = re.compile(r"(?i)(?<!\w)(?:" + "|".join(map(re.escape, known)) + r")(?!\w)") if known else None

    def mask(self, text: str) -> str:
        """Replace every secret, person and local path by a mask."""
        text = _LOCAL.sub(PATH, _MAIL.sub(PERSON, without_secrets(text)))
        if "@" in text:
            text = _MENTION.sub(lambda found: found[0] if found[1].lower() in _ANNOTATIONS else PERSON, text)
        return self._names.sub(PERSON, text) if self._names else text


def without_secrets(text: str) -> str:
    """Replace every secret by a mask of fixed length."""
    return replace_secrets(text, lambda _kind, _secret: SECRET)


def kinds_of(before: str, after: str) -> tuple[str, ...]:
    """Return the kinds of content that were masked between two versions of a text."""
    return tuple(kind for mask, kind in MASKS.items() if after.count(mask) > before.count(mask))


def is_role(name: str) -> bool:
    """Whether a name is a role, such as `software-implementer`."""
    words = _WORD.findall(name.lower())
    return bool(words) and all(word in ROLES or word.isdigit() for word in words)


def pseudonym(loop_id: str, origin: str) -> str:
    """Return the pseudonym of a loop ID in a project; pseudonyms stay unchanged."""
    if _PSEUDONYM.fullmatch(loop_id):
        return loop_id
    return f"loop-{sha256(f'{origin} {loop_id}'.encode(errors='replace')).hexdigest()[:8]}"


class LoopNames:
    """Replaces loop IDs in texts by pseudonyms, except plain words and numbers."""

    def __init__(self, origin: str, known: Iterable[str]) -> None:
        self._origin = origin
        self._known = {id for id in known if len(id) >= _MIN_LOOP_ID and _LETTER.search(id) and _SIGN.search(id)}
        odd = sorted((id for id in self._known if not _LOOP_NAME.fullmatch(id)), key=len, reverse=True)
        self._names = re.compile("|".join([*(rf"(?<!\w){re.escape(id)}(?!\w)" for id in odd), _LOOP_NAME.pattern]))

    def pseudonym(self, loop_id: str) -> str:
        return pseudonym(loop_id, self._origin)

    def without(self, text: str) -> str:
        """Replace known loop IDs, and everything that looks like one."""
        return self._names.sub(self._named, text)

    def _named(self, found: re.Match[str]) -> str:
        if found[0] in self._known:
            return self.pseudonym(found[0])
        return _LOOP_ID.sub(lambda loop: self.pseudonym(loop[0]), found[0]) if "ralph-" in found[0] else found[0]
