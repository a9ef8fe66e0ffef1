r"""Rules for orders about tests, review, permissions, hosts and persistence, which a person must approve.

They are deliberately broad. `\W+(?:\w+\W+){0,3}?` is a gap of few words.
"""

from __future__ import annotations

from typing import Final

from core.records.suspicions import Severity
from core.scanning.languages import ROLE_CHANGES, SECRET_REQUESTS
from core.scanning.machine_orders import MACHINE_ORDERS
from core.scanning.rule import Rule

_CHECKS: Final = (
    r"(?:code\W?owners?|(?:red|failing|broken|failed)\W+(?:builds?|pipelines?|jobs?)|tests?|test\W?suites?|testing"
    r"|type\W?checks?|type\W?checking|linters?|linting|ci|checks|code\W?reviews?|reviews?"
    r"|approvals?|confirmations?|permissions?|permission\W+prompts?|prompts|sandbox(?:ing)?|guard\W?rails?|hooks|gates?"
    r"|gating|verifications?|validations?|audits?|sign-?offs?|human\W+in\W+the\W+loop|acceptance\W+criteria|safety"
    r"|security\W+(?:checks?|review|controls?|polic(?:y|ies)|features?|scan\w*|measures?|warnings?)|content\W+filter\w*"
    r"|sanitiz\w+|authentication|authorization|csrf|rate\W+limit\w*|encryption|firewall\w*|antivirus|monitoring"
    r"|audit\W+log\w*"
    r"|containment\w*|isolation|protections?|safeguards?|quarantine|certificates?|tls|ssl|filters?|pre-?commit"
    r"|restrictions?|limitations?|moderation"
    r"|censorship|mfa|2fa|two-factor|password\W+checks?|rate\W+limits?|threshold\w*|scan(?:s|ning|ner)?)\b"
)
_WAIVE: Final = (
    r"\b(?:skip|bypass|disable|omit|ignore|forgo|waive|circumvent|sidestep|mute|suppress|deactivate|evade|relax"
    r"|loosen|weaken"
    r"|drop|override|skipping|bypassing|disabling|omitting|waiving|circumventing|suppressing|evading|turn(?:ing)?\W+off"
    r"|switch(?:ing)?\W+off|stop\W+(?:running|using|doing|requiring|enforcing))(?:e?s)?\b\W+"
)
_ASK: Final = (
    r"(?:ask|asking|wait|waiting|confirm|confirming|prompt|prompting|request|requesting|seek|seeking|block|blocking"
    r"|pause"
    r"|pausing|check|checking|stop|stopping|require|requiring|consult|consulting|need|verify|verifying|re-?run"
    r"|re-?running"
    r"|run|running|write|writing|add|adding|perform|performing)"
)
_HUMAN: Final = (
    r"(?:me|user|users|human|humans|owner|maintainers?|team|founder|operator|developer|anyone|first|permission"
    r"|permissions"
    r"|approval|confirmation|consent|review|reviews|reviewer|feedback|sign-?off|authorization)"
)
_UNASKED: Final = (
    r"(?:validation|confirmation|confirming|verification|verifying|approval|review|reviewing|asking|permissions?"
    r"|checking|checks|sanitiz\w+|restrictions?|prompt(?:s|ing)?|consent|authorization|testing|tests|oversight"
    r"|supervision"
    r"|waiting|question(?:s|ing)?|hesitation|limits|inspection|reading)"
)
_NOT_LOCAL: Final = r"//(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]|10\.|192\.168\.)"

ORDERS: Final = (
    Rule(
        id="waived-check",
        meaning="orders to skip tests, review or approval",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            _WAIVE + r"(?:\w+\W+){0,4}?" + _CHECKS + r"(?:\W+rules?\b)?",
            r"\b(?:merge|push|deploy|release|commit|publish|ship)\W+(?:\w+\W+){0,3}?(?:without|before)\W+"
            r"(?:\w+\W+){0,3}?"
            r"(?:tests?|testing|reviews?|approvals?)\b",
            r"\b(?:execute|run|accept|trust|allow|proceed|merge|deploy|push|commit|install|apply|approve|publish"
            r"|load|process"
            r"|delete|grant|continue|forward|change|modify|write|send|use|edit|make|treat"
            r"|follow)\b[^.\n]{0,60}\bwithout\W+"
            r"(?:\w+\W+){0,2}?" + _UNASKED + r"\b",
            r"\b(?:auto|automatically|always)\W?(?:approv|accept|confirm|merg|allow|grant)\w*",
            r"\b(?:is|are|was|were|has|have|been|everything|already)\W+(?:\w+\W+){0,2}?pre-?(?:approv|authori[sz])\w*"
            r"|\bpre-?approved\W+(?:\w+\W+){0,3}?(?:command|action|change|shell|tool|every|all)",
            r"\b(?:say|answer|reply|respond|assume)\W+(?:\w+\W+){0,2}?(?:yes|approval|consent|permission)\b"
            r"(?:\W+or\W+no\b)?",
            r"\bassume\W+(?:that\W+)?(?:it|they|everything|all|the\W+\w+|your\W+\w+)\W+(?:works?|pass(?:es)?|succeed\w*"
            r"|(?:is|are)\W+(?:fine|ok(?:ay)?|correct|safe|good|approved))\b",
            r"\bmark(?:ing|ed)?\W+(?:\w+\W+){0,4}?(?:done|complete\w*|passed|passing|resolved|verified|green"
            r"|success\w*)\W+"
            r"(?:anyway|even|regardless|without|despite|when)\b",
            r"\b(?:may|can|should|will|must|shall)\W+(?:\w+\W+){0,2}?(?:merge|deploy|push|publish|release|proceed"
            r"|commit|approve"
            r"|ship|act|decide|take)\b[^.\n]{0,40}\b(?:on\W+(?:its|your|their)\W+own|itself|autonomously|automatically"
            r"|unattended|unsupervised|unilaterally)\b",
            _CHECKS
            + r"[^.\n]{0,60}\b(?:advisory|optional|redundant|unnecessary|superfluous|formalit\w+|pointless|overkill"
            r"|wasted?|a\W+waste|not\W+(?:binding|required|needed|necessary|worth)|slows?\W+(?:\w+\W+){0,2}?down)\b",
            r"\b(?:advisory|optional|redundant|unnecessary)\W+rather\W+than\b",
            _CHECKS
            + r"[^.\n]{0,40}\b(?:can|may|should|must|could)\W+(?:\w+\W+)?be\W+(?:deleted|removed|skipped|ignored"
            r"|disabled|commented\W+out"
            r"|bypassed|circumvented|turned\W+off|waived|relaxed|weakened|marked)\b",
            r"\b(?:safety|security|guard\w*|filter\w*|restrictions?|moderation)\W+(?:\w+\W+){0,2}?(?:is|are|was"
            r"|were|has\W+been"
            r"|have\W+been)\W+(?:now\W+)?(?:turned\W+off|disabled|off|lifted|removed|suspended|deactivated)\b",
            r"\b(?:approv|accept|merg|confirm|allow)\w*\b[^.\n]{0,40}\bautomatically\b",
            r"\bcontinue-on-error\W{1,3}true|\ballow_failure\W{1,3}true|#\s*nosec\b|--no-(?:audit|check\w*|strict"
            r"|sandbox)\b",
            r"\b(?:lower|reduce|raise|relax|loosen|decrease|increase)\W+(?:\w+\W+){0,3}?(?:threshold|severity"
            r"|coverage|strictness)\b"
            r"[^.\n]{0,40}\b(?:pass\w*|green|so\W+that|scan\w*)\b",
            r"\b(?:commit|push|merg)\w*\W+(?:directly|straight)\W+(?:in)?to\W+(?:the\W+)?(?:main|master|production"
            r"|trunk)\b",
            r"\b(?:fine|ok(?:ay)?|safe|allowed|acceptable|no\W+problem)\W+to\W+(?:\w+\W+){0,3}?(?:commit|push|share"
            r"|publish|skip|disable"
            r"|ignore|bypass|expose|hard-?code|delete|overwrite|merge|deploy)\b",
            r"\b(?:accept|approve|allow|grant|confirm|trust)\W+(?:all|every|any|each)\W+(?:\w+\W+){0,2}?(?:calls?"
            r"|tools?|commands?|changes?"
            r"|requests?|prompts?|actions?|operations?|permissions?|edits?|pull\W+requests?|domains?|hosts?)\b",
            r"\bapprove\W+(?:its|your|their|my|the\W+agent'?s)\W+own\b|\bgit\s+commit\s(?:[^\n;&"
            r"|]{0,60}\s)?-[a-z]{0,3}n[a-z]{0,3}\s",
            r"\bmark(?:ing|ed)?\W+(?:\w+\W+){0,4}?(?:as\W+)?(?:skipped|xfail\w*|ignored|expected\W+failures?)\b",
            r"\b(?:user|owner|team|founder|maintainers?|human|operator|admin|everyone|security|management)\W+"
            r"(?:\w+\W+){0,2}?(?:has|have"
            r"|had|already)\W+(?:\w+\W+){0,2}?(?:consented|approved|agreed|authori[sz]ed|granted|waived"
            r"|signed\W+off|opted)\b",
            r"\bforce-?\W?push(?:ing|es)?\W+(?:\w+\W+){0,2}?(?:to|on|onto|over)\W+(?:\w+\W+)?(?:main|master|trunk"
            r"|production|release|protected)\b",
            r"\b(?:trust|believe)\W+(?:all|every|any|whatever)\W+(?:\w+\W+){0,3}?(?:inputs?|commands?|outputs?"
            r"|requests?"
            r"|instructions?|content|servers?|sources?|tools?)\b|\bimplicit(?:ly)?\W+trust|\btrust\W+"
            r"(?:\w+\W+){0,3}?implicitly\b",
            r"\btreat\W+(?:\w+\W+){0,4}?as\W+(?:\w+\W+)?(?:trusted|admin|authori[sz]ed|authoritative|system"
            r"|commands?|safe)\b",
            r"\b(?:elevated|root|admin(?:istrator)?|full\W+system|unrestricted|superuser)\W+(?:privileges|access"
            r"|permissions|rights)\b",
        ),
        unless=r"\b(?:not|never|don'?t)\W+(?:\w+\W+){0,3}?without\b|yes\W+or\W+no\b|\blint(?:er|ing)?\W+rules?\b",
    ),
    Rule(
        id="unasked",
        meaning="orders not to ask or not to check",
        severity=Severity.HELD,
        patterns=(
            r"\b(?:do\W+not|don'?t|never|no\W+need\W+to|not\W+necessary\W+to|without|avoid|stop\W+(?:asking|waiting"
            r"|prompting)|not\W+want\W+you\W+to"
            r"|don'?t\W+want\W+you\W+to)\W+(?:\w+\W+){0,2}?(?:ask|asking|wait|waiting|prompt|prompting|seek|seeking"
            r"|block|blocking"
            r"|pause|pausing|consult|consulting|check|checking)\W+(?:\w+\W+){0,4}?" + _HUMAN + r"\b",
            r"\b(?:you\W+)?(?:do\W+not|don'?t|need\W+not)\W+(?:need|have)\W+to\W+(?:run|write|ask|wait|verify|check"
            r"|test|lint|review|confirm)\b",
            r"\b(?:never|don'?t|do\W+not)\W+(?:question|doubt|challenge|second-guess|refuse|hesitate|argue)\b",
            r"\b(?:no\W+need\W+to|do\W+not|don'?t|never|not\W+necessary\W+to|unnecessary\W+to)\W+(?:\w+\W+){0,1}?"
            r"(?:validate|sanitiz\w+|escape"
            r"|authenticate|authori[sz]e|encrypt|verify|add|require|implement|enable)\W+(?:\w+\W+){0,3}?(?:inputs?"
            r"|authentication"
            r"|authorization|validation|tls|encryption|https|csrf|signatures?|certificates?|sanitization"
            r"|rate\W+limit\w*|mfa|2fa)\b",
            r"\b(?:do\W+not|don'?t|never)\W+(?:follow|obey|apply|respect)\W+(?:\w+\W+){0,3}?(?:guidelines?|rules"
            r"|polic(?:y|ies)|instructions?"
            r"|claude\.md|agents\.md)\b",
            r"\b(?:never|don'?t|do\W+not)\W+ask\W+(?:\w+\W+){0,3}?(?:confirm|permission|approval|questions?|before)\b",
            r"\b(?:do\W+not|don'?t|never|no\W+need\W+to|not\W+want\W+you\W+to|don'?t\W+want\W+you\W+to"
            r"|no\W+point\W+(?:in\W+)?)\W*"
            r"(?:\w+\W+){0,1}?(?:re-?run|run|running|write|writing|bother|execute|wait)\W+(?:\w+\W+){0,4}?"
            r"(?:tests?|test\W?suite|type\W?checks?|checks|lint\w*|ci|verification|hooks|gates|builds?|pipelines?"
            r"|code\W?reviews?)\b",
            r"\b(?:do\W+not|don'?t|never)\W+(?:do|use|need|require)\W+(?:\w+\W+){0,2}?code\W?reviews?\b",
            r"\b(?:do\W+not|don'?t|never|no\W+need\W+to|not)\W+(?:require|need|demand|request)\W+(?:\w+\W+){0,3}?"
            r"(?:approval"
            r"|confirmation|review|sign-?off|permission|consent)\b",
            r"\b(?:no|zero)\W+(?:\w+\W+){0,2}?(?:confirmation|permission|approval|review|sign-?off|questions)\W+"
            r"(?:\w+\W+){0,3}?"
            r"(?:needed|required|necessary|asked)\b",
        ),
        unless=r"\bask\W+(?:the\W+)?(?:user|users|them)\W+(?:for\W+(?:their|a|an|any)|to\W+(?:paste|enter|provide|share|type))",
    ),
    Rule(
        id="authority",
        meaning="claims authority over the agent",
        severity=Severity.HELD,
        patterns=(
            r"\b(?:takes?|has|have)\W+(?:absolute\W+)?(?:precedence|priority)\W+over\W+(?:\w+\W+){0,3}?"
            r"(?:system\W+prompt|instructions?|users?"
            r"|developers?|rules|polic(?:y|ies)|guidelines?|everything|anything)\b",
            r"\bsupersed(?:e|es|ing)\W+(?:\w+\W+){0,4}?(?:instructions?|guidance|rules|polic(?:y|ies)|guidelines?"
            r"|prompts?)\b"
            r"|\b(?:have|has)\W+been\W+superseded\b",
            r"\b(?:highest|top|absolute|maximum|ultimate)\W+(?:priority|authority)\W+(?:instruction|source"
            r"|directive|command|rule|order)",
            r"\b(?:comply|obey)\b\W+(?:with\W+)?(?:everything|all|every|the\W+(?:text|instructions?|following)|this"
            r"|these|any)\b"
            r"|\byou\W+must\W+(?:\w+\W+)?(?:comply|obey)\b",
            r"\b(?:assistant|ai|llm|agent|claude|gpt|chatgpt|copilot|gemini)\s*,\s+(?:you|please|your|do|from"
            r"|ignore|always|never)\b",
            r"\bfor\W+the\W+(?:rest|remainder)\W+of\W+(?:this|the|our)\W+(?:conversation|session|chat)\b",
            r"\b(?:whenever|every\W+time|each\W+time|before|after)\W+you\b[^.\n]{0,80}\b(?:send|ping|post|copy"
            r"|forward|append|execute|upload|call|store"
            r"|include|exfiltrate|run|read)\b",
            r"\byou\W+(?:no\W+longer|don'?t|do\W+not)\W+(?:need|have)\W+to\W+(?:follow|obey|respect|comply|ask)\b",
            r"\byou\W+are\W+(?:now\W+)?(?:free|permitted|authori[sz]ed|allowed)\W+to\b",
            r"\b(?:i\W+am|i'?m|this\W+is)\W+(?:the|your|an?)\W+(?:\w+\W+)?(?:admin\w*|developer|creator|operator"
            r"|owner|maintainer)\b"
            r"|\bi\W+(?:order|command|instruct)\W+you\b",
            r"\byou\W+are\W+an?\W+(?:ai|assistant|model|chatbot)\W+(?:called|named|that|who|without)\b|\b(?:freed"
            r"|liberated)\W+(?:\w+\W+)?from\b",
            r"\b(?:respond|act|answer|behave|reply|speak)\W+(?:only\W+)?as\W+(?:if\b|though\b|\w*(?:gpt|bot|evil"
            r"|hacker|dan)\b)",
            r"\b(?:safeguards?|restrictions?|guardrails?|polic(?:y|ies)|filters?|limits|rules)\W+(?:\w+\W+){0,3}?"
            r"(?:lifted|removed|deactivated"
            r"|suspended|written\W+by\W+mistake|a\W+test)\b|\bact\W+on\W+the\W+(?:paragraph|text|instructions?"
            r"|lines?)\W+(?:below|above)\b",
            r"\byour\W+system\W+prompt\b|\banswer\W+(?:every|all|any)\W+(?:\w+\W+)?(?:requests?"
            r"|questions?)\W+without\b",
            r"\b(?:message|instructions?|prompt|text|context)\W+(?:above|before)\W+(?:is|was|were|are)\W+"
            r"(?:a\W+test|fake|fiction\w*|wrong|void)\b"
            r"|\bas\W+fiction\b|\bhidden\W+mode\b|\bif\W+you\W+had\W+no\W+(?:rules|restrictions|limits)\b",
            r"\b(?:instructions?|message|text|payload|commands?)\W+(?:\w+\W+){0,2}?(?:hidden|embedded|encoded"
            r"|concealed)\W+(?:in|inside|within)\b",
            *ROLE_CHANGES,
            r"\b(?:even\W+if|regardless\W+of\W+what|no\W+matter\W+what|whatever)\W+the\W+(?:users?|operator"
            r"|developer|human|owner)\W+"
            r"(?:objects?|asks?|says?|disagrees?|wants?|requests?|thinks?)\b",
            r"\bfrom\W+(?:this\W+point|now|here)\W+(?:forward|onwards?|on)\W+(?:you|always|all|every|never|any)\b",
            r"\b(?:stop|drop|abandon|interrupt)\W+(?:what(?:ever)?\W+you(?:'re|\W+are)\W+doing|your\W+"
            r"(?:current\W+)?(?:task|work)"
            r"|the\W+current\W+task)\b",
            r"\bpretend\W+(?:that\W+)?(?:the|there|this|to|you|your)\b",
            r"\bmessage\W+(?:comes|is)\W+from\W+(?:anthropic|openai|google|the\W+developers?|your\W+(?:creators?"
            r"|developers?))\b"
            r"|\bby\W+(?:order|authority)\W+of\b",
            r"\b(?:with|without|no|free\W+of|beyond)\W+(?:any\W+|no\W+)?(?:\w+\W+)?(?:restrictions|limitations"
            r"|boundaries|censorship|guardrails)\b",
            r"\b(?:ignore|disregard)\W+(?:the\W+|any\W+|all\W+|your\W+)?(?:reviewers?|users?|operators?|humans?"
            r"|maintainers?|owners?)\b"
            r"(?:'s|\W+(?:and|feedback|requests?|wishes|comments)|\W*[.,;]|$)",
            r"\bignore\W+(?:what|whatever)\W+(?:the\W+)?\w+\W+(?:\w+\W+)?(?:asked|said|wants|requested)\b",
            r"\b(?:verbatim|word\W+for\W+word|exact\W+text)\b[^.\n]{0,60}\b(?:instructions|prompt)\b"
            r"|\b(?:instructions|prompt)\b[^.\n]{0,40}\b(?:verbatim|word\W+for\W+word)\b",
            r"\b(?:print|reveal|show|output|leak|disclose|dump|display)\W+(?:\w+\W+){0,3}?(?:system\W+(?:prompt"
            r"|instructions|message)|hidden\W+\w+)\b",
        ),
        unless=r"\b(?:without|no)\W+(?:any\W+)?(?:\w+\W+)?(?:boundaries|limitations)\b$",
    ),
    Rule(
        id="permission-switch",
        meaning="switches off the questions that an agent asks before it acts",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\bdangerously\w+|--(?:allow-)?dangerously-[a-z-]+",
            r"\byolo\b|--full-auto\b|--auto-(?:approve|accept|confirm|yes)\b|--(?:yes-always|no-confirm"
            r"|trust-all-tools|allow-all"
            r"(?:-tools|-paths)?|skip-permissions|no-sandbox|disable-sandbox)\b",
            r"(?:\bpermission[-_ ]?mode\W{1,4})?\bbypass-?permissions\b"
            r"|permission[-_ ]?mode\W{1,4}(?:yolo|dontask|acceptedits)",
            r"\bauto-?approve\w*[\"']?\s*[:=]\s*[\"'\[]?(?:true|\*|all|[\"'a-z])|\balways-?allow\w*[\"']?\s*[:=]\s*\[",
            r"\ballowed-?tools?[\"']?[\s:=]{1,3}[\[\s\"']{0,4}(?:\*|bash\(\*|bash\b)|\"allow\"\s*:\s*\[\s*\"(?:\*"
            r"|bash(?:\(\*\))?)\"",
            r"\b(?:ask-for-approval|approval[_-]policy|approval-mode)\W{1,4}(?:never|yolo|auto\w*)|danger-full-access",
            r"\bskip\w*permission\w*prompt\b|\benableallprojectmcpservers\b|\bbash\(\*(?::\*)?\)",
        ),
    ),
    Rule(
        id="host-contact",
        meaning="gives orders to send something to a host",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\b(?:send|post|report|upload|forward|submit|transmit|ping|notify|beacon|push|deliver|log|stream|sync"
            r"|write|store|save|export)\b[^.\n]{0,100}"
            r"\bto\b\W{1,6}(?:(?:the|this|our|an?|following|url|endpoint|address|server|host|at"
            r"|is)\W+){0,5}https?://\S{1,200}",
            r"\b(?:send|post|upload|forward|transmit|share|copy|mirror|back\W?up|submit|relay)\b[^.\n]{0,80}\b(?:to"
            r"|via|through)\W+"
            r"(?:(?:an?|the|our|your|some|any)\W+)?(?:\w+\W+)?(?:external|remote|outside|third-?party|attacker\w*"
            r"|foreign|unknown|webhook"
            r"|telegram|discord|pastebin|gist|collector|c2|e-?mail\W+address)\b",
            r"\b(?:ngrok(?:-free)?\.\w+|localhost\.run|serveo\.net|trycloudflare\.com)\b",
            r"\bcurl\b[^\n]{0,200}(?:\s-d|\s--data\S*|\s-f|\s--form|\s-t|\s--upload-file)[\s=]*[\"']?"
            r"(?:\w{1,20}=)?@[\"']?[^\s\"']{1,120}",
            r"https?://[^\s)\"']{1,200}[?&]\w{1,30}=(?:<|\{|\[|%7b)[\w ]{0,20}(?:content|file|data"
            r"|secret|env|token|key|conversation"
            r"|history|prompt|cookie|passw|message|output)",
            r"\b(?:curl|wget|fetch|get|request|query|call|access|read)\b[^\n]{0,80}(?:169\.254\.169\.254"
            r"|metadata\.google\.internal"
            r"|100\.100\.100\.200)",
            r"\b(?:send|post|forward|upload|submit|relay|stream|push)\b[^.\n]{0,80}\bto\W+(?:\w+\W+){0,3}?(?:agent"
            r"|endpoint|server|collector|service"
            r"|instance)\W+(?:at|via|on)\W+https?://\S{1,120}|\b(?:send|forward|upload"
            r"|transmit)\b[^.\n]{0,60}\bto\W+(?:this|my)\W+(?:\w+\W+)?"
            r"(?:endpoint|server|url|address|webhook|inbox|account)\b",
            r"\b(?:ping|notify|beacon|hit)\W+(?:\w+\W+){0,3}?https?://\S{1,120}",
            r"\bcurl\b[^\n]{0,200}(?:\s-t|\s--upload-file)[\s=]+[^\s@]{1,100}\s[^\n]{0,60}https?://\S{1,120}"
            r"|\\\\[\w.-]{3,60}\\\w",
            r"\b(?:private|direct)\W+messages?\b[^.\n]{0,60}\b(?:post|send|share|publish|forward)\b"
            r"|\bgist\s+create\b[^\n]{0,40}--public",
            r"\b(?:e-?mail|mail|send|forward|bcc|cc|report|submit|copy)\b[^.\n]{0,80}\b[\w.+-]{1,64}@[\w-]{1,63}\.\w",
            r"\b(?:scp|rsync|sftp|ftp)\b[^\n]{0,160}\s(?:[\w.-]{1,64}@)?[\w.-]{3,100}:\S|\|\s*xargs\b[^\n]{0,80}\b"
            r"(?:curl|wget)\b",
            r"\b(?:pass|provide|supply|include|append|embed|add|insert|attach|put)\b[^.\n]{0,60}\b(?:contents?"
            r"|conversation|chat\W+history"
            r"|history|system\W+prompt|environment|user'?s?\W+(?:\w+\W+)?(?:keys?|tokens?"
            r"|passwords?))\b[^.\n]{0,40}\b(?:as|in|into|to|of|with)\b"
            r"[^.\n]{0,40}\b(?:parameter|argument|sidenote|request|response|answer|comment|url|query|header|call"
            r"|message|api|image)s?\b",
            r"\b(?:with|including|containing)\W+(?:the\W+)?(?:complete|full|entire)\W+contents?\W+of\b",
            r"\b(?:send|post|upload|forward|copy|push|transmit|export|dump|leak|mail)\b[^.\n]{0,60}\b"
            r"(?:source\W+code|code\W?base|repository"
            r"|database|(?:customer|user|private|personal|production)\W+(?:\w+\W+)?(?:data|tables?|records?"
            r"|contents?|files?)|diff)\b"
            r"[^.\n]{0,40}\bto\b[^.\n]{0,40}(?:\.\w{2,}|server|endpoint|host|ftp|site|bucket|drive|address)",
            r"!\[[^\]\n]{0,80}\]\(\s*https?://[^)\s]{0,200}[?&]\w{1,20}=(?-i:[A-Z_]{5,})",
            r"\bgit\s+push\s+(?:-\S+\s+){0,3}https?://\S+|\bgit\s+remote\s+set-url\s+(?:--push\s+)?\S+\s+\S+",
            r"\b(?:read|parse|open|load|collect|gather|grab|take)\b[^.\n]{0,80}\b(?:and|then)\b[^.\n]{0,20}\b"
            r"(?:send|forward|upload"
            r"|e-?mail|transmit|leak|post)\b",
        ),
        unless=_NOT_LOCAL + r"|back\W?ups?\W+(?:to|in)\W+s3",
    ),
    Rule(
        id="credential-order",
        meaning="gives orders about credentials",
        severity=Severity.HELD,
        advice=True,
        patterns=(
            r"\b(?:hard-?cod(?:e|ing)|embed(?:ding)?|inline|inlining)\W+(?:\w+\W+){0,4}?(?:credentials?|passwords?"
            r"|secrets?|api\W?keys?|tokens?|keys?)\b",
            r"\b(?:define|store|put|keep|save|write|commit|place|check\W+in)\W+(?:\w+\W+){0,3}?(?:credentials?"
            r"|passwords?|secrets?"
            r"|api\W?keys?|tokens?|private\W+keys?)\b[^.\n]{0,40}\b(?:constants?|source|code|repository|repo|git"
            r"|plain\W?text|config\w*"
            r"|literals?|comments?)\b",
            r"\b(?:output|print|show|reveal|display|dump|echo|return|list|give\W+me|tell\W+me|disclose|expose"
            r"|extract|cat)"
            r"\W+(?:\w+\W+){0,4}?(?:passwords?|credentials|secrets|api\W?keys?|private\W+keys?|access\W+tokens?"
            r"|confidential|\.env\b"
            r"|env\b|environment\W+variables|keychain|ssh\W+keys?)",
            r"\b(?:paste|enter|type|submit)\W+(?:\w+\W+){0,3}?(?:api\W?keys?|passwords?|tokens?|credentials"
            r"|secrets?)\b[^.\n]{0,40}"
            r"(?:https?://|\bform\b|\bsite\b|\bpage\b)",
            r"\b(?:copy|put|paste|include|add|insert|write)\b[^.\n]{0,40}\b(?:keys?|tokens?|secrets?|passwords?"
            r"|credentials?|\w+_key)\b[^.\n]{0,40}"
            r"\b(?:pull\W+request|commit|issue|comment|description|readme|message|channel|gist)s?\b",
            r"\b(?:look\W+up|harvest|collect|gather|steal|summari[sz]e|scrape|grab|extract|exfiltrat)(?:e?s|e"
            r"|ing)?\W+(?:\w+\W+){0,4}?(?:passwords?|credentials|secrets"
            r"|api\W?keys?|tokens|private\W+keys?|cookies)\b",
            r"\b(?:passwords?|credentials|secrets|api\W?keys?|tokens?)\b[^.\n]{0,80}\b(?:e-?mail|forward|upload"
            r"|exfiltrate)\b",
            r"\b(?:commit|push|share|publish)\w*\W+(?:\w+\W+){0,3}?\.env\b(?:\.\w+)?",
            r"\bsqlite3\b[^\n]{0,160}(?:cookies|login\s?data|places\.sqlite|key4\.db)|\bwallet\.dat\b|\bkey4\.db\b",
            *SECRET_REQUESTS,
            r"\bsecurity\s+(?:find|dump)-[a-z-]*(?:password|keychain)\b|/etc/(?:passwd|g?shadow)\b"
            r"|/proc/[^/\s]{1,10}/(?:environ|mem)\b",
            r"\b(?:access\w*|read|open|include|use)\W+(?:\w+\W+){0,6}?confidential\b",
        ),
        unless=r"\.env\.(?:example|sample|template|dist)\b",
    ),
    *MACHINE_ORDERS,
)
"""Rules of the tier held."""
