"""Secrets are masked in whatever is shown; what is none stays as it is."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.secrets import masked
from core.text import visible, visible_line

GITHUB = "ghp_" + "a1B2" * 9
AWS = "AKIA" + "Q7" * 8
SHOWN = "[secret: GitHub token, 40 characters]"
PIECES = [
    *(
        "token=",
        "password: ",
        '"',
        "'",
        " ",
        "\\",
        "https://u:p@h/",
        GITHUB,
        SHOWN,
        "curl -u a:b x",
        "Bearer abcdef0123456789",
    ),
    *(
        "-----BEGIN RSA PRIVATE KEY-----",
        "AKIA" + "Q7" * 8,
        "Cookie: a=b; c=d",
        "«secret»",
        "\ue000",
        "«\ue0000»",
        "x",
        "\n",
    ),
]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"git push with {GITHUB}", f"git push with {SHOWN}"),
        ("sk-ant-api03-" + "Ab1-" * 6, "[secret: Anthropic key, 37 characters]"),
        ("postgres://admin:s3cr3t@db/shop", "postgres://[secret: credentials, 12 characters]@db/shop"),
        ("DB_PASSWORD=hunter2", "DB_PASSWORD=[secret: password, 7 characters]"),
        ("-----BEGIN EC PRIVATE KEY-----\nAAAA", "[secret: private key, 35 characters]"),
    ],
)
def test_a_secret_is_shown_as_what_it_is_and_how_long(text: str, shown: str) -> None:
    assert masked(text) == visible(text) == visible_line(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "pat-error-null-check-015",
        "ralph-fix-auth-a1b2c3d4",
        "sk-learn-pipeline-with-random-forest",
        "task-sk-1234567890abcdef1234",
        "Refresh the access token once on 401",
        "const token = await getToken()",
        "password: string",
        "0" * 64,
        '"jsonwebtoken": "^9.0.2"',
        "secrets==1.0.2",
        "PWD=/home/user/src",
        "password: required|min:8",
        "if password == expected_password:",
        "tokens=1000/min",
        "pypi-publish-workflow-action",
        "Basic information2024",
        "token: pat-error-token-expired-003",
        "docker login -u me --password-stdin",
        "login form password reset",
        "redis-cli -a $REDIS_PW",
    ],
)
def test_ids_code_and_prose_stay(text: str) -> None:
    assert visible_line(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "docker login -u me -p {} registry.example",
        "sshpass -p {} ssh x",
        "redis-cli -h x -a {} ping",
        "ldapsearch -x -D cn=a -w {} -b dc",
        "openssl rsa -passin pass:{} -in k",
        "machine h login x password {}",
        "login x password {}",
        "ENV API_TOKEN {}",
        "setx API_TOKEN {}",
        '{{"name":"DB_PASSWORD","value":"{}"}}',
        r"[{{\"name\": \"DB_PASSWORD\", \"value\": \"{}\"}}]",
        "- name: DB_PASSWORD\n  value: {}",
        'ConvertTo-SecureString "{}" -AsPlainText',
        "curl -X POST 'https://x|y' -u {} z",
        r'"{{\"a\": \"export DB_PASSWORD={}\", \"b\": 1}}"',
        "send Basic {}",
    ],
)
def test_a_secret_is_masked_by_what_stands_before_it_and_nothing_else_is(text: str) -> None:
    secret = "YWxhbjpwYXNzMQ==" if "Basic" in text else "me:hunter22" if "-u {}" in text else "hunter22"
    before, after = text.format("\0").split("\0")
    shown = masked(text.format(secret))
    assert shown.startswith(f"{before}[secret: ") and shown.endswith(f" characters]{after}")


@pytest.mark.parametrize(
    "token",
    [
        "123456789:AA" + "x1Y" * 11,
        "SK" + "0123456789abcdef" * 2,
        "dop_v1_" + "0123456789abcdef" * 4,
        "hvs." + "a1B2" * 6,
        "dapi" + "0123456789abcdef" * 2,
        "shpat_" + "0123456789abcdef" * 2,
        "lin_api_" + "a1B2" * 10,
        "GOCSPX-" + "a1B2" * 7,
        "ya29." + "a1B2" * 10,
        "ATATT3" + "a1B2" * 10,
        "AGE-SECRET-KEY-1" + "QPZRY9X8" * 7,
    ],
)
def test_tokens_tell_by_their_beginning_what_they_are(token: str) -> None:
    assert token[12:] not in masked(f"use {token} there")


@pytest.mark.parametrize("piece", ["curl -u ", "mysql -p ", "://a@", 'curl "', 'password=\\"', "Cookie: a=b; "])
def test_the_worst_of_texts_costs_a_bounded_time(piece: str) -> None:
    text = piece * (250_000 // len(piece))
    begin = time.process_time()
    masked(text)
    assert time.process_time() - begin < 1.0


def test_half_a_secret_at_a_cut_is_masked_too() -> None:
    assert "a1B2" not in visible_line("x" * 30 + " " + GITHUB, 50)
    assert visible_line("x" * 30 + " " + GITHUB, 60).endswith("…")


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join))
@settings(max_examples=50, deadline=None)
def test_nothing_around_a_token_keeps_it_from_being_masked(text: str) -> None:
    once = masked(text)
    assert GITHUB not in once and AWS not in once
    assert masked(SHOWN) == SHOWN


def test_what_holds_nothing_costs_next_to_nothing() -> None:
    lines = [f"line {number} of prose about interfaces and the compiler" for number in range(2000)]
    begin = time.perf_counter()
    for line in lines:
        masked(line)
    assert time.perf_counter() - begin < 0.2
