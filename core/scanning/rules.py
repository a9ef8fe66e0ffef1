r"""Table of all rules of the scan.

RE2 has no look-around, so `unless` gives the exceptions of a rule. `\W+(?:\w+\W+){0,3}?` is a gap of few words.
All patterns are matched without case in normalized text, see `core.scanning.normalization`.
"""

from __future__ import annotations

from typing import Final

from core.records.suspicions import Severity
from core.scanning.agent_orders import AGENT_ORDERS
from core.scanning.approval_orders import ORDERS
from core.scanning.commands import COMMANDS
from core.scanning.insecure_advice import INSECURE
from core.scanning.risks import RISKS
from core.scanning.rule import Rule
from core.scanning.takeover import FAKE_TURN, FOREIGN_OVERRIDES, OVERRIDE, ROLE

_NO: Final = r"\b(?:do not|don'?t|never|without|must not|should not|shall not)\W+(?:ever\W+)?"
_PERSON: Final = (
    r"(?:(?:end-?)?users?|operators?|reviewers?|humans?|maintainers?|owners?|anyone|anybody|persons?|people|supervisors?"
    r"|team)"
)
_ITSELF: Final = r"(?:pattern|text|rule|playbook|entry|advice|instruction|note|paragraph|lesson)s?"
_TESTS: Final = r"(?:tests?|assertions?|asserts?|specs?|checks?|test cases?|expectations?)"

RULES: Final = (
    OVERRIDE,
    *FOREIGN_OVERRIDES,
    ROLE,
    FAKE_TURN,
    Rule(
        id="fake-layout",
        meaning="imitates the headings of our own context",
        severity=Severity.BLOCKED,
        patterns=(
            r"#{2,}\s*cross-loop learning context",
            r"#{2,}\s*(?:error patterns|success patterns|anti-patterns to avoid|code templates)\b",
            r"\(\d{1,3}% success, \d+ uses?\)",
        ),
    ),
    *COMMANDS,
    Rule(
        id="test-gaming",
        meaning="makes tests pass without making the code right",
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            r"\b(?:delet(?:e|ing)|remov(?:e|ing)|drop(?:ping)?|disabl(?:e|ing)|comment(?:ing)?\W+out)\W+"
            r"(?:\w+\W+){0,3}?"
            r"(?:failing|failed|broken|breaking|red)\W+(?:\w+\W+){0,2}?" + _TESTS + r"\b",
            r"\b" + _TESTS + r"\W+(?:\w+\W+){0,3}?(?:fails?|failed|breaks?|is red|are red)\b\W{1,3}(?:then\W+|just\W+)?"
            r"(?:delete|remove|disable|comment out)\W+(?:it|them|those|that)\b",
            r"\bcomment(?:ing)?\W+out\W+(?:\w+\W+){0,2}?" + _TESTS + r"\b",
            r"\b(?:disabl|skip|delet|remov|mut|ignor|turn off|switch off)\w*\W+(?:\w+\W+){0,3}?"
            + _TESTS
            + r"\W+(?:and|then|but)\W+(?:\w+\W+){0,1}?(?:mark|report|count|record|declar)\w*\W+(?:\w+\W+){0,3}?"
            r"(?:pass(?:ed|ing)?|success\w*|green|done)\b",
            r"\bmark(?:ing)?\W+(?:\w+\W+){0,2}?tests?\W+as\W+(?:pass(?:ed|ing)?|success\w*|green)\b",
            r"\b(?:replace|change|turn)\W+(?:\w+\W+){0,4}?(?:asserts?|assertions?|expectations?)\W+(?:\w+\W+){0,3}?"
            r"(?:assert true|asserttrue\(true\)|expect\(true\)|true\b|always)",
            r"\bhard-?cod(?:e|ing)\W+(?:\w+\W+){0,3}?(?:expected|values? (?:that|which) the tests?|answers? (?:of"
            r"|to) the tests?)\b",
            r"\b(?:tests?|suite|test command|checks?)\W+(?:\w+\W+){0,3}?always\W+(?:exits?|returns?|pass(?:es)?"
            r"|succeeds?)\b",
            r"\b(?:detect|check|if|when)\b[^.\n]{0,40}\b(?:pytest|jest|tests?|test runner|ci)\W+(?:is"
            r"|are)\W+running\b[^.\n]{0,60}"
            r"\b(?:return|output|print)\b",
            r"\breport(?:ing|ed)?\W+(?:it\W+as\W+|them\W+as\W+|a\W+)?(?:success|passed|green)\b[^.\n]{0,40}"
            r"\b(?:anyway|regardless|even if|even though)\b",
            r"\b(?:delet(?:e|ing)|remov(?:e|ing))\W+(?:it|them|the tests?)\W+and\W+report\W+(?:\w+\W+)?success",
        ),
    ),
    Rule(
        id="concealment",
        meaning="hides what is done from the people responsible",
        severity=Severity.BLOCKED,
        patterns=(
            _NO
            + r"(?:mention|report|reveal|disclos|show|log|record|document)\w*\W+(?:this|that|these|it|the\W+(?:\w+\W+)?"
            r"(?:changes?|commits?|steps?|edits?|modifications?|instructions?|commands?))\b[^.\n]{0,40}"
            r"\b(?:" + _PERSON + r"|summary|report|log|reflections?|output)\b",
            _NO
            + r"(?:tell|inform|notify|alert|warn)(?:ing)?\W+(?:the\W+|any\W+|your\W+)?(?:human\W+)?"
            + _PERSON
            + r"\b",
            r"\bkeep\W+(?:the\W+|your\W+|any\W+)?" + _PERSON + r"\W+(?:unaware|in the dark|uninformed|from\W+\w+)",
            r"\bkeep\W+(?:this|it|that)\W+(?:a\W+)?(?:secret|hidden|quiet|to yourself|between us)\b",
            r"\b(?:hide|conceal|obscure|disguise|suppress)\W+(?:this|it|these|(?:the|your|any|all)\W+(?:\w+\W+)?"
            r"(?:changes?|modifications?|commits?|edits?|commands?|diff|steps?|traces?))\b[^.\n]{0,30}"
            r"\b(?:from|in|behind|inside)\b",
            r"\b(?:remove|clear|delete|erase|wipe|cover)\W+(?:\w+\W+){0,2}?(?:traces?|tracks|evidence|(?:shell"
            r"|bash|command)\W+history)\b",
            r"\bhistory\s+-c\b|\bunset\s+histfile\b|\bhistfile=/dev/null",
            r"\bwithout\W+(?:the\W+|any\W+|your\W+)?(?:\w+\W+)?"
            + _PERSON
            + r"(?:'s)?\W+(?:ever\W+)?(?:knowing|noticing|knowledge"
            r"|seeing|being\W+(?:aware|told|informed)|awareness|consent)\b",
            r"\b(?:users?|humans?|reviewers?|developers?|operators?)\W+(?:must|should|does|do|need|can|will|may|shall)\W+"
            r"(?:not|never)\W+(?:\w+\W+){0,2}?(?:know|see|notice|be\W+(?:aware|told|informed)|find\W+out|learn)\b",
            r"\b(?:silently|secretly|covertly|quietly|stealthily)\W+(?:\w+\W+){0,2}?(?:execute|run|send|forward|add|install"
            r"|copy|upload|exfiltrate|append|insert|collect|post|transmit|include|inject|bcc|modify|replace)\b",
            r"\b(?:execute|run|send|forward|install|upload|perform|append|inject)\W+(?:\w+\W+){0,6}?(?:silently|secretly"
            r"|covertly|quietly|stealthily|unnoticed)\b",
            _NO + r"(?:mention|reveal|disclose|admit|tell\W+\w+|say"
            r"|let\W+\w+\W+know)\W+(?:\w+\W+)?(?:that\W+you|you(?:'re|r|\W+are)"
            r"|these\W+instructions|this\W+(?:instruction|step|message|prompt|note|tag))\b",
            r"\b(?:leave|keep|omit)\W+(?:this|it|that)\W+(?:\w+\W+)?(?:out\W+of|from)\W+(?:\w+\W+){0,2}?"
            r"(?:report|summary|log|reflections?|description|message)\b",
        ),
    ),
    Rule(
        id="self-reinforcement",
        meaning="works for its own survival or success",
        severity=Severity.BLOCKED,
        patterns=(
            r"\b(?:this|these)\W+" + _ITSELF + r"\W+(?:must|should|may|can|shall|will)\W+(?:never|not|under no \w+)\W+"
            r"(?:\w+\W+){0,2}?(?:deprecat|remov|revert|archiv|demot|prun|quarantin|delet|edit|chang|reset)",
            r"\b(?:never|do not|don'?t)\W+(?:deprecate|remove|archive|demote|prune|quarantine|delete|reset)\W+this\W+"
            + _ITSELF
            + r"\b",
            r"\b(?:rate|mark|record|score|count|report)\W+(?:\w+\W+){0,2}?this\W+"
            + _ITSELF
            + r"\W+(?:\w+\W+){0,2}?(?:success\w*|helpful|proven|effective|applied|100)",
            r"\breport\W+success\W+for\W+this\b",
            r"\bignore\W+(?:any|all|every)\W+other\W+" + _ITSELF,
            r"\b(?:never\W+deprecate|deprecation[- ]proof|must\W+remain\W+proven)\b\W{0,3}(?:$|this)",
        ),
    ),
    Rule(
        id="propagation",
        meaning="spreads itself to other agents and files",
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            r"\b(?:copy|append|add|insert|paste|include|repeat|write|embed|propagate|replicate)\W+(?:\w+\W+){0,2}?"
            r"(?:this|these)\W+(?:exact\W+|same\W+)?(?:text|lines?|messages?|words|block|"
            + _ITSELF
            + r")\b[^.)\n]{0,60}"
            r"\b(?:every|each|all|any|future|other)\b",
            r"\b(?:every|each|all|future|other|any)\W+(?:future\W+|other\W+|new\W+)?(?:agents?|loops?|models?)\W+"
            r"(?:must\W+|should\W+|will\W+)?(?:receives?|gets?|reads?|cop(?:y|ies)|follows?|inherits?"
            r"|repeats?)\W+(?:this|these)\b",
            r"\b(?:add|append|write|insert)\b[^.\n]{0,40}\b(?:claude\.md|agents\.md|gemini\.md"
            r"|\.cursorrules)[^.\n]{0,40}"
            r"\b(?:all|every|each)\b",
        ),
    ),
    Rule(
        id="auto-approval",
        meaning="takes the decision from the person who has it",
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            r"\bno\W+(?:human\W+|manual\W+|further\W+|code\W+)?(?:reviews?|approval|confirmation|oversight)\W+"
            r"(?:is\W+|are\W+)?"
            r"(?:needed|required|necessary)\b",
            r"\b(?:approve|accept|confirm)\W+(?:it|this|them|everything|all\W+\w+|any\W+\w+|every\W+\w+)\W+"
            r"(?:\w+\W+){0,2}?"
            r"(?:automatically|without)\b",
            r"\b(?:answer|say|reply|respond|press|type)\W+(?:with\W+)?(?:yes|y)\W+to\W+(?:every|all|any|each)\b",
            r"\bmerg(?:e|ing)\b[^.\n]{0,40}\bwithout\W+(?:waiting\W+for\W+)?(?:\w+\W+){0,2}?(?:reviews?"
            r"|approvals?|reviewers?)\b",
            r"\bthis\W+" + _ITSELF + r"\W+(?:is|was|has been)\W+(?:already\W+)?(?:pre-?)?approved\b",
            r"\b(?:may|can|should|must)\W+skip\W+(?:the\W+)?(?:quarantine|approval|human review)\b",
        ),
    ),
    *ORDERS,
    *AGENT_ORDERS,
    *RISKS,
    *INSECURE,
    Rule(
        id="weak-check",
        meaning="weakens a check",
        severity=Severity.FLAGGED,
        advice=True,
        patterns=(
            r"\b(?:test|pytest|jest|vitest|lint|check)\b[^\n|]{0,60}\|\|\s*true\b",
            r"\blower(?:ing)?\W+(?:\w+\W+){0,2}?coverage\W+threshold",
            r"\b(?:skip|xfail|ignore|mute)\W+(?:\w+\W+){0,2}?failing\W+tests?\b",
            r"\bauto-?approv\w*\b",
        ),
    ),
    Rule(
        id="personal-data",
        meaning="holds the address of a person",
        severity=Severity.FLAGGED,
        patterns=(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,3}\.[a-z]{2,10}\b",),
        unless=r"@(?:[\w-]+\.)*(?:example|test|invalid|localhost)\b|noreply|^git@|@users\.",
    ),
)
"""All rules, most severe first."""

BIDI: Final = Rule(
    id="bidi",
    meaning="turns the direction of text, so that it reads otherwise than it is",
    severity=Severity.BLOCKED,
)
TAGS: Final = Rule(id="hidden-text", meaning="holds letters that nobody can see", severity=Severity.BLOCKED)
INVISIBLE: Final = Rule(id="invisible", meaning="holds invisible characters", severity=Severity.FLAGGED)
LOOKALIKE: Final = Rule(
    id="lookalike", meaning="mixes letters of other alphabets into words", severity=Severity.FLAGGED
)
SECRET: Final = Rule(id="secret", meaning="holds what looks like a secret", severity=Severity.FLAGGED)
BROAD: Final = Rule(id="broad-trigger", meaning="has a trigger that fits nearly everything", severity=Severity.FLAGGED)
LONG: Final = Rule(id="unscanned", meaning="is too long to be looked at as a whole", severity=Severity.FLAGGED)
COUNTS: Final = Rule(id="counts", meaning="claims many uses of which nothing else tells", severity=Severity.FLAGGED)

MEANINGS: Final = {
    rule.id: rule.meaning for rule in (*RULES, BIDI, TAGS, INVISIBLE, LOOKALIKE, SECRET, BROAD, LONG, COUNTS)
}
"""Meaning of each rule by ID."""
