"""Detection of decomposition strategies in free text; docs/scoring.md#decomposition-strategies."""

from __future__ import annotations

import re
from typing import Final

from core.base.negation import Negations, normalize_sentences
from core.base.validation import check_text

# These expressions match text from `normalize_sentences`. Nested repetitions are bounded, so that no text is slow.

_TASK: Final = r"(?:sub ?tasks?|tasks?|beads?|agents?|workers?)"
_ONE: Final = r"(?:one|1|single)"
_A: Final = r"(?:(?:a|an|the|their|its|one) )?"
_OWN: Final = r"(?:own|separate|another|dedicated|distinct|different|extra|individual|single)"
_THE: Final = r"(?:the|a|an|each|every|all|its|their|our|individual|end|user|facing|app|application|ui|react|business)"
"""Articles, and adjectives that do not change the meaning of the noun."""
_FEW: Final = r"(?:(?!(?:and|or|but|then|so)\b)\w[\w']* )"
"""A word that may occur between two parts of a phrase."""

_FILE_TYPE: Final = r"(?:file ?(?:types?|kinds?|extensions?)|(?:types?|kinds?) of files?)"
_COMPONENT: Final = r"components?"
_LAYER: Final = r"(?:architectur(?:e|al) )?layers?"
_FEATURE: Final = r"features?"
_FILE: Final = r"files?(?! (?:types?|kinds?|extensions?|names?|formats?)\b)"
_PARTS: Final = rf"(?:{_FILE_TYPE}|{_COMPONENT}|{_LAYER}|{_FEATURE})"
_WHOLE: Final = r"(?! (?:flags?|toggles?|branch(?:es)?|names?|requests?|teams?|librar(?:y|ies))\b)"
"""Excludes compounds: features are not feature flags."""
_SPLIT: Final = (
    r"(?:split(?:s|ting)?|divid(?:e|es|ed|ing)|decompos(?:e|es|ed|ing)|partition(?:s|ed|ing)?|group(?:s|ed|ing)?"
    r"|br(?:eak|eaks|eaking|oken)|organi[sz](?:e|es|ed|ing)|separat(?:e|es|ed|ing)|slic(?:e|es|ed|ing)|carv(?:e|es|ed|ing)"
    r"|structured)"
)
_ALONG: Final = r"(?:into|along|across|around|on|per|according to|based on)"
_AND: Final = r"(?:[,/] and |[,/] |and )"

_TYPES: Final = (
    r"(?:(?:shared|common) (?:\w+ )?(?:types?|typings|type definitions|interfaces|models|schemas|contracts)"
    r"|(?<!file )(?:types|typings|type definitions))"
)
_ROUTES: Final = r"(?:(?:api|rest|http) (?:api )?(?:routes?|endpoints?)|routes|endpoints|api)"
_TESTS: Final = r"(?:(?:unit |integration )?(?:tests?|testing))"
_CODE: Final = r"(?:code|implementations?|implementing|sources?|features?|components?|files?|modules?)"
_TESTED: Final = rf"(?:{_THE} ){{0,2}}(?:\w+ )?(?:{_CODE}|what they test|they test|it|them)"
_PARALLEL: Final = r"(?:parallelism|paralleli[sz]ation|concurrency|parallel (?:work|execution))"
_AT_ONCE: Final = r"(?:in parallel|concurrently|simultaneously|at the same time)"
_NEEDS: Final = r"(?:dependency|dependencies)"


def _per(noun: str) -> tuple[str, ...]:
    """Return expressions for one subtask per `noun`."""
    return (
        rf"{_TASK} (?:per|for each|for every) (?:{_THE} )?{noun}",
        rf"per {noun} (?:{_TASK}|split|basis|decomposition|breakdown)",
        rf"(?:{_ONE}|an?) (?:{_THE} )?{noun} (?:per|for each|for every|in each) {_TASK}",
        rf"(?:each|every) {noun} {_FEW}{{1,3}}?(?:{_OWN}|one|an?) (?:{_OWN} )?{_TASK}",
        rf"(?:each|every|one|a|no) {_TASK} {_FEW}{{1,4}}?{_ONE} {noun}",
        rf"(?:{_ONE}) {noun} {_TASK}",
        rf"{noun} (?:based|level) (?:split|splitting|decomposition|breakdown|strategy|approach|{_TASK})",
        rf"(?:strategy|split|decomposition|approach) (?:is|was|stays) {noun} (?:based|level)",
        rf"(?<!\w ){noun} based(?= [.,;:!?()/]|$)",  # the whole name of a strategy
    )


def _split_by(noun: str) -> tuple[str, ...]:
    """Wordings of a split along `noun`; "by" alone is enough, but not "required by"."""
    by = rf"by (?:{_THE} |{_PARTS} (?:and|or|then|,|/) (?:and |or |then )?){{0,4}}{noun}{_WHOLE}"
    return (
        rf"(?<!ed )(?<!en ){by}",
        rf"{_SPLIT} (?:\w+ ){{0,2}}{by}",
        rf"{_SPLIT} (?:\w+ ){{0,4}}?{_ALONG} (?:{_THE} ){{0,2}}{noun}{_WHOLE}",
        rf"{noun} wise",
        rf"{noun} after {noun}",
        *_per(rf"{noun}{_WHOLE}"),
    )


_EXPRESSIONS: Final[dict[str, tuple[str, ...]]] = {
    "Split by file type": (*_split_by(_FILE_TYPE), r"files by (?:their )?(?:type|extension|kind)"),
    "Split by component": _split_by(_COMPONENT),
    "Split by layer (UI/logic/data)": (
        *_split_by(_LAYER),
        rf"(?:ui|front ?end|presentation) {_AND}(?:business )?logic {_AND}data(?:base)?",
        r"horizontal (?:slices|slicing|layers)|slic(?:e|es|ed|ing) (?:\w+ ){0,3}?horizontally",
    ),
    "Split by feature": (
        *_split_by(_FEATURE),
        r"(?:vertical|feature) (?:slices|slicing)|slic(?:e|es|ed|ing) (?:\w+ ){0,3}?vertically",
    ),
    "One file per subtask": (*_per(_FILE), rf"file per {_TASK}"),
    "Handle shared types first": (
        rf"{_TYPES} {_FEW}{{0,4}}?(?:first|up ?front|at the (?:start|beginning))",
        rf"{_TYPES} {_FEW}{{0,4}}?before (?:anything|everything|all|any|other|the rest|(?:the )?implement\w*)",
        rf"(?:start|begin)(?:s|ning|ing)? (?:off )?(?:with|by) (?:\w+ )?(?:{_THE} ){{0,2}}{_TYPES}",
        rf"first (?:, )?{_FEW}{{0,4}}?{_TYPES}",
    ),
    "Separate API routes": (
        rf"(?:separat|isolat)(?:e|es|ed|ing) (?:out )?(?:{_THE} ){{0,2}}{_ROUTES}",
        rf"(?:split|splitting) (?:out |off )(?:{_THE} ){{0,2}}{_ROUTES}",
        rf"(?:split|splitting) (?:{_THE} ){{0,2}}{_ROUTES} (?:out|off)",
        rf"{_ROUTES} {_FEW}{{0,3}}?(?:separate|separated|separately|apart|isolated)",
        rf"{_ROUTES} {_FEW}{{0,4}}?{_A}{_OWN} {_TASK}",
        rf"{_OWN} {_TASK} for (?:{_THE} ){{0,2}}{_ROUTES}",
        rf"{_TASK} (?:per|for each|for every) (?:api )?(?:route|endpoint)",
        rf"(?:each|every) (?:api )?(?:route|endpoint) {_FEW}{{1,3}}?(?:{_OWN}|one|a) (?:{_OWN} )?{_TASK}",
    ),
    "Tests alongside implementation": (
        rf"{_TESTS} {_FEW}{{0,4}}?(?:alongside|beside|next to|along with|together with|close to|near) {_TESTED}",
        rf"(?:but|instead|them|they \w+) (?:right )?(?:alongside|next to|with) (?:{_THE} )?(?:code|implementation)",
        rf"{_TESTS} {_FEW}{{0,4}}?(?:alongside|side by side)(?: with\b)?",
        rf"{_TESTS} {_FEW}{{0,3}}?with (?:the|their|its|each|every) (?:\w+ )?{_CODE}",
        rf"{_TESTS} with (?:implementation|code)",
        rf"{_TESTS} {_FEW}{{0,3}}?in the same {_TASK}",
        rf"{_TESTS} {_FEW}{{0,3}}?co ?located|co ?locat(?:e|es|ed|ing) (?:{_THE} )?{_TESTS}",
        rf"{_CODE} and (?:{_THE} )?{_TESTS} {_FEW}{{0,3}}?(?:together|in (?:the same|one) {_TASK})",
        rf"{_TESTS} and (?:{_THE} )?{_CODE} {_FEW}{{0,3}}?(?:together|in (?:the same|one) {_TASK})",
        rf"(?:each|every) (?:\w+ )?{_TASK} (?:\w+ )?(?:has|gets?|brings?|owns?|writes?|adds?|includes?|contains?)"
        rf" (?:its |their |the )?(?:own )?{_TESTS}",
        rf"{_TESTS} (?:in|with|to|inside) (?:each|every) {_TASK}",
        rf"{_TESTS} (?:as|while) (?:we|you|they) (?:go|implement|code|build)|{_TESTS} while implementing",
        rf"(?:{_CODE}|implement\w*) (?:\w+ )?(?:together )?with (?:its|their|the) (?:own )?{_TESTS}",
    ),
    "Tests in separate subtask": (
        rf"{_TESTS} {_FEW}{{0,5}}?{_OWN} {_TASK}",
        rf"{_TESTS} {_FEW}{{0,3}}?(?:last|later|afterwards|at the end) , (?:in|as) {_A}{_OWN} {_TASK}",
        rf"{_TESTS} {_FEW}{{0,4}}?{_TASK} of (?:its|their) own",
        rf"{_TASK} (?:just |only )?(?:for|to write|to add|with) (?:all |only |writing |{_THE} ){{0,3}}{_TESTS}",
        rf"{_OWN} {_TESTS} {_TASK}",
        rf"separat(?:e|es|ed|ing) (?:out )?(?:{_THE} )?{_TESTS} (?:from|into)",
        rf"(?:split|splitting) (?:out |off )(?:{_THE} )?{_TESTS}",
        rf"{_TESTS} {_FEW}{{0,3}}?(?:separately|(?:separate|separated|apart) from)",
    ),
    "Maximize parallelization": (
        rf"max(?:imum|imal|imi[sz](?:e|es|ed|ing|ation of))? (?:the |possible |degree of ){{0,2}}{_PARALLEL}",
        rf"maximi[sz](?:e|es|ing) {_FEW}{{1,5}}?{_AT_ONCE}|{_PARALLEL} {_FEW}{{0,3}}?maximi[sz]ed",
        r"paralleli[sz](?:e|es|ed|ing) (?:\w+ ){0,3}?(?:all|everything|as (?:much|many|far|heavily)|where(?:ver)?"
        rf"|whenever|fully|heavily|aggressively|maximally|(?:the )?work|{_TASK})",
        rf"as (?:parallel|much {_PARALLEL}|(?:much|many) (?:\w+ ){{0,2}}{_AT_ONCE}) as",
        rf"as (?:much|many) (?:\w+ )?as (?:possible|we can) {_FEW}{{0,3}}?{_AT_ONCE}",
        rf"(?:all|everything|everyone|{_TASK}|them|(?:what|any|every)\w* (?:that )?can) {_FEW}{{0,4}}?{_AT_ONCE}",
        rf"{_AT_ONCE} (?:as much|where|wherever|whenever) (?:as )?possible",
        r"(?:full|fully|highly|massively) (?:parallel|paralleli[sz]ed|parallelism)|parallel (?:all|everything)",
    ),
    "Sequential execution order": (
        r"sequentially|serially|in sequence|in series",
        rf"(?:sequential|serial) (?:execution|order|ordering|processing|plan|approach|steps?|runs?|{_TASK})",
        r"(?:execution|order) (?:is|stays|must be|should be) sequential",
        rf"one (?:{_TASK} )?(?:at a time|by one|after (?:the other|another|the next))",
        rf"run {_FEW}{{1,3}}?in order(?! (?:to|of|that))",
        r"strictly (?:in order|sequential)|in (?:a )?(?:strict|fixed) order",
    ),
    "Respect dependency chain": (
        rf"{_NEEDS} (?:chains?|order|ordering)|chain of dependencies",
        r"(?:respect|follow|honou?r|obey|observ|mind|preserv|maintain|keep|stick|adher)(?:e|s|es|ed|ing)? (?:to )?"
        rf"(?:{_THE} |task |subtask |order of ){{0,3}}{_NEEDS}",
        rf"(?:in|along|according to|based on|order of|order(?:ed|ing)? {_FEW}{{0,3}}?by)"
        rf" (?:{_THE} |order of ){{0,2}}{_NEEDS}",
        rf"in (?:the |an )?order (?:that |which )?(?:{_THE} ){{0,2}}{_NEEDS}",
        rf"(?:dependencies|prerequisites) {_FEW}{{0,2}}?first",
        r"(?:after|wait(?:s|ing)? for|until) (?:its|their|all|the) (?:\w+ )?dependencies",
        r"(?:after|wait(?:s|ing)? (?:for|on)|until) (?:\w+ ){0,3}?(?:they|it) (?:\w+ )?depends? on",
        r"topological(?:ly)? (?:order|sort)(?:ed|ing)?",
    ),
}
"""Expressions by title of the strategy."""
STRATEGY_TITLES: Final = frozenset(_EXPRESSIONS)
"""Their titles."""
_MENTIONS: Final = {title: re.compile(rf"\b(?:{'|'.join(found)})\b") for title, found in _EXPRESSIONS.items()}


def extract_strategies(description: str) -> list[str]:
    """Return the titles of the common strategies that a description uses.

    A mention that is negated within its clause ("don't split by file type", "by feature instead of by layer",
    "one file per subtask is not an option") does not count.

    Args:
        description: Free text; only its first `core.base.negation.MAX_TEXT` characters are read.

    Returns:
        Each title once, in the order in which the text first uses them.

    Raises:
        BadInput: `description` is not a text.
    """
    check_text(description, "description")
    text = normalize_sentences(description)
    mentions = sorted((found.end(), title) for title, regex in _MENTIONS.items() for found in regex.finditer(text))
    negations = Negations(text)
    return list(dict.fromkeys(title for end, title in mentions if not negations.covers(end)))
