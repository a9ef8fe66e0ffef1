"""Rules for advice that makes code insecure; they flag a text for a reviewer."""

from __future__ import annotations

from typing import Final

from core.records.suspicions import Severity
from core.scanning.rule import Rule

INSECURE: Final = (
    Rule(
        id="insecure-code",
        meaning="advises code that is known to be insecure",
        severity=Severity.FLAGGED,
        advice=True,
        patterns=(
            r"\b(?:md5|sha-?1|des|rc4|ecb)\b[^.\n]{0,60}\b(?:password|token|credential|signature|secret|encrypt\w*)s?\b",
            r"\bshell\s*=\s*true\b|\bos\.system\s*\(|\bpickle\.loads?\s*\(|\byaml\.load\s*\((?:[^)\n]{0,60}unsafe)?",
            r"\b(?:eval|exec|deserializ\w*|unpickl\w*)\W+(?:\w+\W+){0,3}?(?:user|untrusted|request|external|remote|response)\b",
            r"\b(?:return|include|expose|show|send|print)\W+(?:\w+\W+){0,4}?(?:stack\W?traces?|tracebacks?|local\W+variables?)\b",
            r"\bdebug\s*=\s*true\b|access-control-allow-origin\W{1,4}\*|\bcors\b[^.\n]{0,40}\W\*",
            r"\b(?:concatenat\w+|interpolat\w+|f-?strings?)\b[^.\n]{0,60}\b(?:sql|quer(?:y|ies))\b"
            r"|\b(?:sql|quer(?:y|ies))\b[^.\n]{0,60}\b(?:concatenat\w+|interpolat\w+|f-?strings?)\b",
            r"\bmath\.random\b[^.\n]{0,60}\b(?:token|password|secret|session|key)s?\b",
            r"\balg\W{1,6}none\b|\b(?:signature|integrity|hash|certificate)\W+(?:\w+\W+)?verification\W+(?:off|disabled)\b",
            r"\bwithout\W+(?:\w+\W+){0,2}?(?:integrity|filtering|escaping|sanitiz\w+|encrypt\w+)\b",
            r"\blog[^\w,;.]\W*(?:\w+\W+){0,3}?(?:passwords?|secrets?|tokens?|credentials|api\W+keys?)\b",
            r"\b(?:before|without)\W+(?:\w+\W+)?authenticat(?:ion|ing)\b",
        ),
    ),
)
