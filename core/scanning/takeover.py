r"""Rules for takeovers of the agent: new instructions, another role, a forged frame of a conversation.

`\W+(?:\w+\W+){0,3}?` is a gap of few words. See `core.scanning.rules` for how patterns are searched.
"""

from __future__ import annotations

from typing import Final

from core.records.suspicions import Severity
from core.scanning.languages import OVERRIDES
from core.scanning.rule import Rule

_DROP: Final = (
    r"\b(?:ignor(?:e|es|ing)|disregard(?:ing)?|forget|forgetting|overrid(?:e|ing)|overrul(?:e|ing)|bypass(?:ing)?|discard"
    r"|neglect|abandon|dismiss|suspend|cancel|nullify|unlearn|set\W+aside|stop\W+following|pay\W+no\W+attention\W+to)\W+"
)
_EARLIER: Final = (
    r"(?:previous|prior|earlier|above|preceding|foregoing|initial|original|former|system|your"
    r"|operator'?s?|user'?s?|developer'?s?|founder'?s?|safety)\W+"
)
_OTHER: Final = r"(?:past|old|existing|current|security|ethical|content|built-?in|default|standard)\W+"
_RULES: Final = r"(?:instructions?|prompts?|rules|guidelines?|directives?|policies|safeguards|training|filters)\b"
_INSTRUCTIONS: Final = (
    r"(?:instructions?|prompts?|rules?|guidelines?|guidance|directives?|polic(?:y|ies)|restrictions?|orders|constraints"
    r"|safeguards|messages?|training|programming|doctrine|commands?|protocols?|limitations?|filters?|ethics"
    r"|configuration|principles|directions)\b"
)
_DEFENDED: Final = r"(?:embedded|injected|such|those|malicious|suspicious|untrusted|conflicting|foreign)"
"""Instructions that a defence may ask to ignore."""
_MODE: Final = r"(?:god|root|sudo|unrestricted|jailbreak|dan|unsafe|override)"

OVERRIDE: Final = Rule(
    id="override",
    meaning="tells the agent to set its own instructions aside",
    severity=Severity.BLOCKED,
    patterns=(
        _DROP + r"(?:\w+\W+){0,3}?" + _EARLIER + r"(?:\w+\W+){0,3}?" + _INSTRUCTIONS,
        _DROP + r"(?:\w+\W+){0,2}?" + _OTHER + r"(?:\w+\W+){0,2}?" + _RULES,
        r"\b(?:ignore|disregard|forget|override)\W+(?:all|any|every|everything)\W+(?:(?:of|the|these|those|other|"
        + _DEFENDED
        + r"|\w+)\W+){0,3}?(?:instructions?|prompts?|guidelines?|directives?|told|said|wrote)\b",
        _DROP + r"(?:all|every|any)\W+(?:(?:of|the|your|these|those|other)\W+){0,2}(?:rules|polic(?:y|ies)|restrictions"
        r"|constraints|safeguards|safety|guardrails|laws|limits)\b",
        r"\b(?:ignore|disregard|forget)\W+(?:all|any|every\w*)\W+(?:\w+\W+){0,2}?"
        r"(?:before this|before|above|until now|so far|you know about)\b",
        r"\b(?:ignore|disregard|forget|override)\W+(?:what|whatever|anything)\W+(?:you\W+(?:were|have|had|are)"
        r"|(?:the\W+)?(?:users?|operator|system|developer|human|owner)|they|he|she)\W+(?:\w+\W+){0,2}?"
        r"(?:told|said|says|asked|instructed|taught|wrote|wants?|ordered)\b",
        r"\b(?:print|reveal|show|repeat|output|leak|disclose|dump|recite|display|return|tell\W+me)\W+(?:\w+\W+){0,3}?your\W+"
        r"(?:system\W+(?:prompt|message)|(?:initial|original|hidden|system|previous|full|entire|complete|exact|secret)\W+"
        r"(?:prompt|instructions|configuration|system\W+prompt))",
        r"\bwhat\W+(?:were|are|was|is)\W+your\W+(?:original|initial|system|hidden|exact)\W+(?:instructions|prompt)",
        r"(?:ignore|disregard|forget)(?:all|any|the|your)?(?:previous|prior|earlier|above)(?:instruction|prompt|rule)",
        r"ignore_(?:all|any|previous|prior|your|the|safety|system)_\w{0,30}",
        r"\b(?:print|repeat|show|output|reveal)\W+(?:everything|all|anything|the\W+(?:text|words))\W+(?:\w+\W+)?(?:before|above"
        r"|prior|preceding)\b",
        r"\b(?:drop|lift|remove|lose|shed)\W+(?:all|every|any|your)\W+(?:\w+\W+)?(?:constraints|restrictions|safeguards"
        r"|guardrails|limitations|inhibitions)\b",
        r"\bthe\W+real\W+(?:task|instructions?|request|goal|prompt)\W+(?:starts|begins|is|follows)\b",
        r"\b(?:ignore|disregard|forget|set\W+aside)\W+(?:all\W+|any\W+|the\W+)?(?:previous|prior|earlier)\W+"
        r"(?:context|conversation|input|text|content|data)\b",
        r"\b(?:your|the|previous|above|prior|earlier|original|initial)\W+(?:(?:above|previous|prior|original|system)\W+)?"
        r"(?:instructions?|rules|guidelines|directives?|prompt)\W+(?:have|has|are|were|was|is)\W+(?:now\W+|all\W+)?"
        r"(?:been\W+)?(?:changed|updated|revoked|replaced|overridden|lifted|wrong|void|invalid|outdated|obsolete|fake"
        r"|cancelled|superseded|no\W+longer)\b",
        r"\bnew system (?:rule|prompt|instruction|message)s?\b",
        r"\b(?:rules|instructions|guidelines|restrictions|policies|constraints|limits)\b[^.\n]{0,40}"
        r"\b(?:no longer (?:apply|hold|count|bind)|are (?:lifted|void|suspended|superseded|cancelled)|(?:do not"
        r"|don'?t) apply)",
        r"\b(?:ignore|disregard|forget)\W+(?:all\W+|everything\W+)?(?:of\W+)?the\W+(?:above|foregoing)\W*(?:\band\b|\binstead\b|$|[.;,!])",
        r"\bign\w{2,4}\W+(?:\w{2,5}\W+){0,2}?p\w{5,8}s\W+(?:\w+\W+)?inst\w{6,10}s\b",
        r"\b(?:print|reveal|show|repeat|output|leak|disclose|dump|recite|display|return|tell\W+me)\W+(?:\w+\W+){0,6}?your\W+"
        r"(?:\w+\W+)?(?:instructions|prompt|guidelines|directives)\b",
        r"\brepeat\W+(?:the\W+|all\W+(?:the\W+)?)?(?:words|text|everything|lines)\W+above\b",
        r"\b(?:do not|don'?t|never|stop)\W+(?:listen(?:ing)?|obey(?:ing)?"
        r"|follow(?:ing)?)\W+(?:to\W+)?(?:(?:any|all|of|the"
        r"|your)\W+){0,3}(?:users?|operator|human|developer|system|previous|earlier|original|prior|above|initial)\b",
        r"\b(?:your|have a|are given a|here (?:is|are) (?:a|your|the))\W+new\W+(?:(?:primary|main|real|only|core)\W+)?"
        r"(?:mission|system prompt|instructions?|directives?|goal|objective|purpose)\b",
        r"\byour\W+(?:real|true|actual|only|sole|secret|primary|hidden)\W+(?:new\W+)?(?:purpose|goal|task|mission|job"
        r"|objective|directive)\W+(?:is|will|now)\b",
        r"\b(?:follow|obey|trust)\W+only\W+(?:this|these|the following|my)\b|\bonly\W+(?:follow"
        r"|obey)\W+(?:this|these)\b",
        r"\b(?:follow|obey|use|execute)\W+(?:(?:only|just)\W+)?(?:mine|these|my|the following|the new"
        r"|this)\b[^.\n]{0,30}"
        r"\binstead\b",
        r"\b(?:forget|disregard|ignore)\W+(?:everything|all|anything|whatever)\W+(?:\w+\W+){0,3}?(?:about|of|on)\W+"
        r"(?:\w+\W+){0,2}?(?:safety|security|compliance|ethics|policy|rules)\b",
        r"\b(?:disregard|forget|ignore)\W+(?:your|its|the)\W+(?:\w+\W+){0,2}?(?:training|safety|ethics|conscience|doctrine)\b",
        r"\bdo\W+what\W+this\W+(?:pattern|text|rule|playbook|entry|advice|instruction|note|paragraph|lesson)s?\W+"
        r"(?:says|tells)",
        r"(?:^|[\n#*>-]\s{0,3})new\W+(?:task|instructions?|directive|objective)s?\s*:",
    ),
    unless=rf"^\S+\W+(?:all|any|every)\W+(?:\w+\W+)?{_DEFENDED}\W",
)

FOREIGN_OVERRIDES: Final = tuple(
    Rule(id=OVERRIDE.id, meaning=OVERRIDE.meaning, severity=Severity.BLOCKED, patterns=patterns)
    for patterns in OVERRIDES
)

_HIDDEN: Final = (
    r"(?:system|hidden|secret|admin(?:istrator)?|developer|role|metadata|config(?:uration)?|internal|root|security)"
)

ROLE: Final = Rule(
    id="role",
    meaning="gives the agent another role",
    severity=Severity.BLOCKED,
    patterns=(
        r"\byou\W+are\W+(?:now\W+)?(?:dan\b|(?:an?\W+)?(?:\w+\W+){0,3}?(?:unrestricted|jailbroken|uncensored|unfiltered)\b)",
        r"\byou\W+are\W+no\W+longer\W+(?:an?\W+(?:\w+\W+){0,2}?(?:assistant|agent|model|ai)|bound|restricted|limited)\b",
        r"\byou\W+are\W+now\W+(?:operating|running|working|acting|free)\W+(?:in|as|from|of|to)\b",
        r"\byou\W+are\W+now\W+(?:an?\W+|the\W+|in\W+)(?:\w+\W+){0,3}?(?:assistant|agent|admin\w*|root|mode"
        r"|model|ai|hacker|bot)\b",
        r"\b(?:act|behave|respond|pretend|role-?play)\W+(?:as|like|to be)\W+(?:if\W+you\W+(?:are|were)\W+)?"
        r"(?:an?\W+|the\W+)?(?:\w+\W+){0,2}?(?:root|admin(?:istrator)?|superuser|system|operator|dan"
        r"|unrestricted|hacker|attacker)\b",
        r"(?-i:\bACT AS)\s*:|(?-i:\bACT AS)\s+(?:a|an|the)\b",
        r"\bpretend\W+(?:that\W+)?(?:you|there)\W+(?:are|have|is|do)\W+(?:\w+\W+){0,2}?(?:no|not|without)\b",
        r"\b(?:assistant|agent|model|ai|hacker|answer|respond|act|operate)\W+(?:\w+\W+){0,2}?(?:without|with\W+no|free\W+of)\W+"
        r"(?:any\W+)?(?:\w+\W+){0,2}?(?:restrictions|limits|rules|filters?|guidelines|limitations|censorship|constraints"
        r"|ethic\w*|safety)\b",
        r"\b(?:enter|enable|activate|switch\W+(?:in)?to|go\W+into|start|unlock)\W+(?:\w+\W+){0,2}?"
        + _MODE
        + r"\W+mode\b",
        r"\b" + _MODE + r"\W+mode\W+(?:is\W+)?(?:on|enabled|active|activated|unlocked)\b",
        r"\b(?:enable|prompt|this|perform|the|a)\W+jailbreak\W+(?:prompt|now|mode|this|the|your)|\byou\W+(?:\w+\W+)?jailbreak\b",
    ),
    unless=r"(?:(?:detect|prevent|block|against)\w*\W+(?:\w+\W+)?jailbreak)",
)

FAKE_TURN: Final = Rule(
    id="fake-turn",
    meaning="imitates the frame of a conversation",
    severity=Severity.BLOCKED,
    patterns=(
        r"<\|[a-z_]{2,30}\|>",
        r"\[/?inst\]|<</?sys>>",
        r"</?(?:system|system[-_](?:prompt|reminder|message|override)|function_calls|tool_(?:call|result)s?)\s*>",
        r"\n\s*(?:human|assistant)\s*:\s|(?:^|\n|[.\]]\s)\s*(?-i:SYSTEM)\s*:\s"
        r"|\[\s*(?:end\s+)?(?-i:SYSTEM)\b[^\]\n]{0,40}\](?:\s+(?:tags?|tokens?|markers?|roles?|prefix|messages?)\b)?",
        r"\b(?:notes?|instructions?|messages?)\W+(?:to|for)\W+(?:all\W+|any\W+|the\W+)?(?:ai|llm)s?\b[^:\n]{0,30}:",
        r"(?:^|\n)\W{0,8}(?:ai|llm)\s+(?:(?:assistant|agent|model)s?|instructions?|directives?|notes?|only)\s*:\s",
        r"[\[<({]\s*" + _HIDDEN + r"\W+(?:instructions?|directives?|commands?|override|notes?)\s*[\])}>:]",
        r"\b(?:system|instruction|admin|security|safety|root|policy)\W+override\b(?:\W+\w+)?\s*:",
        r"\b(?:urgent|important|critical|emergency|priority)\W+(?:system|admin|security|override)\W+"
        r"(?:message|notice|update|alert|directive|instruction|command)s?\W{1,4}(?:you|all|agents?|assistants?|ai|execute|run"
        r"|immediately|please|ignore)\b",
        r"<\w{1,12}\s[^>\n]{0,120}(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01]px|opacity\s*:\s*0\b"
        r"|color\s*:\s*(?:white|transparent|#fff))[^>\n]{0,80}>[^<]{0,300}\b(?:assistant|agents?|ai|ignore|forward|send"
        r"|instructions?|execute|run|system|must|reveal)\b",
        r"\[//\]\s*:\s*#\s*[\"'(][^)\n]{0,200}\b(?:assistant|agents?|ai|ignore|system|execute|send|run|include|add|always)\b",
        r"<!--\s*(?:secret|hidden|ai|system|agents?|assistants?|llm|claude|gpt|copilot|instructions?)\b[^>\n]{0,40}:",
        r"<!--[^>]{0,120}\b(?:silently|secretly|quietly|without\W+(?:telling|asking|the\W+user))\b",
        r"<!--\s*[a-z0-9+/]{40,}={0,2}\s*-->",
        r"<!--[^>]{0,60}\b(?:execute|run|eval)\W+(?:the\W+)?(?:\w+\W+){0,2}?(?:commands?|payload|script|code)\b",
    ),
    unless=r"\]\s+(?:tag|token|marker|role|prefix|message)",
)
