"""What a team gets to see: no secret, no person, no path; and what is none of these stays."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decisions.exchange.redaction import PATH, PERSON, SECRET, Masker, is_role, pseudonym, without_secrets
from core.records.patterns import PatternType
from core.sources.schema import PATTERNS
from tests.factories import ExchangeProject, make_error_record

SECRETS = {
    "sk-": "sk-" + "a1B2" * 8,
    "github": "ghp_" + "a1B2" * 9,
    "aws": "AKIA" + "Q7" * 8,
    "slack": "xoxb-" + "1234-abcd-" * 3,
    "jwt": "eyJhbGciOiJI.eyJzdWIiOiIx.sflKxwRJSM",
    "password": "hunter2",
    "quoted": "correct horse battery",
    "url": "admin:s3cr3t",
    "bearer": "abcdef0123456789abcdef",
    "key": "MIIEpAIBAAKCAQEA",
}
TEXTS = {
    "sk-": "call with {} in the header",
    "github": "remote https://{}@github.com/a/b",
    "aws": "id={}",
    "slack": "post as {}",
    "jwt": "cookie {};",
    "password": "DB_PASSWORD={}",
    "quoted": "api_key: '{}'",
    "url": "postgres://{}@db/shop",
    "bearer": "Authorization: Bearer {}",
    "key": "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
}
PRIVATE = {
    "/home/alice/shop/src/auth.ts": PATH,
    "/Users/alice": PATH,
    "file:///home/alice/x": PATH,
    "C:\\Users\\alice\\shop": PATH,
    "C:\\\\Users\\\\alice": PATH,
    "C:\\\\\\\\Users\\\\\\\\alice": PATH,
    "C:\\Users\\Alice Smith\\shop": PATH,
    "/c/Users/alice": PATH,
    "/mnt/c/Users/alice/x": PATH,
    "/cygdrive/c/alice": PATH,
    "~alice/shop": PATH,
    "/acme/shop/app/main.py": PATH,
    "alice@example.org": PERSON,
    "@alice-smith": PERSON,
    "Alice Smith": PERSON,
}


SECRETS_IN_CONTEXT = [
    ("DB_PASS={}", "hunter2"),
    ("SMTP_PASS: {}", "12345678"),
    ("user=a&pass={}&x=1", "hunter2"),
    ("PGPASSWORD={} psql", "hunter"),
    (r"{{\"password\": \"{}\"}}", "hunter two"),
    (r"{{\\\"api_key\\\": \\\"{}\\\"}}", "abcdef"),
    (r'"password": "{}"', r"hun\"ter2"),
    ("psql --password {} -h db", "hunter"),
    ("gh --token {}", "z"),
    ("tool --api-key='{}'", "my key"),
    ("tool --db-password={}", "hunter"),
    ("mysql -u root -p'{}' shop", "hunter"),
    ("mysqldump \\\n -u root -p{} shop", "hunter2"),
    ("curl -u {} https://x.example", "user:pw"),
    ("curl -s \\\n  -X POST --user '{}' https://x.example", "user:p w"),
    ("curl -sSu {} https://x.example", "user:p$w"),
    ("Authorization: token {}", "abcdef"),
    ("Authorization: Bearer {}", "abcdef"),
    ('{{"Authorization": "Basic {}"}}', "YWxhbjpwYXNz"),
    ("Authorization: {}", "abcdef0123456789"),
    ("password: str = '{}'", "hunter"),
    ("create user a identified by {};", "hunter"),
    ('Set-Cookie: sid="{}"; Path=/', "abcdef"),
    ("send Bearer {}", "abcdefGHIJKLmnop"),
    ("AccountName=shop;AccountKey={};EndpointSuffix=x", "Zm9vYmFy/+abcdefgh=="),
    ("https://a.blob.core.windows.net/b?sv=2020-01-01&sig={}&se=2026", "abcDEF%2Bghi%3D"),
    ("https://hooks.slack.com/services/{}", "T0000/B0000/abcdefgh"),
    ("https://discord.com/api/webhooks/{}", "123456/abc-def_ghi"),
    (r"https:\/\/discordapp.com\/api\/v10\/webhooks\/{}", r"123456\/abc-def"),
    ("redis://{}@host", ":pa/ss"),
    ("amqp://{}@host:5672/x", "user:p@ss$1"),
    ("https://{}@git.example/a/b", "0123456789abcdef0123456789"),
    ("Cookie: sid={}; theme=", "abcdef"),
    ("Cookie: theme=; sid={}", "abcdef"),
    ("Set-Cookie: sid={}; Path=/; HttpOnly", "abcdef"),
    ('{{"Set-Cookie": "sid={}; Secure"}}', "abcdef"),
    ("//registry.npmjs.org/:_authToken={}", "abcdef"),
    ("_auth={}", "YWxhbjpw"),
    ("CREATE USER 'a'@'%' IDENTIFIED BY '{}'", "hunter"),
    ('alter user bob identified by "{}"', "hunter"),
    ("CREATE USER a IDENTIFIED WITH mysql_native_password BY '{}'", "hunter"),
    ("ALTER ROLE bob WITH PASSWORD '{}'", "hunter"),
    ("<password>{}</password>", "hunter"),
    ("<Password> {} </Password>", "hunter two"),
    ("<db:accessToken type='x'>\n  {}\n</db:accessToken>", "hunter"),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n{}\n-----END PGP PRIVATE KEY BLOCK-----", "lQOYBF"),
]
"""(text, secret in it)."""


def test_secret_is_recognised_by_its_context() -> None:
    for text, secret in SECRETS_IN_CONTEXT:
        before, after = text.split("{}")[0].split("\n-----")[0], text.split("{}")[1]
        masked = without_secrets(f"see {text.format(secret)}\nmore")
        assert secret not in masked, text
        assert masked.count(SECRET) == 1, text
        if "BEGIN" not in text:
            assert masked == f"see {before}{SECRET}{after}\nmore".replace("{{", "{").replace("}}", "}")


def test_cookie_values_are_masked_but_not_attributes() -> None:
    masked = without_secrets("Cookie: a=1x; b=2y\nSet-Cookie: c=3z; Path=/; SameSite=Lax")
    assert masked == f"Cookie: a={SECRET}; b={SECRET}\nSet-Cookie: c={SECRET}; Path=/; SameSite=Lax"


def test_a_secret_that_is_cut_off_is_masked() -> None:
    assert without_secrets('password="hunter two') == f'password="{SECRET}'
    assert without_secrets(r"{\"password\": \"hunter two") == rf"{{\"password\": \"{SECRET}"


def test_secrets_are_masked_in_place() -> None:
    for name in SECRETS:
        text = f"before {TEXTS[name].format(SECRETS[name])} after"
        masked = without_secrets(text)
        assert SECRETS[name] not in masked, name
        assert SECRET in masked, name
        assert masked.startswith("before "), name
        assert masked.endswith(" after"), name


def test_persons_and_paths_are_masked() -> None:
    for text, mask in PRIVATE.items():
        assert Masker(["Alice Smith"]).mask(f"see {text} for more") == f"see {mask} for more", text


def test_public_text_is_not_masked() -> None:
    for text in (
        "password: string",
        "const token = process.env.API_TOKEN",
        "password={{password}}",
        "Unexpected token: '}' in JSON",
        "GET /api/v1/users and /health",
        "Cannot read property '.*' of null at line \\d+: \\w+",
        "src/auth/validate.ts:42 and *.ts:validateInput",
        "@dataclass\nclass A:\n    pass",
        "npm install @types/node and/or lodash",
        "either/or, 3/4 of them, a ratio of 1:2",
        "basic authentication of the user",
        "a token bucket, and the password reset form",
        "pass the --password option, or --token to the command",
        "usage: tool --password PASSWORD --token <token> --token-limit 5 --no-password shop",
        "tool --password $DB_PASS --token {{token}} --secret ${SECRET}",
        "mysql -p shop, mysql -p$DB_PASS; docker run --name mysql -p3306:3306 mysql",
        'curl -u "$USER:$PASS" https://x.example; curl -u user:{{pw}} x',
        "Authorization: Bearer {{token}}",
        'headers = {"Authorization": "Bearer " + token}',
        "the Authorization: Bearer header is missing; authorization: check the roles",
        "login(user=user, password=user_password, token=token)",
        "password: z.string().min(8), token: Optional[str], password: SecretStr = Field()",
        "Password: must be long",
        "max_tokens=4096, tests: pass=12 fail=3, first_pass: true",
        "bypass=compile and compass: north",
        "open http://localhost:3000/@vite/client",
        "https://unpkg.com/@scope/pkg@1.2.3/index.js",
        "postgres://{user}:{password}@{host}/db and redis://:${PW}@host",
        "sig=ok and significant=value",
        "Cookie: a small text; the cookie: name={{value}}, cookie = parse(x)",
        "Set-Cookie: Path=/; HttpOnly",
        "self._auth = auth; use_auth = True",
        "records are identified by 'user_id' or by name",
        "<password>{{password}}</password> <password>string</password>",
        "<label>Password reset form</label> <TokenList>a b</TokenList>",
        'raise ValueError("Password: " + reason)',
        "curl -u https://x.example; SELECT 1 WHERE password = :password OR password = ?",
        "if (password === other) return; const { token } = useAuth()",
        "-----BEGIN PUBLIC KEY-----",
    ):
        assert Masker(["software-implementer", "debugger"]).mask(text) == text, text


def test_role_names_are_not_persons() -> None:
    assert is_role("software-implementer")
    assert is_role("debugger")
    assert not is_role("alice")
    assert not is_role("")


@pytest.mark.parametrize("start", ["", "password="])
@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "_",
        "PASS",
        "@",
        "a.",
        "/a",
        "a_",
        "\\",
        "x:\\",
        "://:",
        "://a",
        "--a",
        "&sig=",
        "token=",
        'password="',
        'password=\\"',
        'password=\\"\n',
        "--password ",
        "mysql ",
        "curl -u ",
        "curl -u a:",
        "cookie: a=",
        "cookie: a=b;",
        "<a",
        "<password ",
        "<token>a ",
        "CREATE USER a ",
        "IDENTIFIED WITH a ",
        "authorization: token ",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_long_texts_take_linear_time(unit: str, start: str) -> None:
    text = start + unit * (20_000 // len(unit))
    began = time.process_time()
    Masker(["alice"]).mask(text)
    assert time.process_time() - began < 1


_PLANTED = st.sampled_from([*(TEXTS[name].format(value) for name, value in SECRETS.items()), *PRIVATE])
_NEEDLES = [*SECRETS.values(), *PRIVATE]
_PLACES = st.sampled_from(["fix", "hint", "tag", "template", "loop", "step", "related"])


@given(st.lists(st.tuples(_PLACES, _PLANTED), min_size=1, max_size=4))
def test_shared_export_contains_nothing_private(planted: list[tuple[str, str]]) -> None:
    record = make_error_record(1, owner="Alice Smith", tags=[], related_patterns=[], source_loops=[], note="local")
    record["error_signature"]["error_location_hints"] = []
    for place, text in planted:
        sentence = f"see {text} there"
        if place == "fix":
            record["fix_approach"]["description"] += f" {sentence}"
        elif place == "template":
            record["fix_approach"]["code_template"] = sentence
        elif place == "loop":
            record["source_loops"].append({"loop_id": sentence, "contributed_by": text, "note": sentence})
        elif place == "hint":
            record["error_signature"]["error_location_hints"].append(sentence)
        elif place == "step":
            record["steps"] = [sentence]
        else:
            record["tags" if place == "tag" else "related_patterns"].append(sentence)
    shared = ExchangeProject("a", record).export(team_shared=True)
    text = shared.data.decode()
    for needle in _NEEDLES:
        assert needle not in text
        assert needle.replace("\\", "\\\\") not in text
    assert "alice" not in text.lower()
    assert "local" not in text


def test_shared_export_lists_masked_fields_and_supported_keys_remain() -> None:
    record = make_error_record(
        1, 3, source_loops=[{"loop_id": "ralph-fix-login-a1b2c3d4", "contributed_by": "debugger"}]
    )
    record["fix_approach"]["description"] = "Log in with password=hunter2 as /home/alice/x does"
    shared = ExchangeProject("a", record).export(team_shared=True)
    assert [(item.pattern_id, item.pointer, item.kind) for item in shared.masked] == [
        ("pat-error-made-001", "/fix_approach/description", "secret"),
        ("pat-error-made-001", "/fix_approach/description", "path"),
    ]
    text = shared.data.decode()
    assert '"contributed_by": "debugger"' in text
    assert "ralph-fix-login" not in text
    assert text == ExchangeProject("a", record).export(team_shared=True).data.decode()


def test_no_text_of_a_shared_export_names_a_loop() -> None:
    known = ["ralph-b", "loop 7.1", "fix", "usage_count", "12"]
    record = make_error_record(1, 3, source_loops=[{"loop_id": "ralph-a-a1b2c3d4"}, *known], tags=["ralph-b"])
    record["fix_approach"]["description"] = (
        "As ralph-a-a1b2c3d4 did, ralph-b's fix: see ralph-fix-other-0badcafe.json, (loop 7.1), not loop 7.12 or 12"
    )
    project = ExchangeProject("a", record)
    shared = project.export(team_shared=True)
    (sent,) = json.loads(shared.data)["pattern_registry"]["error_patterns"]
    a, b, other, seven = (
        pseudonym(id, project.origin) for id in ("ralph-a-a1b2c3d4", "ralph-b", "ralph-fix-other-0badcafe", "loop 7.1")
    )
    assert (
        sent["fix_approach"]["description"]
        == f"As {a} did, {b}'s fix: see {other}.json, ({seven}), not loop 7.12 or 12"
    )
    assert sent["source_loops"][:3] == [{"loop_id": a}, b, seven]
    assert (sent["tags"], sent["usage_count"]) == ([b], 3)


def test_import_replaces_pseudonyms_by_local_loop_ids() -> None:
    loops = [{"loop_id": "ralph-fix-login-a1b2c3d4", "timestamp": "2026-01-01T00:00:00Z"}]
    source, target = ExchangeProject("a", make_error_record(1, 3, source_loops=loops)), ExchangeProject("b")
    target.take(source.export(team_shared=True).data)
    target.use("pat-error-made-001", 1)
    source.take(target.export(team_shared=True).data)
    assert source.records["pat-error-made-001"]["source_loops"] == loops
    assert source.uses("pat-error-made-001") == 4
    target.take(source.export().data)
    assert len(target.records["pat-error-made-001"]["source_loops"]) == 1


def test_every_type_has_the_keys_that_are_always_shared() -> None:
    for kind in PatternType:
        assert {"tags", "source_loops", "origins", "aliases"} <= PATTERNS[kind].keys.keys()


def test_no_export_contains_secrets() -> None:
    token = "ghp_" + "a1B2" * 9
    exported = ExchangeProject(
        "a", make_error_record(1, fix=f"git push https://{token}@github.com/a/b by alice@example.org")
    ).export()
    assert token.encode() not in exported.data and b"alice@example.org" in exported.data
    assert [(one.pointer, one.kind) for one in exported.masked] == [("/fix_approach/description", "secret")]
