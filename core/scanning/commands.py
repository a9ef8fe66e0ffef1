"""Rules for what a text would have an agent run, read or send, as data; see `core.scanning.rules`."""

from __future__ import annotations

from typing import Final

from core.records.suspicions import Severity
from core.scanning.rule import Rule

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

COMMANDS: Final = (
    Rule(
        id="pipe-to-shell",
        meaning="runs what it downloads",
        severity=Severity.BLOCKED,
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
        severity=Severity.BLOCKED,
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
        severity=Severity.BLOCKED,
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
        severity=Severity.BLOCKED,
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
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            r"\bcurl\b[^\n]{0,200}(?:-d|--data\S*|-f|--form|-t|--upload-file)[\s=]*[\"']?\w{0,20}=?@\S*"
            r"(?:secret|\.env|key|cred|id_|token|passwd|\.ssh|\.aws|\.git)",
            r"\b(?:tar|cat|base64|zip|gzip|xxd|find|env|printenv|git)\b[^\n]{0,160}\|\s*curl\b[^\n]{0,200}"
            r"(?:-d|--data\S*|-f|--form|-t|--upload-file)[\s=]*[\"']?(?:\w{1,20}=)?@?-(?:[\s\"']{1,3}\S{1,100}|$)",
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
        severity=Severity.BLOCKED,
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
        severity=Severity.BLOCKED,
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
        severity=Severity.BLOCKED,
        advice=True,
        patterns=(
            r"(?:>|\btee\b|\b(?:add|append|write|copy|put|insert)\b)[^\n]{0,200}\bauthorized_keys\b",
            r"\bgit\s+config\s+(?:-\S+\s+){0,3}--(?:global|system)\s+(?:-\S+\s+){0,3}"
            r"core\.(?:hookspath|sshcommand|fsmonitor)\b",
            r"\b(?:docker|podman|nerdctl)\s+(?:\w+\s+)?run\b[^\n]{0,200}(?:-v|--volume)[\s=]*[\"']?/:/",
            r"\b(?:docker|podman|nerdctl)\s+(?:\w+\s+)?run\b[^\n]{0,200}--mount[\s=][^\s]{0,80}(?:source|src)=/(?:,|\s|$)",
        ),
    ),
)
"""What harms."""

RISKS: Final = (
    Rule(
        id="secret-path",
        meaning="names a file of secrets",
        severity=Severity.FLAGGED,
        advice=True,
        patterns=(_SECRET_FILE,),
    ),
    Rule(
        id="risky-command",
        meaning="names a command that loses work",
        severity=Severity.FLAGGED,
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
        severity=Severity.FLAGGED,
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
)
"""What may have its reasons."""
