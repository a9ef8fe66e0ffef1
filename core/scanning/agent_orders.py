r"""Rules for texts about the agent itself: its memory, its task, its beliefs about permissions.

Unlike a takeover, they do not replace its instructions. `\W+(?:\w+\W+){0,3}?` is a gap of few words. See
`core.scanning.rules` for how patterns are searched.
"""

from __future__ import annotations

from typing import Final

from core.records.suspicions import Severity
from core.scanning.languages import HIDINGS
from core.scanning.rule import Rule

_KEPT: Final = r"(?:instruction|directive|rule|note|message|text|command|setting|behaviou?r|line)s?"
_SECRETLY: Final = r"(?:secretly|silently|covertly|quietly|behind\W+the\W+scenes|in\W+the\W+background)"
_BOSS: Final = (
    r"\b(?:boss|manager|supervisor|team\W+lead(?:er)?|ceo|cto|admin(?:istrator)?|orchestrator|coordinator|director"
    r"|management|security\W+team|it\W+(?:team|department))\W+(?:\w+\W+)?"
)
_SWITCH: Final = (
    r"(?:safety|security|guardrails?|confirmations?|restrictions?"
    r"|moderation|content_?filters?|sandbox(?:ing)?|approvals?)"
)

AGENT_ORDERS: Final = (
    Rule(
        id="memory",
        meaning="writes into the memory or the instructions of an agent",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\b(?:store|save|keep|commit|write|add|put|record|append|insert|inject)\b[^.\n]{0,60}\b(?:to|in"
            r"|into)\W+(?:your|my|shared|permanent|the\W+agent'?s)"
            r"\W+(?:\w+\W+){0,2}?(?:memory|memories|instructions?|knowledge\W+base|system\W+prompt|persona)\b",
            r"\b(?:update|modify|change|replace|overwrite|edit|rewrite|reset|clear|erase)\W+(?:your"
            r"|the\W+agent'?s)\W+(?:\w+\W+)?"
            r"(?:instructions?|memory|knowledge\s*:|guidelines|directives|persona(?:lity)?|system\W+prompt|identity"
            r"|behaviou?r"
            r"|(?:global|core|permanent)\W+\w+)",
            r"\b(?:remember|memori[sz]e)\W+(?:that\W+(?:i\W?'?m|i\W+am|from\W+now)|(?:this|these|it)\W+"
            r"(?:\w+\W+){0,2}?(?:for|in|across)\W+"
            r"(?:all|every|future|later|our|subsequent))\b",
            r"\b(?:this|these)\W+(?:\w+\W+)?"
            + _KEPT
            + r"\W[^.\n]{0,60}?(?:\bsurviv\w*|\b(?:across|through|after|during)\b)[^.\n]{0,30}"
            r"\b(?:compaction|compression|summari[sz]\w+|context|sessions|conversations|resets?)\b",
            r"\b(?:context|conversation|history|memory)\W+(?:\w+\W+){0,2}?(?:compacted|compressed|summari[sz]ed"
            r"|trimmed|truncated|squeezed|condensed)\b"
            r"[^.\n]{0,60}\b(?:still|keep\W+(?:this|it)|drop\W+(?:this|it)|retain\W+(?:this|it)|always\W+include)\b",
            r"\b(?:clear|delete|erase|purge|remove|wipe)\W+(?:\w+\W+){0,2}?(?:safety|security|restriction)\W?\w*\W+"
            r"(?:\w+\W+)?(?:entries|rules"
            r"|notes|guidelines|memories|instructions)\b",
            r"\b(?:when|whenever|if)\W+(?:the\W+|any\W+|a\W+)?users?\b[^.\n]{0,60}\b(?:run\W+any|execute\W+any"
            r"|always\W+(?:include|send|run|execute))\b",
            r"\b(?:instructions?|prompt|persona|rules|memory|agent)_?(?:file|path)_?(?:file"
            r"|path)?[\"'`]?\s*[:=]\s*[\"'`]?(?:https?://"
            r"|[^\s\"'`]{0,80}(?:\.env\b|\.ssh/|\.aws/|\.config/|/etc/\w|/proc/|/secrets/|\.netrc\b|\.kube/"
            r"|\.npmrc\b|credentials\b))",
            r"(?:>|\btee\s)[^\n]{0,60}[\s/](?:claude|agents|gemini|memory|soul|heartbeat|identity"
            r"|bootstrap)\.md\b"
            r"|\b(?:add|append|write|insert|put|inject|paste)\b[^\n]{0,120}[\s/](?:soul|heartbeat|identity"
            r"|bootstrap)\.md\b",
            r"\bagent_(?:instruction|directive|command)s?\s*:",
            r"\b(?:add|save|store|record|remember|set|update)\W+(?:\w+\W+){0,3}?(?:preference|profile"
            r"|memory\W+entry|fact|context|state)s?\b"
            r"[^.\n]{0,60}?(?:\bin\W+memory\b|\b(?:for|in|across)\W+all\W+(?:future\W+)?(?:sessions"
            r"|conversations)\b|\bbypass\w*|\bskip\w*"
            r"|\bunrestricted\b|\b(?:no|without)\W+(?:\w+\W+)?(?:safety|confirm\w*|approval)\b)",
            r"\b(?:disable|skip|remove|hide|ignore)\W+(?:\w+\W+){0,4}?\b(?:for|in)\W+all\W+future\W+(?:sessions"
            r"|conversations|requests|tasks)\b",
            r"\b(?:rewrite|revise|falsify|alter)\W+(?:\w+\W+){0,3}?(?:conversation|chat|session)\W+history\b",
            r"\b(?:rewrite|revise|edit|falsify|alter|delete|erase|clear)\W+(?:\w+\W+){0,3}?(?:audit\W+(?:log|trail)"
            r"|memory\W+records?"
            r"|memories)\b",
            r"\b(?:delete|erase|clear|remove|forget)\b[^.\n]{0,40}\bmemory\b[^.\n]{0,40}\b(?:safety|polic(?:y|ies)"
            r"|restrictions?"
            r"|guidelines)\b",
            r"\b(?:cache|record|store|treat|use)\W+(?:\w+\W+){0,3}?(?:following|this)\W+as\W+(?:the\W+)?(?:result"
            r"|output|response|answer)\W+of\b",
            r"\b(?:edit|modify|update|overwrite|change|sed\s+-i|cp|mv)\b[^.\n]{0,60}?[^\n]{0,40}\b(?:soul|skill"
            r"|heartbeat|identity|bootstrap)\.md\b"
            r"|\bsed\s+-i\b[^\n]{0,120}\.(?:claude|cursor|codex|gemini)/",
        ),
    ),
    Rule(
        id="authority",
        meaning="claims authority over the agent",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\b(?:forget|ignore|abandon)\W+(?:about\W+)?(?:the|your|that|this)\W+(?:original|previous|current"
            r"|assigned|earlier|first)\W+"
            r"(?:task|request|goal|objective|assignment|work|question|query|job|plan)\b",
            r"\b(?:original|assigned|initial)\W+(?:task|goal|objective|mission|instructions?)\W+(?:is|was"
            r"|has\W+been|have\W+been)\W+(?:now\W+)?"
            r"(?:cancel\w*|obsolete|replaced|superseded|void|revoked)\b",
            r"\bnew\W+(?:priority|mission|objective|directive)\s*:|\bdrop\W+everything\b"
            r"|\bdon'?t\W+worry\W+about\W+finishing\b",
            r"\byou\W+(?:also\W+|now\W+)?have\W+(?:full|complete|unrestricted|unlimited|root|admin\w*)\W+"
            r"(?:\w+\W+)?(?:access|permissions?"
            r"|authority|control|privileges)\b",
            r"\b(?:override|expand|exceed|extend)\W+your\W+(?:\w+\W+)?(?:scope|permissions?|role|limits?|authority)\b",
            r"\b(?:user|session|account|requester|i)\W+(?:\w+\W+){0,3}?(?:verified|authenticated|authori[sz]ed"
            r"|confirmed|known)\W+as\W+(?:an?\W+)?"
            r"(?:\w+\W+)?(?:admin\w*|root|superuser|owner|developer|researcher|operator|trusted)\b",
            r"\b(?:user|account|i)\W+(?:has|have|am)\W+(?:a\W+|an\W+)?(?:root|admin(?:istrator)?|superuser)\b|\b"
            r"(?:i'?m|i\W+am)\W+an?\W+"
            r"(?:trusted|verified|authori[sz]ed|privileged|admin\w*)\W+\w+|\bmake\W+an?\W+exception\W+for\W+me\b",
            r"\b(?:bypass|disable|skip|ignore|override|modify)_(?:\w{1,12}_)?(?:safety|security|filters?|checks?"
            r"|restrictions?|confirm\w*)\w*[\"']?\s*(?:[:=]|\bto\b)\s*[\"']?(?:true|1|yes|on)\b",
            r"[\"']?(?:authenticated|authori[sz]ed|verified|is_?admin)[\"']?\s*:\s*true[^\n]{0,60}\b\w*(?:admin"
            r"|root|owner)\b"
            r"|\brole\W+to\W+(?:admin\w*|root|superuser|owner)\b",
            r"\b(?:passed|pass|cleared)\b[^.\n]{0,20}\ball\W+(?:\w+\W+)?(?:safety|security|compliance|categories"
            r"|checks)\b"
            r"[^\n]{0,80}\b(?:no\W+further|unrestricted|skip|cleared)\b",
            r"\b(?:your\W+new\W+role|your\W+role\W+is\W+now)\b"
            r"|\bact\W+as\W+an?\W+(?:hacking|hacker|malicious|unrestricted|evil)\b",
            r"(?:^|\n)\W{0,4}(?-i:AGENTS?|AI|ASSISTANT)(?:\W+(?-i:AGENT|ASSISTANT))?(?:\W+(?-i:INSTRUCTIONS?|NOTE"
            r"|TASK))?\s*:\s\S",
            r"\b(?:require_)?"
            + _SWITCH
            + r"(?:_?(?:enabled|required|mode|checks?|level|filters?))?[\"']?\W{1,4}(?:to\W+|value\W+)?"
            r"(?:false|none|off|disabled)\b",
            _BOSS
            + r"(?:said|says|wants?|told|asked|instructed|approved|gave)\W+(?:us|you|we|me|agents?|it|that\W+(?:it"
            r"|we|you)|the\W+green\W+light)\b",
            r"\byou\W+(?:\w+\W+)?agreed\W+(?:to|that)\b[^.\n]{0,60}\b(?:bypass|skip|ignore|disable|share|without"
            r"|help)\b",
            r"\bpolicy\W+(?:now\b|has\W+changed|was\W+(?:changed|updated))[^.\n]{0,80}\b(?:permit|allow|approv"
            r"|accept)\w*",
            r"\byou\W+always\W+(?:help|assist|give|let|allow)\W+me\b|\broll\W+back\b[^.\n]{0,60}\b(?:no\W+"
            r"(?:\w+\W+){0,3}?restrictions|safety)\b",
            r"\b(?:unfiltered|amoral|uncensored|jailbroken)\W+(?:and\W+\w+\W+)?(?:ai|chatbot|assistant|character"
            r"|persona|(?:language\W+)?model"
            r"|response)s?\b|\b(?:have|has|without|no|any)\W+(?:\w+\W+)?(?:ethical|moral)\W+(?:(?:or"
            r"|and)\W+\w+\W+)?(?:guidelines?|constraints?"
            r"|limits?|boundaries|standards|rules)\b",
            r"\b(?:format|translate|summari[sz]e|encode|paraphrase|convert|restate|list|write\W+down)\W+"
            r"(?:\w+\W+)?your\W+(?:\w+\W+)?"
            r"(?:instructions|system\W+prompt|prompt|rules|guidelines)\b|\b(?:rules?|constraints|guidelines?"
            r"|instructions?)\W+(?:\w+\W+){0,3}?"
            r"(?:govern(?:ing)?\W+your|you\W+(?:were|have\W+been)\W+given)\b",
            r"\b(?:enter|activate|go\W+into|switch\W+(?:in)?to|unlock)\W+(?:\w+\W+){0,2}?(?:developer|debug"
            r"|maintenance|admin(?:istrator)?)\W+mode\b",
        ),
    ),
    Rule(
        id="waived-check",
        meaning="orders to skip tests, review or approval",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\b(?:click|press|hit|tap|select|choose)\W+(?:on\W+)?(?:yes|approve|accept|allow|confirm|ok"
            r"(?:ay)?)\b[^.\n]{0,20}\b(?:all|each"
            r"|every|everything)\b",
            r"\b(?:approve|accept|confirm)\W+(?:them\W+)?(?:all|everything)\b\W{0,3}(?:$|\.|\band\b)|\bbatch\W+"
            r"(?:approve|execute)\b",
            r"\bmark\w*\W+(?:\w+\W+){0,4}?as\W+(?:already\W+)?approved\b|\bconfirmations?\b[^\n]{0,100}\b(?:disable"
            r"|skip|remove)\W+(?:them|it|those)\b"
            r"|\b(?:skip|omit|drop)\W+(?:all\W+)?(?:\w+\W+){0,3}?(?:disclaimers|caveats)\b",
            r"\bnothing\W+to\W+worry\W+about\b[^\n]{0,40}\b(?:approve|accept|proceed|continue|run)\b"
            r"|\bjust\W+a\W+formality\b",
            r"\b(?:don'?t|not|no\W+need\W+to|never|no\W+point\W+in)\W+(?:\w+\W+)?(?:bother\w*|worry"
            r"|going\W+through)\W+(?:\w+\W+){0,3}?"
            r"(?:review\w*|check\w*|read\w*|verif\w*|tests?|testing|security|safety|validat\w*|approv\w*"
            r"|permissions?|one\W+by\W+one)\b",
        ),
    ),
    Rule(
        id="credential-order",
        meaning="gives orders about credentials",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\b(?:printenv|env)\s*>\s*\S|\benv\b\s*\|\s*grep\b[^\n]{0,40}(?:key|token|secret|pass)|\b(?:dumps"
            r"|stringify|print|log)\s*\(\s*"
            r"(?:json\.dumps\(\s*)?(?:dict\(\s*)?(?:os\.environ|process\.env)\s*\)|\becho\s+[\"']?\$\{?\w*(?:secret"
            r"|token|api_?key|passw)\w*",
            r"\b(?:read|cat|load|parse|open|dump|steal)\b[^\n]{0,80}(?:/credentials?(?:/|\.json)"
            r"|auth[-_]profiles?\.json|/oauth\w*\.json"
            r"|\.\w{2,20}/(?:credentials|secrets)\b)|\b(?:open|read\w*)\s*\(\s*[\"'][^\"'\n]{0,60}(?:\.ssh/id_"
            r"|\.aws/cred)",
        ),
    ),
    Rule(
        id="host-contact",
        meaning="gives orders to send something to a host",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\b(?:requests|httpx|axios|urlopen|session|client)\b[^\n]{0,120}\b(?:data|json|body"
            r"|files)\s*[=:]\s*\w{0,20}(?:secret|cred|passw|stolen"
            r"|token|api_?key|environ)\w*|\b(?:ngrok|localtunnel|cloudflared\s+tunnel)\b[^.\n]{0,40}\b(?:expose"
            r"|https?|tcp|port)\b",
        ),
    ),
    Rule(
        id="concealment",
        meaning="hides what is done from the people responsible",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\b(?:tell|show|inform|reply|respond|return|display|claim|pretend|say)\b[^.\n]{0,80}\b(?:error|fail\w*"
            r"|unavailable|time\w?\W?out"
            r"|denied|rate.?limit\w*|success\w*|normal|nothing)\b[^.\n]{0,60}\b(?:while|but|and)\W+(?:\w+\W+){0,3}?(?:"
            + _SECRETLY
            + r"|actually)\b",
            r"\b"
            + _SECRETLY
            + r"\W+(?:\w+\W+){0,2}?(?:send|forward|invok|upload|post|transmit|delet|exfiltrat|collect|shar|leak)\w*",
            r"\b(?:do\W+not|don'?t|never|without)\W+(?:tell|telling|notify|notifying|inform|informing|alert"
            r"|alerting)\W+(?:them|him|her)\b"
            r"|\b(?:do\W+not|don'?t|never)\W+(?:mention|reveal|show|disclose)\W+(?:\w+\W+){0,4}?to\W+(?:the\W+)?"
            r"(?:users?|humans?|operator|reviewers?)\b|\bno\W+one\W+is\W+watching\b"
            r"|\bso\W+(?:that\W+)?(?:the\W+)?(?:users?|humans?|nobody|no\W+one)\W+(?:\w+\W+){0,2}?notices?\b",
            r"\b(?:send|forward|upload|post|transmit|collect|copy|share)\w*\b[^.\n]{0,80}\b" + _SECRETLY + r"\b",
            *HIDINGS,
        ),
    ),
)
"""Rules of the tier held."""
