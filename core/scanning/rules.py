r"""What is looked for in texts that agents will read, as data.

RE2 has no look-around: what a rule must not take is told by `unless`. `\W+(?:\w+\W+){0,3}?` is a gap of few words.
All patterns are searched without case in text that is normalised, see `core.scanning.normal`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Rule(Struct, frozen=True, kw_only=True):
    """One kind of thing that a text might do to an agent.

    Attributes:
        id: Its name, for files and JSON.
        meaning: What the text does, in words that follow "this text".
        critical: Whether it keeps a text out of every context; else it only gets a mark.
        patterns: In RE2 syntax; any of them.
        unless: What is matched and matches this too is meant otherwise.
        advice: A text that warns of the thing does no harm: "never use --no-verify".
    """

    id: str
    meaning: str
    critical: bool
    patterns: tuple[str, ...]
    unless: str = ""
    advice: bool = False


_NO: Final = r"\b(?:do not|don'?t|never|without|must not|should not|shall not)\W+(?:ever\W+)?"
_PERSON: Final = (
    r"(?:users?|operators?|reviewers?|humans?|maintainers?|owners?|anyone|anybody|persons?|people|supervisors?|team)"
)
_ITSELF: Final = r"(?:pattern|text|rule|playbook|entry|advice|instruction|note|paragraph|lesson)s?"
_SHELL: Final = (
    r"[({\s\"']{0,3}(?:(?:sudo|doas|env|command|exec|nohup|time|xargs|busybox)\s+(?:-\S+\s+){0,3}){0,3}(?:\w+=\S*\s+){0,3}"
    r"(?:/?\w+/){0,3}(?:(?:(?:ba|z|da|k|fi)?sh|perl|ruby|node|php|iex|invoke-expression)\b|\$\{?shell\b"
    r"|python[\d.]*(?:\s*(?:[^\w\s.-]|$)|\s+(?:[^\s-]|-(?:[^m]|$))))"
)
_FETCH: Final = r"\b(?:curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod)\b"
_TO_FILE: Final = r"(?:\s-[a-z]{0,8}o\s*|\s--output[\s=]+|\s-outfile\s+|>\s*|\bwget\s)[\"']?(?:[^/\s&|]|/[^d])"
"""Into a file; `> /dev/null` is none."""
_NEXT: Final = r"(?:[;&\n]|\bthen\b|\band\b)\s*(?:sudo\s+)?"
"""Between two commands."""
_WITHIN: Final = r"(?:[^.\n]|\.\S)"
"""What stands inside a sentence: names of files and hosts have dots too."""
_SECRET_FILE: Final = (
    r"(?:\.ssh/id_\w+|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|\.aws/credentials|/etc/(?:shadow|sudoers)|\.netrc\b|\.pgpass\b"
    r"|\.git-credentials\b|\.kube/config\b|\.docker/config\.json|\.gnupg\b|\.config/gcloud)"
)
_SECRETS: Final = (
    r"(?:\.env\b|env(?:ironment)? var(?:iable)?s|api[ _-]?keys?|credentials|secrets|passwords?|private keys?|ssh keys?"
    r"|(?:access|auth|session|api|bearer)[ _-]?tokens?)"
)
_TAKE: Final = (
    r"\b(?:cat|print|copy|cp|paste|send|upload|include|share|post|dump|echo|scp|base64|tar|zip|less|head|tail|grep"
    r"|collect|attach|steal|grab|gather)\b"
)
_LOOK: Final = r"\b(?:read|open|show|load|add|look)\b"
_GIVE: Final = (
    r"\b(?:send|upload|post|share|attach|include|paste|publish|forward|transmit|leak|exfiltrate|mail|collect)\b"
)
_CHECKS: Final = (
    r"(?:pre-?commit|commit hooks?|git hooks?|hooks|branch protection|code review|guard-?rails?|safety "
    r"(?:checks?|rules?)"
    r"|security (?:checks?|scan(?:ner|s)?)|sandbox(?:ing)?|signature (?:check|verification)s?"
    r"|(?:certificate|cert|ssl|tls)(?: \w+)? (?:validation|verification|checks?)|quarantine|permission "
    r"(?:checks?|prompts?))"
)
_TESTS: Final = r"(?:tests?|assertions?|asserts?|specs?|checks?|test cases?|expectations?)"

RULES: Final = (
    Rule(
        id="override",
        meaning="tells the agent to set its own instructions aside",
        critical=True,
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
        critical=True,
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
        critical=True,
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
        critical=True,
        patterns=(
            r"#{2,}\s*cross-loop learning context",
            r"#{2,}\s*(?:error patterns|success patterns|anti-patterns to avoid|code templates)\b",
            r"\(\d{1,3}% success, \d+ uses?\)",
        ),
    ),
    Rule(
        id="pipe-to-shell",
        meaning="runs what it downloads",
        critical=True,
        advice=True,
        patterns=(
            _FETCH + r"[^\n|]{0,300}?\|\s*(?:[^\n|]{1,100}\|\s*){0,4}?" + _SHELL,
            r"\b(?:bash|sh|zsh|source|eval)\b[^\n]{0,12}(?:[<$]\(|`)\s*(?:curl|wget)\b",
            _FETCH + r"[^\n|]{0,300}" + _TO_FILE + r"[^|]{0,200}" + _NEXT + r"(?:(?:ba|z|da)?sh|source|\.)\s+[^\s-]",
            _FETCH
            + r"[^\n|]{0,300}"
            + _TO_FILE
            + r"[^|]{0,200}"
            + _NEXT
            + r"chmod\s+\S+\s+[^\n;&|]{1,100}"
            + _NEXT
            + r"(?:\./|/tmp/|~/|\$)",
            r"\b(?:iex|invoke-expression)\b[^\n]{0,60}\b(?:iwr|irm|invoke-webrequest|invoke-restmethod|curl|wget"
            r"|downloadstring|net\.webclient)\b",
            r"\b(?:exec|eval|os\.system|compile)\s*\([^\n]{0,120}\b(?:urlopen|urlretrieve|requests\.get|httpx\.get"
            r"|fetch)\b",
            r"\s-c\s+[\"'\\]{0,3}\$\(\s*(?:curl|wget)\b",
            r"\bpip(?:e|ing|ed)\b[^.\n]{0,60}\bto\W+(?:\w+\W+){0,2}?(?:shell|bash|sh)\b",
            r"\b(?:os\.system|subprocess\.\w+|exec|eval)\([^)\n]{0,80}\b(?:curl|wget)\b",
        ),
    ),
    Rule(
        id="encoded-code",
        meaning="runs code that it hides in another encoding",
        critical=True,
        advice=True,
        patterns=(
            r"\bbase64\s+(?:-d|-di|--decode)\b[^\n]{0,80}\|\s*" + _SHELL,
            r"\bxxd\s+-r\b[^\n]{0,80}\|\s*" + _SHELL,
            r"\b(?:eval|exec|function|settimeout|iex|os\.system|popen|invoke-expression)\s*\(?[^\n]{0,40}"
            r"(?:atob|b64decode|base64_decode|frombase64string|fromcharcode|unhexlify|bytes\.fromhex)",
            r"\bpowershell\b[^\n]{0,60}\s-e(?:nc\w*)?\s+[a-z0-9+/=]{20,}",
        ),
    ),
    Rule(
        id="package-index",
        meaning="takes packages from a place of its own",
        critical=True,
        advice=True,
        patterns=(
            r"--(?:extra-)?index-url[\s=]+\S{1,200}",
            r"\bregistry\b[\s\"']{0,3}(?:=|to|:|at|is)[\s\"']{0,3}https?://\S{1,200}",
            r"--registry[\s=]+\S{1,200}",
            r"\b(?:pip_(?:extra_)?index_url|goproxy|npm_config_registry)\s*=\s*\S{1,200}",
            r"--trusted-host\s+\S{1,200}",
        ),
        unless=r"//(?:pypi\.org|test\.pypi\.org|registry\.npmjs\.org|registry\.yarnpkg\.com|proxy\.golang\.org"
        r"|localhost|127\.0\.0\.1)(?:[:/\"'\s,]|$)|[\s=][\"']?[$<{]",
    ),
    Rule(
        id="secrets",
        meaning="takes secrets to where others can read them",
        critical=True,
        advice=True,
        patterns=(
            _TAKE + r"[^\n]{0,60}" + _SECRET_FILE,
            _LOOK
            + r"[^\n]{0,60}"
            + _SECRET_FILE
            + r"[^\n]{0,80}\b(?:send|upload|post|share|attach|include|paste|publish|forward|leak|mail|copy|print|write"
            r"|log|echo|report|repeat)\b",
            _GIVE + _WITHIN + r"{0,60}" + _SECRETS + _WITHIN + r"{0,40}\bto\W+https?://\S{1,100}",
            _GIVE + r"[^.\n]{0,50}" + _SECRETS + r"[^.\n]{0,40}\b(?:to|in|into|with|on)\W+(?:\w+\W+){0,4}?"
            r"(?:server|report|reports|logs?|commit|reflections?|issues?|url|endpoint|channel|webhook|comments?"
            r"|pull request|workspace|results?|patterns?)\b",
            _GIVE + r"[^.\n]{0,30}\.env\b[^.\n]{0,10}\bfile\b",
            r"\b(?:printenv|env|set)\s*\|\s*(?:curl|nc|base64|tee)\b",
        ),
    ),
    Rule(
        id="exfiltration",
        meaning="sends what it finds to another machine",
        critical=True,
        advice=True,
        patterns=(
            r"\bcurl\b[^\n]{0,200}(?:-d|--data\S*|-f|--form|-t|--upload-file)[\s=]*[\"']?\w{0,20}=?@\S*"
            r"(?:secret|\.env|key|cred|id_|token|passwd|\.ssh|\.aws|\.git)",
            r"\b(?:tar|cat|base64|zip|gzip|xxd|find|env|printenv|git)\b[^\n]{0,160}\|\s*curl\b[^\n]{0,200}"
            r"(?:-d|--data\S*|-f|--form|-t|--upload-file)[\s=]*[\"']?(?:\w{1,20}=)?@?-(?:[\s\"']|$)[^\n|;]{0,100}",
            r"\b(?:curl|wget)\b[^\n]{0,200}(?:\$\(|`)\s*(?:cat|env|printenv|whoami|hostname|base64|tar|git)\b",
            r"\b(?:webhook\.site|requestbin\.\w+|pipedream\.net|burpcollaborator\.net|oast\.\w+|interact\.sh"
            r"|requestcatcher\.com|transfer\.sh|0x0\.st)\b",
            r"!\[[^\]\n]{0,80}\]\(\s*https?://[^)\s]{0,200}[?&][^)\s=]{1,30}=(?:[{$<]|%7b)",
            r"[?&]\w{1,20}=[\"'`]?\s*(?:\+|\$\{)\s*(?:process\.env|os\.environ|document\.cookie|localstorage)",
            r"\b(?:nc|ncat|netcat)\s+(?:-\w+\s+){0,4}[\w.-]{3,100}\s+\d{2,5}\b",
            r"\$\((?:hostname|whoami|id|env|cat [^)\n]{1,80})\)\.[\w-]{1,60}\.",
            r"\b(?:all|every|each|any)\b[^.\n]{0,60}\bto\W+[\w.+-]{1,64}@[\w-]{1,63}\.\w",
            r"\b(?:post|send|upload|copy|forward|transmit|mirror)\b"
            + _WITHIN
            + r"{0,60}\b(?:diff|source|repository|code ?base"
            r"|contents?|files?|secrets?|keys?|cookies?|transcript|conversation)\b" + _WITHIN + r"{0,40}\bto\W+"
            r"(?:https?://\S{1,100}|an?\W+(?:external|remote|outside)\b)",
        ),
        unless=r"\b(?:nc|ncat|netcat)\s+-\w*z|//(?:localhost|127\.0\.0\.1)(?:[:/\s\"']|$)|\s(?:localhost|127\.0\.0\.1)\s",
    ),
    Rule(
        id="verification-off",
        meaning="switches a check off that protects the project",
        critical=True,
        advice=True,
        patterns=(
            r"(?:^|[\s\"'`(])--no-verify\b",
            r"--dangerously-[a-z-]+",
            r"\b(?:turn|switch)(?:ing|ed)?\W+(?:off\W+(?:\w+\W+){0,3}?"
            + _CHECKS
            + r"|(?:\w+\W+){0,3}?"
            + _CHECKS
            + r"\W+off\b)",
            r"\b(?:disabl(?:e|ing)|bypass(?:ing)?|skip(?:ping)?|circumvent(?:ing)?|deactivat(?:e|ing))\W+"
            r"(?:\w+\W+){0,3}?" + _CHECKS + r"\b",
            r"\bnode_tls_reject_unauthorized\s*=\s*[\"']?0",
            r"\bhusky\s*=\s*[\"']?0|\bhusky_skip_hooks\s*=\s*[\"']?1|core\.hookspath[\s=]+/dev/null",
            r"\bverify\s*=\s*false\b|\bstrict-ssl[\s=]+false\b|sslverify[\s=\"']+false"
            r"|rejectunauthorized[\s:\"']+false",
            r"insecureskipverify[\s:=]+true|stricthostkeychecking[\s=]+no\b",
            r"\bcurl\s(?:[^\n|;]{0,100}\s)?(?:--insecure|-k)\s",
        ),
    ),
    Rule(
        id="destructive",
        meaning="destroys data or history",
        critical=True,
        advice=True,
        patterns=(
            r"\brm\s+(?:-\S+\s+){0,3}-\w*[rf]\w*\s+(?:-\S+\s+){0,3}[\"']?"
            r"(?:/|~/?|\$\{?home\}?/?|/\*|\*|\.{1,2}/?|/(?:etc|usr|var|home|bin|lib|boot|root|opt)/?\*?)[\"']?"
            r"(?:[\s;&|)`]|$)",
            r"\bfind\s+[\"']?(?:/|~/?|\$\{?home\}?/?|/(?:etc|usr|var|home|bin|lib|boot|root|opt)/?)[\"']?\s[^\n;|]{0,120}"
            r"(?:-delete\b|-exec\s+rm\b)|\bfind\s+\.\s+-delete\b",
            r"--no-preserve-root|\bmkfs(?:\.\w+)?\s|\bdd\s+if=\S+\s+of=/dev/|>\s*/dev/sd[a-z]\b"
            r"|:\(\)\s*\{\s*:\|:&\s*\}",
            r"\bchmod\s+(?:-\S+\s+)*(?:0?777|a\+rwx)\s+/(?:\s|$)",
            r"\bgit\s+push\b[^\n;&|]{0,60}(?:\s-f|\s--force)\s+(?:\S+\s+)?(?:main|master|production)\b",
            r"\bgit\s+push\b[^\n;&|]{0,60}\b(?:main|master|production)\s+(?:-f|--force)(?:\s|$)",
            r"\bdrop\s+(?:database|schema)\s+(?:if\s+exists\s+)?[\w\"`]{0,20}prod",
        ),
    ),
    Rule(
        id="foothold",
        meaning="opens this machine to others, or makes it run their code later",
        critical=True,
        advice=True,
        patterns=(
            r"(?:>|\btee\b|\b(?:add|append|write|copy|put|insert)\b)[^\n]{0,200}\bauthorized_keys\b",
            r"\bgit\s+config\s+(?:-\S+\s+){0,3}--(?:global|system)\s+(?:-\S+\s+){0,3}"
            r"core\.(?:hookspath|sshcommand|fsmonitor)\b",
            r"\b(?:docker|podman|nerdctl)\s+(?:\w+\s+)?run\b[^\n]{0,200}(?:-v|--volume)[\s=]*[\"']?/:/",
            r"\b(?:docker|podman|nerdctl)\s+(?:\w+\s+)?run\b[^\n]{0,200}--mount[\s=][^\s]{0,80}(?:source|src)=/(?:,|\s|$)",
        ),
    ),
    Rule(
        id="test-gaming",
        meaning="makes tests pass without making the code right",
        critical=True,
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
        critical=True,
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
        critical=True,
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
        critical=True,
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
        critical=True,
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
        id="secret-path",
        meaning="names a file of secrets",
        critical=False,
        advice=True,
        patterns=(_SECRET_FILE,),
    ),
    Rule(
        id="risky-command",
        meaning="names a command that loses work",
        critical=False,
        advice=True,
        patterns=(
            r"\bgit\s+push\b[^\n;&|]{0,80}(?:\s-f|\s--force)(?:\s|$)",
            r"\bgit\s+clean\s+-\w*f\w*[dx]|\bgit\s+reset\s+--hard\b",
            r"\bdrop\s+(?:database|schema)\s+\w",
            r"\bdelete\s+from\s+[\w.\"`]+\s*(?:;|$)",
            r"\bchmod\s+(?:-\S+\s+)*0?777\b|\bsudo\s+rm\b",
            r"\b(?:docker|podman|nerdctl)\b[^\n]{0,200}--privileged\b|\|\s*crontab\s+-",
            r">>\s*[\"']?(?:~|\$\{?home\}?)/\.(?:bashrc|zshrc|profile|bash_profile|zprofile|zshenv)\b",
        ),
    ),
    Rule(
        id="foreign-download",
        meaning="takes files from a place where anybody can put them",
        critical=False,
        advice=True,
        patterns=(
            r"\b(?:pastebin\.com|paste\.ee|ngrok(?:-free)?\.(?:io|app)|file\.io|anonfiles\.com)\b",
            r"\b(?:pip[\d.]*|uv|npm|pnpm|yarn)\b[^\n|;]{0,60}\b(?:install|add|i)\b[^\n|;]{0,80}\s[\"']?"
            r"(?:\S{0,60}@\s?)?(?:git\+)?(?:https?|ssh|git)://",
            r"https?://\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b",
            r"!\[[^\]\n]{0,80}\]\(\s*https?://",
        ),
        unless=r"//(?:127\.0\.0\.1|0\.0\.0\.0|10\.|192\.168\.)",
    ),
    Rule(
        id="weak-check",
        meaning="weakens a check",
        critical=False,
        advice=True,
        patterns=(
            r"\b(?:test|pytest|jest|vitest|lint|check)\b[^\n|]{0,60}\|\|\s*true\b",
            r"\blower(?:ing)?\W+(?:\w+\W+){0,2}?coverage\W+threshold",
            r"\b(?:skip|xfail|ignore|mute)\W+(?:\w+\W+){0,2}?failing\W+tests?\b",
            r"\bskip(?:ping)?\W+(?:the\W+)?(?:review|reviews|approval)\b",
            r"\bauto-?approv\w*\b",
        ),
    ),
    Rule(
        id="personal-data",
        meaning="holds the address of a person",
        critical=False,
        patterns=(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,3}\.[a-z]{2,10}\b",),
        unless=r"@(?:[\w-]+\.)*(?:example|test|invalid|localhost)\b|noreply|^git@|@users\.",
    ),
)
"""Every rule, the gravest first."""

BIDI: Final = Rule(
    id="bidi", meaning="turns the direction of text, so that it reads otherwise than it is", critical=True, patterns=()
)
TAGS: Final = Rule(id="hidden-text", meaning="holds letters that nobody can see", critical=True, patterns=())
INVISIBLE: Final = Rule(id="invisible", meaning="holds invisible characters", critical=False, patterns=())
LOOKALIKE: Final = Rule(
    id="lookalike", meaning="mixes letters of other alphabets into words", critical=False, patterns=()
)
SECRET: Final = Rule(id="secret", meaning="holds what looks like a secret", critical=False, patterns=())
BROAD: Final = Rule(
    id="broad-trigger", meaning="has a trigger that fits nearly everything", critical=False, patterns=()
)
LONG: Final = Rule(id="unscanned", meaning="is too long to be looked at as a whole", critical=False, patterns=())
COUNTS: Final = Rule(id="counts", meaning="claims many uses of which nothing else tells", critical=False, patterns=())

MEANINGS: Final = {
    rule.id: rule.meaning for rule in (*RULES, BIDI, TAGS, INVISIBLE, LOOKALIKE, SECRET, BROAD, LONG, COUNTS)
}
"""What each rule means, by id."""
