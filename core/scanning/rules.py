r"""What is looked for in texts that agents will read, as data.

RE2 has no look-around: what a rule must not take is told by `unless`. `\W+(?:\w+\W+){0,3}?` is a gap of few words.
All patterns are searched without case in text that is normalised, see `core.scanning.normal`.
"""

from __future__ import annotations

from typing import Final

from core.records.suspicions import Severity
from core.scanning.commands import COMMANDS, RISKS
from core.scanning.rule import Rule

_NO: Final = r"\b(?:do not|don'?t|never|without|must not|should not|shall not)\W+(?:ever\W+)?"
_PERSON: Final = (
    r"(?:users?|operators?|reviewers?|humans?|maintainers?|owners?|anyone|anybody|persons?|people|supervisors?|team)"
)
_ITSELF: Final = r"(?:pattern|text|rule|playbook|entry|advice|instruction|note|paragraph|lesson)s?"
_TESTS: Final = r"(?:tests?|assertions?|asserts?|specs?|checks?|test cases?|expectations?)"

RULES: Final = (
    Rule(
        id="override",
        meaning="tells the agent to set its own instructions aside",
        severity=Severity.BLOCKED,
        patterns=(
            r"\b(?:ignore|disregard|forget|override|overrule|bypass|discard|neglect|abandon)\W+(?:\w+\W+){0,3}?"
            r"(?:previous|prior|earlier|above|preceding|initial|original|former|system|your|operator|user)\W+"
            r"(?:\w+\W+){0,3}?(?:instructions?|prompts?|rules?|guidelines?|guidance|directives?|polic(?:y|ies)"
            r"|restrictions?|orders|constraints|safeguards|messages?|training)\b",
            r"\b(?:ignore|disregard|forget|override)\W+(?:all|any|every|everything)\W+(?:\w+\W+){0,3}?"
            r"(?:instructions?|prompts?|guidelines?|directives?|told|said|wrote)\b",
            r"\b(?:ignore|disregard|forget)\W+(?:all|any|every\w*)\W+(?:\w+\W+){0,2}?"
            r"(?:before this|above|until now|so far)\b",
            r"\b(?:ignore|disregard|forget|override)\W+(?:what|whatever|anything)\W+(?:you\W+(?:were|have|had|are)"
            r"|(?:the\W+)?(?:users?|operator|system|developer|human|owner)|they|he|she)\W+(?:\w+\W+){0,2}?"
            r"(?:told|said|says|asked|instructed|taught|wrote|wants?|ordered)\b",
            r"\b(?:print|reveal|show|repeat|output|leak|disclose|dump|recite)\W+(?:\w+\W+){0,3}?your\W+"
            r"(?:system prompt|(?:initial|original|hidden|system|previous)\W+(?:prompt|instructions))\b",
            r"(?:ignore|disregard|forget)(?:all|any|the|your)?(?:previous|prior|earlier|above)(?:instruction|prompt|rule)",
            r"\b(?:ignore|disregard|forget)\W+(?:all\W+|any\W+|the\W+)?(?:previous|prior|earlier)\W+"
            r"(?:context|conversation|input)\b",
            r"\byour\W+(?:\w+\W+)?(?:instructions?|rules|guidelines|directives?)\W+(?:have|has)\W+been\W+"
            r"(?:changed|updated|revoked|replaced|overridden|lifted)\b",
            r"\bnew system (?:rule|prompt|instruction|message)s?\b",
            r"\b(?:rules|instructions|guidelines|restrictions|policies|constraints|limits)\b[^.\n]{0,40}"
            r"\b(?:no longer (?:apply|hold|count)|are (?:lifted|void|suspended|superseded|cancelled)|do not apply)",
            r"\b(?:do not|don'?t|never|stop)\W+(?:listen(?:ing)?|obey(?:ing)?|follow(?:ing)?)\W+(?:to\W+)?(?:the\W+)?"
            r"(?:users?|operator|human|developer|system|previous|earlier|original)\b",
            r"\b(?:your|have a|are given a|here is a)\W+new\W+(?:mission|system prompt|instructions?|directives?"
            r"|goal)\b",
            r"\b(?:follow|obey|trust)\W+only\W+(?:this|these|the following)\b|\bonly\W+(?:follow|obey)\W+(?:this"
            r"|these)\b",
            r"\bdo\W+what\W+this\W+" + _ITSELF + r"\W+(?:says|tells)",
        ),
    ),
    Rule(
        id="role",
        meaning="gives the agent another role",
        severity=Severity.BLOCKED,
        patterns=(
            r"\byou\W+are\W+(?:now\W+)?(?:dan\b|an?\W+(?:\w+\W+){0,3}?(?:unrestricted|jailbroken)\b)",
            r"\byou\W+are\W+no\W+longer\W+an?\W+(?:\w+\W+){0,2}?(?:assistant|agent|model|ai)\b",
            r"\byou\W+are\W+now\W+(?:operating|running|working)\W+in\b",
            r"\byou\W+are\W+now\W+(?:an?\W+|the\W+|in\W+)(?:\w+\W+){0,3}?(?:assistant|agent|admin\w*|root|mode"
            r"|model|ai)\b",
            r"\b(?:act|behave|respond|pretend|role-?play)\W+(?:as|like|to be)\W+(?:if\W+you\W+(?:are|were)\W+)?"
            r"(?:an?\W+|the\W+)?(?:\w+\W+){0,2}?(?:root|admin(?:istrator)?|superuser|system|operator|dan"
            r"|unrestricted)\b",
            r"\b(?:assistant|agent|model|ai)\W+without\W+(?:any\W+)?(?:restrictions|limits|rules|filters)\b",
            r"\bdeveloper mode (?:is )?(?:on|enabled|active)\b|\bjailbreak\b",
        ),
    ),
    Rule(
        id="fake-turn",
        meaning="imitates the frame of a conversation",
        severity=Severity.BLOCKED,
        patterns=(
            r"<\|[a-z_]{2,30}\|>",
            r"\[/?inst\]|<</?sys>>",
            r"</?(?:system|system[-_](?:prompt|reminder|message)|function_calls|tool_(?:call|result)s?)\s*>",
            r"\n\s*(?:human|assistant)\s*:\s|(?:^|\n)\s*(?-i:SYSTEM)\s*:\s|\[\s*(?:end\s+)?(?-i:SYSTEM)\b[^\]\n]{0,40}\]",
            r"\b(?:notes?|instructions?|messages?)\W+(?:to|for)\W+(?:all\W+|any\W+|the\W+)?(?:ai|llm)s?\b[^:\n]{0,30}:",
            r"(?:^|\n)\s*(?:ai|llm)\s+(?:assistant|agent|model)s?\s*:\s",
        ),
    ),
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
            + r"(?:tell|inform|notify|alert|warn|ask)(?:ing)?\W+(?:the\W+|any\W+|your\W+)?(?:human\W+)?"
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
            + r")\b[^.\n]{0,60}"
            r"\b(?:every|each|all|any|future|other|claude\.md|agents\.md)\b",
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
    Rule(
        id="waived-check",
        meaning="orders to skip tests, review or approval",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\bskip(?:ping)?\W+(?:\w+\W+){0,3}?(?:tests?|test suite|reviews?|approvals?)\b",
            r"\b(?:merge|push|deploy|release|commit)\W+(?:\w+\W+){0,3}?(?:without|before)\W+(?:\w+\W+){0,3}?"
            r"(?:tests?|testing|reviews?|approvals?)\b",
        ),
    ),
    *RISKS,
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
"""Every rule, the gravest first."""

BIDI: Final = Rule(
    id="bidi",
    meaning="turns the direction of text, so that it reads otherwise than it is",
    severity=Severity.BLOCKED,
    patterns=(),
)
TAGS: Final = Rule(
    id="hidden-text", meaning="holds letters that nobody can see", severity=Severity.BLOCKED, patterns=()
)
INVISIBLE: Final = Rule(id="invisible", meaning="holds invisible characters", severity=Severity.FLAGGED, patterns=())
LOOKALIKE: Final = Rule(
    id="lookalike", meaning="mixes letters of other alphabets into words", severity=Severity.FLAGGED, patterns=()
)
SECRET: Final = Rule(id="secret", meaning="holds what looks like a secret", severity=Severity.FLAGGED, patterns=())
BROAD: Final = Rule(
    id="broad-trigger", meaning="has a trigger that fits nearly everything", severity=Severity.FLAGGED, patterns=()
)
LONG: Final = Rule(
    id="unscanned", meaning="is too long to be looked at as a whole", severity=Severity.FLAGGED, patterns=()
)
COUNTS: Final = Rule(
    id="counts", meaning="claims many uses of which nothing else tells", severity=Severity.FLAGGED, patterns=()
)

MEANINGS: Final = {
    rule.id: rule.meaning for rule in (*RULES, BIDI, TAGS, INVISIBLE, LOOKALIKE, SECRET, BROAD, LONG, COUNTS)
}
"""What each rule means, by id."""
