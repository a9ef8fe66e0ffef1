"""Secrets are masked in all output; other texts are not changed."""

from __future__ import annotations

import re
import time

import pytest
import re2
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from core.base.masking import MANY, find_secrets, loosen, mask_secrets, mask_values, may_contain_secret
from core.base.secret_patterns import COMMAND_RULES, RULES, TOKEN_FORMATS
from core.base.text import visible, visible_line, visible_lines
from core.base.value_shapes import REGEX, find_assigned, is_placeholder
from tests.core.base.scanning.samples import sample

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


def test_a_mask_contains_kind_and_length() -> None:
    for text, shown in (
        (f"git push with {GITHUB}", f"git push with {SHOWN}"),
        ("sk-ant-api03-" + "Ab1-" * 6, "[secret: Anthropic key, 37 characters]"),
        ("postgres://admin:s3cr3t@db/shop", "postgres://[secret: credentials, 12 characters]@db/shop"),
        ("DB_PASSWORD=hunter2", "DB_PASSWORD=[secret: password, 7 characters]"),
        ("-----BEGIN EC PRIVATE KEY-----\nAAAA", "[secret: private key, 35 characters]"),
    ):
        assert mask_secrets(text) == visible(text) == visible_line(text) == shown, text


def test_ids_code_and_prose_are_not_masked() -> None:
    for text in (
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
        "auth: ralph-harden-the-authentication-an-f43dda6e",
        "token ralph-fix-api2-set-up-tests-for-the--c7dec1eb",
        "docker login -u me --password-stdin",
        "login form password reset",
        "redis-cli -a $REDIS_PW",
    ):
        assert visible_line(text) == text, text


def test_only_the_value_after_a_name_is_masked() -> None:
    for text in (
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
    ):
        secret = "YWxhbjpwYXNzMQ==" if "Basic" in text else "me:hunter22" if "-u {}" in text else "hunter22"
        before, after = text.format("\0").split("\0")
        shown = mask_secrets(text.format(secret))
        assert shown.startswith(f"{before}[secret: ") and shown.endswith(f" characters]{after}"), text


def test_tokens_are_recognised_by_prefix() -> None:
    for token in (
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
    ):
        assert token[12:] not in mask_secrets(f"use {token} there"), token


@pytest.mark.parametrize("kind", TOKEN_FORMATS)
@given(data=st.data())
@settings(max_examples=1)
def test_each_token_shape_is_masked_alone_and_in_a_sentence(kind: str, data: st.DataObject) -> None:
    for shape in TOKEN_FORMATS[kind]:
        token = data.draw(st.from_regex(rf"\A{shape}\Z", alphabet=st.characters(codec="ascii")))
        assume(not is_placeholder(token))
        assert token not in mask_secrets(token) and token not in mask_secrets(f"it says {token}, try it")


def test_every_further_occurrence_of_a_secret_is_masked() -> None:
    for text in (
        "orderdesk token = 'q7w2mzk41xv0tb9s6hd3' | 'q7w2mzk41xv0tb9s6hd3'",
        "DB_PASSWORD=tr4vel-light-9 and later psql with tr4vel-light-9",
        "postgres://app:mango77tree@db/shop, so PGPASSWORD is mango77tree",
    ):
        shown = mask_secrets(text)
        assert shown.count("[secret: ") == 2, text
        assert not any(value in shown for value in ("q7w2mzk41xv0tb9s6hd3", "tr4vel-light-9", "mango77tree")), text


def test_other_occurrences_of_a_word_used_as_password_stay() -> None:
    assert mask_secrets("postgres://postgres:postgres@db/x runs postgres").endswith("@db/x runs postgres")


def test_a_random_value_after_the_name_of_a_credential_is_masked() -> None:
    for text in (
        'const orderdeskKey = "q7w2mzk41xv0tb9s6hd3aa"',
        "[DEBUG] Using Key=q7w2mzk41xv0tb9s6hd3aa",
        "<secret>{orderdesk AQ q7w2mzk41xv0tb9s6hd3aa}</secret>",
        'client.setAuth("q7w2mzk41xv0tb9s6hd3aa")',
        "orderdesk token - 'q7w2mzk41xv0tb9s6hd3aa'",
        "api:\n  auth_type: header\n  api_key: q7w2mzk41xv0tb9s6hd3aa",
        'orderdeskKey = "8c1f0b52-9a37-4d6e-b1c4-7e2f9d03a865"',
    ):
        shown = mask_secrets(text)
        assert "[secret: " in shown and "q7w2mz" not in shown and "8c1f0b52" not in shown, text


def test_placeholders_are_not_masked() -> None:
    for text in (
        "API_KEY=<your-key>",
        'api_key = "your-api-key"',
        "token: xxxxxxxxxxxxxxxxxxxx",
        "AKIAXXXXXXXXXXXXXXXX",
        "AKIA7SHOWN4DOCEXAMPLE",
        'secret: "${DEPLOY_SECRET}"',
        "password: {{ vault.password }}",
        "password = changeme",
        'apikey: "insert-key-here"',
        'password = "fakepassword"',
        "xoxb-xxxxxxxxxxx-xxxxxxxxxxx-xxxxxxxxxxxx",
        "pplx-" + "x" * 48,
        "curl -u user:password https://api.example",
        'curl -H "Authorization: Basic ..." https://api.example',
        "-----BEGIN RSA PRIVATE KEY----- -----END RSA PRIVATE KEY-----",
        "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    ):
        assert mask_secrets(text) == text, text


def test_public_values_are_not_masked() -> None:
    for text in (
        "fixed the key handling in commit 4be1f0aa93d27c60518e2f4477a9d0c3b6e15f82",
        "auth image sha256:9f3c1d5e7a80b246c1d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a8b7",
        "token audience 5d1c7be0-3f4a-4e0b-8a52-9c63e5c1f7aa",
        'credentialsId: "5d1c7be0-3f4a-4e0b-8a52-9c63e5c1f7aa"',
        'publicToken = "9RtNxj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJT"',
        'public_key = "9RtNxj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJT"',
        '<input name="authenticity_token" value="7hQWa2Fo1hsC6oovfBsJFLGPUl2EhkSWPbJhWANw">',
        "csrf-token=Mj2qykJO5rELyHgezQ69nzUX0i3OH67V7",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0r2v7mZ3b8Qd1YxkLw5s9nTfEuGh6cPqRaVoXyBiNt me@laptop",
        "the token parser is in src/compiler/parser2/tokenizer_v8_compat.py",
        "void xsltKeyFunction(xmlXPathParserContextPtr ctxt, int nargs)",
        "keyboard: QWERTZ, keyword: Release_P2_2024_final",
        "/usr/local/lib/python3.12/site-packages/keyring-25.2.1.dist-info",
    ):
        assert mask_secrets(text) == text, text


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=12).map("".join))
def test_masking_is_idempotent(text: str) -> None:
    once = mask_secrets(text)
    assert mask_secrets(once) == once


def test_worst_case_texts_take_bounded_time() -> None:
    for piece in (
        "curl -u ",
        "mysql -p ",
        "://a@",
        'curl "',
        'password=\\"',
        "Cookie: a=b; ",
        "a1-",
        "key ",
        "token=a1b2c3d4e5f6g7h8i9j0k1 ",
    ):
        text = piece * (250_000 // len(piece))
        begin = time.process_time()
        mask_secrets(text)
        assert time.process_time() - begin < 1.0, piece


def test_a_cut_secret_is_masked() -> None:
    assert "a1B2" not in visible_line("x" * 30 + " " + GITHUB, 50)
    assert visible_line("x" * 30 + " " + GITHUB, 60).endswith("…")


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join))
def test_a_token_is_masked_in_any_context(text: str) -> None:
    once = mask_secrets(text)
    assert GITHUB not in once and AWS not in once
    assert mask_secrets(SHOWN) == SHOWN


def test_clean_texts_are_fast() -> None:
    lines = [f"line {number} of prose about interfaces and the compiler" for number in range(2000)]
    begin = time.perf_counter()
    for line in lines:
        mask_secrets(line)
    assert time.perf_counter() - begin < 0.2


def test_passwords_in_sentences_and_calls_are_masked() -> None:
    for text, secret in (
        ("the password for 'ada' is 'tr0ub4dor'", "tr0ub4dor"),
        ("the default password is `quitecloud`", "quitecloud"),
        ('new NetworkCredential("ada", "quitecloud")', "quitecloud"),
        (":password         => 'quitecloud'", "quitecloud"),
        ("PASS = 'quitecloud'", "quitecloud"),
        ("got cfut_" + "a1B2" * 11, "a1B2" * 11),
        ("got BBDC-" + "a1B2" * 11, "a1B2" * 11),
    ):
        assert secret not in mask_secrets(text), text
        assert mask_secrets(mask_secrets(text)) == mask_secrets(text), text


def test_sample_passwords_are_not_masked() -> None:
    for text in (
        "postgres://username:password@db.example/app",
        "https://user:REPLACE_WITH_PASSWORD@host.example",
        'this.changePassword = "#change-password";',
        'UserChangePassword = "arn:aws:iam::aws:policy/UserChangePassword"',
        'password: "users/passwords#edit"',
        '"password": "YOURPASSWORD"',
        "AccessKey=00000000-0000-0000-0000-000000000000",
    ):
        assert mask_secrets(text) == text, text


@pytest.mark.parametrize(
    "text",
    [
        "the db password is {}",
        "password for the shop is {}, use it",
        "My passphrase is now: {}.",
        "The password was changed to {} (ask Ana)",
        "das Passwort lautet {}",
        "the password of the registry is {}\nsecond line",
        "log in with the password {} first",
        "the api key is {}",
    ],
)
@pytest.mark.parametrize("secret", ["Xyz2026!abc", "gr33n+House"])
def test_passwords_in_prose_without_quotes_are_masked(text: str, secret: str) -> None:
    shown = f"[secret: password, {len(secret)} characters]"
    assert mask_secrets(text.format(secret)) == text.format(shown)


def test_sentences_about_passwords_are_not_masked() -> None:
    for text in (
        "the password is wrong",
        "password is required",
        "The password is case-sensitive and must be rotated",
        "the password is 12-character or longer",
        "the password is 8 characters long",
        "the password is base64-encoded",
        "passwords are sha256-hashed",
        "the password is *not* stored",
        "the password is user's own",
        "the password was set to self.value",
        "if the password is equal!",
        "the password is read from /etc/db2.conf",
        "the password is config.db2.password",
        "the token is version2",
        "with password reset2 enabled",
    ):
        assert mask_secrets(text) == text, text


def test_values_under_the_name_of_a_secret_are_masked() -> None:
    given = {
        "user": "shop",
        "db": {"password": 'Lamp "7"', "passwordFile": "/run/db.txt"},
        "env": [{"name": "API_TOKEN", "value": "Tiger4Kettle"}, {"name": "SHELL", "value": "sh"}],
        "token": "${TOKEN}",
        "max_tokens": 300,
    }
    masked = mask_values(given)
    assert masked["db"]["password"].startswith("[secret: password,")
    assert masked["env"][0]["value"].startswith("[secret: value,")
    masked["db"]["password"], masked["env"][0]["value"] = given["db"]["password"], "Tiger4Kettle"  # type: ignore[index]
    assert masked == given
    assert mask_values(mask_values(given)) == mask_values(given)


@given(
    st.lists(st.lists(st.sampled_from([*PIECES, "\n", "plain", "é", "\x1b"]), max_size=4).map("".join), max_size=300)
)
@settings(max_examples=60)
def test_many_texts_are_shown_and_masked_as_each_alone(texts: list[str]) -> None:
    assert visible_lines(texts, 60) == {text: visible_line(text, 60) for text in texts}
    assert find_secrets(texts) == {text: mask_secrets(text) for text in texts if mask_secrets(text) != text}


def test_a_secret_among_many_plain_texts_is_masked() -> None:
    for secret in (GITHUB, AWS, "password=hunter2xyzzy", "https://u:s3cr3tpw@h.example/"):
        shown = visible_lines([*(f"pat-error-plain-case-{n}" for n in range(500)), secret], 200)
        assert shown[secret] == visible_line(secret) != secret, secret


def test_a_secret_among_thousands_of_texts_about_secrets_is_masked() -> None:
    for secret in (GITHUB, AWS, "password=hunter2xyzzy", "https://u:s3cr3tpw@h.example/"):
        texts = [*(f"rotate the password and the API key of job {n}" for n in range(MANY)), secret]
        assert visible_lines(texts, 200)[secret] == visible_line(secret) != secret, secret
        assert find_secrets(texts) == {secret: mask_secrets(secret)}, secret


def test_a_token_inside_a_run_of_other_words_is_masked_among_many_texts() -> None:
    texts = [*(f"pat-way-{n}" for n in range(50)), f"AGE-SECRET-x-{GITHUB}", f"a.b.c.d.e.f/{AWS}"]
    assert visible_lines(texts, 200) == {text: visible_line(text, 200) for text in texts}


PARTS = ("private_key", "PassWord", "db-pass", "X_PASS", "to\u212aen", "\u017fecret", "_authToken", "pwd", "key", "İ")
BETWEEN = (" = ", ": ", "=", "=> ", '": "', "\n", " ", "abc123DEF456xyz", '"q w"', "a")


@given(st.lists(st.sampled_from(PARTS + BETWEEN), max_size=12).map("".join))
def test_find_assigned_finds_what_finditer_finds(text: str) -> None:
    expected = [found.span() for found in REGEX["assigned"].finditer(text)]
    assert [found.span() for found in find_assigned(REGEX["assigned"], text)] == expected


WORDS = [
    *("api_key", "secret", " = ", ": ", '"hunter22"', "ENV TOKEN", "IDENTIFIED BY ", "mysql ", "-p", "login x ", "\v"),
    *("password is 'xy12z'", "<token>", "</token>", "?sig=abcdef12", "redis-cli -a ", "0123456789abcdef" * 2, "\x1c"),
]


@given(st.lists(st.sampled_from(PIECES + WORDS), max_size=12).map("".join))
def test_a_text_that_the_masks_change_may_contain_a_secret(text: str) -> None:
    assert may_contain_secret(text) or mask_secrets(text) == text


@pytest.mark.parametrize("name", [*RULES, *(f"{command}_option" for command in COMMAND_RULES)])
@settings(max_examples=20)
@given(data=st.data())
def test_a_loose_expression_matches_where_the_expression_does(name: str, data: st.DataObject) -> None:
    text = data.draw(st.lists(st.sampled_from(PIECES + WORDS), max_size=8).map(" ".join))
    text = "".join(char for char in text if char in "\t\n\f\r" or " " <= char <= "~")
    assert re2.search(loosen(REGEX.sources[name]), text) or not REGEX[name].search(text)


def test_every_token_may_contain_a_secret() -> None:
    patterns = [pattern for patterns in TOKEN_FORMATS.values() for pattern in patterns]
    drawn = {pattern: sample(pattern, 1) for pattern in patterns}
    matched = [pattern for pattern, text in drawn.items() if re.search(pattern, text)]
    assert len(matched) > 0.9 * len(patterns)
    for pattern in matched:
        assert may_contain_secret(f"use {drawn[pattern]}")


def test_prose_code_and_paths_contain_no_secret() -> None:
    for text in (
        "Cannot read properties of undefined (reading 'token')",
        "if ({{value}} == null) { // the key of the session table\n}",
        "see src/components/orders/OrderTable.test.tsx and https://docs.example/api-keys",
    ):
        assert not may_contain_secret(text)


def test_assertions_and_upper_bounds_are_removed() -> None:
    for expression, loose in (
        (r"(?i)(?<![a-z])a{2,5}(?!b(c|[)])d)e*+\Z", r"(?:(?i)a{2,}e*)"),
        (r"(?P<quote>x)?(?(quote)[^)}]{300}|\()\)$", r"(?:(?:x)?(?:[^)}]{20,}|\()\))"),
    ):
        assert re.compile(expression), expression
        assert loosen(expression) == loose, expression
