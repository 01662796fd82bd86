"""Tests that secrets are masked everywhere, and that text which only looks like a secret stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from app.foundation.safety.secrets import PIECE_CHARACTERS, _expressions, _likely_expressions, mask, masked_values
from tests.growth import assert_linear

# Concatenated, so that no secret scanner reports a line of this file.
AWS = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
HUB = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
OPEN = "sk-proj-" + "abcdefghijklmnopqrstuvwxyz0123"
NPM = "npm_" + "a1B2c3D4e5" * 4
GRAFANA = "glsa_" + "Ab1Cd2Ef3G" * 3 + "Hi_1a2b3c4d"
OCEAN = "dop_v1_" + "0123456789abcdef" * 4
GOOGLE = "GOCSPX-" + "a1B2c3D4-e5F6g7H8i9J0_kLmNo"
BEGIN, END = "-----BEGIN RSA PRIVATE " + "KEY-----", "-----END RSA PRIVATE " + "KEY-----"
BODY = "MIIEpAIBAAKCAQEA7Zq4-Qe+1234567890abcdef"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("DB_PASSWORD=hunter2pass", "hunter2pass"),
        ("export PGPASSWORD='hunter2pass'", "hunter2pass"),
        ("password=hunter2pass", "hunter2pass"),
        ("password: hunter2pass", "hunter2pass"),
        ('password: "short6"', "short6"),
        (f"AWS_SECRET_ACCESS_KEY={AWS}", AWS),
        (f"AWS_SECRET_ACCESS_KEY = {AWS}", AWS),
        ("API_KEY=abcdef1234", "abcdef1234"),
        (f"aws_secret_access_key={AWS}", AWS),
        (f"aws_secret_access_key = {AWS}", AWS),
        ('{"api_key": "abcdef1234"}', "abcdef1234"),
        (r"{\"api_key\": \"abcdef1234\"}", "abcdef1234"),
        ("{'apiKey': 'abcdef1234'}", "abcdef1234"),
        ("X-API-Key: a1b2c3d4e5f6a7b8", "a1b2c3d4e5f6a7b8"),
        ("curl -H 'X-Api-Key: a1b2c3d4e5f6a7b8' https://host.example", "a1b2c3d4e5f6a7b8"),
        ("OPENAI_API_KEY: a1b2c3d4e5f6a7b8", "a1b2c3d4e5f6a7b8"),
        ("The api key: a1b2c3d4e5f6a7b8", "a1b2c3d4e5f6a7b8"),
        (f"client_secret: {GOOGLE}", GOOGLE),
        (f"It is {GOOGLE}.", GOOGLE),
        ("access_token => 'abcdef1234'", "abcdef1234"),
        ("passphrase: 'abcdef1234'", "abcdef1234"),
        (f"//registry.example/:_authToken={NPM}", NPM),
        (f"published with {NPM}", NPM),
        (f"Grafana ({GRAFANA})", GRAFANA),
        (f"droplets by {OCEAN}", OCEAN),
        ("curl -u admin:hunter2 https://host.example", "hunter2"),
        ("curl -sS --user 'admin:hunter2' https://host.example", "hunter2"),
        (f"Log in with {HUB}.", HUB),
        (f"The key {OPEN} leaked.", OPEN),
        ("https://host.example/x?token=abcdef1234567890abcdef", "abcdef1234567890abcdef"),
        ("https://host.example/?page=2&api_key=abcdef1234567890&n=1", "abcdef1234567890"),
        ("https://host.example/?access_token=abcdef1234567890", "abcdef1234567890"),
        ("https://user:p@ss@host.example/x", "p@ss"),
        ("HTTPS://user:hunter2pass@host.example/x", "hunter2pass"),
        ("Password: Hunter2Hunter", "Hunter2Hunter"),
        ("authorization: token a1b2c3d4e5f6a7b8", "a1b2c3d4e5f6a7b8"),
        ("It is xai-" + "a1" * 40, "a1" * 40),
        ("postgres://user:hunter2pass@host.example/db", "hunter2pass"),
        (f"{BEGIN}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n{BODY}\n{END}", BODY),
    ],
)
def test_a_secret_is_masked(text: str, secret: str) -> None:
    result = mask(text)
    assert secret not in result.text
    assert result.kinds


def test_a_private_key_is_masked_whole_and_what_follows_stays() -> None:
    result = mask(f"{BEGIN}\nProc-Type: 4,ENCRYPTED\n{BODY}\n{END}\nafter - all")
    assert result.text == "[secret masked: private key]\nafter - all"


@pytest.mark.parametrize(
    "text",
    [
        "model sk-learn-pipeline-with-a-very-long-name-of-thing",
        "The commit 9fceb02d0ae598e95dc970b74767f19372d61af8 fixed it.",
        "https://example.org:8080/a@b and ratio 3:abcdefgh",
        "uuid 01a1fd52-eda5-71d7-833c-535755a32a3c",
        "https://example.org/list?page_token=2&key=value",
        "MAX_TOKENS=4096 and PRIMARY_KEY=memory_id",
        "GITHUB_TOKEN=${{ secrets.GITHUB_TOKEN }}",
        "SIGNING_KEY=/etc/keys/signing.pem",
        "PRIVATE_KEY = re.compile(pattern)",
        "password=None, token=request.token, secret=settings.secret",
        "the api key: none",
        "The api key: see the vault of the team before the call.",
        "The secret: three weeks of rest. The token: GPT-4o.",
        "The key of commit 9fceb02d0ae598e95dc970b74767f19372d61af8 and key: 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "api_key: settings.openai_key2, token: auth-service-v2, secret: grafana-tls-2024",
        'api_key="$OPENAI_API_KEY_2" token: "${TOKEN_1}" secret: <your-secret-1>',
        "https://example.org/list?next_token=CAUQAA12345x&page_token=CAUQAA12345x",
        "curl -u $USER:$PASSWORD https://host.example && docker run -u 1000:1000",
        "The password: a word that nobody should know by heart.",
        "forgot-password: the page that the link leads to",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text).text == text


PARTS = (
    f'"api_key": "{OPEN}"',
    "password\u00a0:\u2003'abcdef1'",
    "DB_PASSWORD=hunter2pass",
    f"{BEGIN}\n{BODY}\n{END}",
    HUB,
    NPM,
    "curl -u admin:hunter2 https://host.example",
    "https://user:p@ss@host.example/x",
    "?token=abcdef1234567890abcdef",
    "xoxb-" + "123456789012-abcdef",
    "glpat-" + "abcdefghij0123456789",
    "secret_access_key: '" + "a1" * 24 + "'",
    "123456789:" + "AAabcdefghijklmnopqrstuvwxyz012345678",
    *(
        "key",
        "token",
        "secret",
        "é",
        "=",
        ": ",
        '"',
        "\n",
        " ",
        "x",
        "_",
        "apı_key: 'a1b2c3d4e5'",
        "APİ_KEY",
        "\u212aey",
    ),
)


@given(st.lists(st.sampled_from(PARTS), max_size=8))
def test_no_expression_is_passed_over_that_would_find_something(parts: list[str]) -> None:
    text = "".join(parts)
    suspected = list(_likely_expressions(text))
    finding = [expression for expression in _expressions()[0] if expression.mask_matches(text, []) != text]
    assert [expression for expression in finding if expression not in suspected] == []


GROWING = (
    BEGIN,
    f"{BEGIN}\n-a",
    "sk-",
    "sk-a-",
    "?token=",
    "A_",
    "a.password=",
    "x://a:b@",
    "TOKEN=",
    "PASSWORD",
    "curl ",
    "api_key: ",
    "secret=a1-",
    "token: aa-",
    "| password |\n",
    "|---|\n",
    "**password** ",
    "password is ",
    "<secret>",
    "--password ",
    'variable "password" {',
    "пароль ",
)


@pytest.mark.parametrize("piece", GROWING)
def test_time_grows_with_the_text(piece: str) -> None:
    assert_linear(mask, piece)


@pytest.mark.parametrize("between", ["\n", " ", ","])
def test_a_secret_is_masked_wherever_a_long_text_has_it(between: str) -> None:
    secret = f'"api_key": "{OPEN}"'
    for length in range(PIECE_CHARACTERS - 2 * len(secret), PIECE_CHARACTERS + 2, 3):
        text = f"{'x' * 9}{between}" * (length // 10) + "y" * (length % 10) + between + secret + between + "z" * 50
        result = mask(text)
        assert OPEN not in result.text
        assert result.text.endswith("z" * 50)


FORMS = (
    ("POSTGRES_PASSWORD: hunter2", "hunter2"),
    ("  POSTGRES_PASSWORD: hunterpass", "hunterpass"),
    ("| Password | hunter2x |", "hunter2x"),
    ("| user | password |\n|---|---|\n| admin | swordfish |\n", "swordfish"),
    ("- **Password**: swordfish", "swordfish"),
    ("- **Password:** swordfish\nnext", "swordfish"),
    ("<password>swordfish</password>", "swordfish"),
    ("tool --password swordfish --x", "swordfish"),
    ("tool --db-password=swordfish", "swordfish"),
    ("sshpass -p swordfish ssh a@b", "swordfish"),
    ("Set-Cookie: session=abcdef123456; Path=/", "abcdef123456"),
    ("Cookie: session=abcdef123456; a=b", "abcdef123456"),
    ("token hvs.CAESIJ1234567890abcdefghij", "hvs.CAESIJ1234567890abcdefghij"),
    ("AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ", "QQQQQQQQ"),
    ('variable "db_password" {\n  type = string\n  default = "swordfish"\n}', "swordfish"),
    ("пароль: hunter2", "hunter2"),
    ("Пароль: секрет123", "секрет123"),
    ("Пароль: swordfish", "swordfish"),
    ("пароль от базы: hunter2", "hunter2"),
    ("The admin password is hunter2!", "hunter2"),
    ("The password for the wiki is `swordfish`.", "swordfish"),
    ("Das Passwort lautet hunter2!", "hunter2"),
    ("Das Passwort lautet: hunter2!", "hunter2"),
    ("Das Passwort ist jetzt hunter2!", "hunter2"),
    ("Das Passwort ist: hunter2!", "hunter2"),
    ('Das Passwort ist "tiger"', "tiger"),
    ("Das Passwort für den Server im Keller lautet hunter2!", "hunter2"),
    ("Log in as admin with the password hunter2fox.", "hunter2fox"),
    ("Log in as admin with the password hunter2-fox.", "hunter2-fox"),
    ("export STRIPE_SECRET=correcthorsebattery", "correcthorsebattery"),
    ("See https://onetimesecret.com/secret/8dk39fk20dkf.", "8dk39fk20dkf"),
    ("https://start.1password.com/share/a1b2c3d4e5f6", "a1b2c3d4e5f6"),
    ("https://pwpush.com/p/k3j4h5k3j4", "k3j4h5k3j4"),
    ("Reset it: https://app.example.com/account/reset-password/8f7d6e5c4b3a", "8f7d6e5c4b3a"),
    ("mot de passe : hunter2x", "hunter2x"),
    ("contraseña: hunter2x", "hunter2x"),
    ("密码：hunter2x", "hunter2x"),
    ("密码是hunter2x", "hunter2x"),
    ("mysql -u root -phunter2 db", "hunter2"),
)


@pytest.mark.parametrize(("text", "secret"), FORMS)
def test_a_secret_is_masked_in_every_form_that_people_write(text: str, secret: str) -> None:
    assert secret not in mask(text).text


STANDING_FOR = (
    "OPENAI_API_KEY=sk-...",
    "OPENAI_API_KEY=sk-xxxxxxxx",
    "API_KEY=<your-key>",
    "API_KEY=your-api-key-here1",
    "| Password | Notes |",
    "| Field | Type |\n|---|---|\n| password | string |",
    "use the --password option",
    "The password is required and must have 8 characters.",
    "The password is base64-encoded.",
    "- **Password**: required",
    "Password: see the vault",
    "--token-limit 5 and --max-tokens 500",
    "пароль: не хранится",
    "Cookie: the banner",
    "<token>",
    "The api key: see the vault of the team",
    "PASSWORD: required",
    "- **API key**: in 1Password",
    "| Model | tokens |\n|---|---|\n| a | 1234567 |",
    "mot de passe : obligatoire",
    "Das Passwort lautet anders als im Handbuch.",
    "my password is too short, and with password hashing by sha256 it is safe",
    "export API_TOKEN=$TOKEN_OF_CI",
    "https://github.com/org/repo/tree/main/secrets/config2024.yaml",
    "https://blog.example.com/secret/garden-of-words",
    "https://docs.example.com/guides/reset-password/version2.html",
    "https://kubernetes.io/docs/concepts/configuration/secret/#using-secrets-v2",
    "https://github.com/acme/one-time-secret/issue-1234abcd",
    "Connect with password rotation-v2flow",
    "Start with the password policy2024-review",
    "Das Passwort ist 8-stellig und neu",
    "Das Passwort ist jetzt 8-stellig!",
)


@pytest.mark.parametrize("text", STANDING_FOR)
def test_what_stands_for_a_secret_stays(text: str) -> None:
    assert mask(text).text == text


FIELDS: tuple[dict[str, Any], ...] = (
    {"password": "x"},
    {"db": {"password": "swordfish"}},
    {"passwords": ["aa", "bb"]},
    {"password": "my-Sup3rSecret1"},
    {"db_password": "$ecret123"},
    {"env": [{"name": "DB_PASSWORD", "value": "swordfish"}]},
    {"apiKey": "swordfish"},
    {"token": "abcdef1234567"},
    {"password": 12345678},
    {"userPassword": 12345678},
    {"Authorization": "Bearer abc"},
    {"password": {"value": "swordfish"}},
    {"пароль": "swordfish"},
)


class Line(Struct, frozen=True):
    text: str
    parts: tuple["Line", ...] = ()
    tokens: int = 0


def test_a_struct_is_masked_in_each_of_its_texts() -> None:
    plain = Line("nothing", (Line("here", tokens=7),), 12345678)
    assert masked_values(plain) is plain
    found = masked_values(Line("a key", (Line(f"token {HUB}", tokens=7),)))
    assert HUB not in found.parts[0].text
    assert (found.text, found.parts[0].tokens) == ("a key", 7)


@pytest.mark.parametrize("value", FIELDS)
def test_the_value_of_a_key_that_names_a_secret_is_masked(value: dict[str, Any]) -> None:
    found = json.dumps(masked_values(value))
    assert "secret masked" in found
    assert "swordfish" not in found


@pytest.mark.parametrize(
    "value",
    [
        {"token": "GPT-4o"},
        {"tokens": 1234, "max_tokens": 5000, "total_tokens": "12345678"},
        {"session_tokens": 15_234, "userTokens": 5_000, "api_tokens": "15,234"},
        {"secrets": 1200, "apiKeys": 52_000, "found": {"passwords": 4_321, "пароли": 1_000}},
        {"secret": "grafana-tls-2024"},
        {"password": "${DB}"},
        {"password_policy": "strict"},
        {"next_token": "CAUQAA12345x"},
        {"password": None, "secret": True},
    ],
)
def test_other_fields_stay(value: dict[str, Any]) -> None:
    assert masked_values(value) is value
