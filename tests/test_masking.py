"""Secrets are masked wherever they stand, and what only looks like one stays."""

import time

import pytest

from app.masking import mask

# Put together here, so that no scanner takes a line of this file for somebody's secret.
AWS = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
HUB = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
OPEN = "sk-proj-" + "abcdefghijklmnopqrstuvwxyz0123"
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
        (f"Log in with {HUB}.", HUB),
        (f"The key {OPEN} leaked.", OPEN),
        ("https://host.example/x?token=abcdef1234567890abcdef", "abcdef1234567890abcdef"),
        ("https://host.example/?page=2&api_key=abcdef1234567890&n=1", "abcdef1234567890"),
        ("https://host.example/?access_token=abcdef1234567890", "abcdef1234567890"),
        ("https://user:p@ss@host.example/x", "p@ss"),
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
        "The password: a word that nobody should know by heart.",
        "forgot-password: the page that the link leads to",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text).text == text


GROWING = (BEGIN, f"{BEGIN}\n-a", "sk-", "sk-a-", "?token=", "A_", "a.password=", "x://a:b@", "TOKEN=", "PASSWORD")


@pytest.mark.parametrize("piece", GROWING)
def test_time_grows_with_the_text(piece: str) -> None:
    mask(piece)
    started = time.perf_counter()
    mask(piece * (500_000 // len(piece)))
    assert time.perf_counter() - started < 5
