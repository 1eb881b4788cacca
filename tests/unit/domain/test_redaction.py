"""What is written down holds no secret, and everything else stays as it was."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleet.domain.redaction import MARKS, MASK, Redactor, is_secret, secret_values

REDACT = Redactor()
ALNUM = string.ascii_letters + string.digits
KEY_BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nx9y8\n-----END RSA PRIVATE KEY-----"


def some(size: int, letters: str = ALNUM):
    return st.text(letters, min_size=size, max_size=size)


SECRETS = st.one_of(
    some(24).map(lambda s: f"sk-{s}1x"),
    some(40).map(lambda s: f"sk-ant-api03-{s}"),
    some(36).map(lambda s: f"ghp_{s}"),
    some(36).map(lambda s: f"gho_{s}"),
    some(30, ALNUM + "_").map(lambda s: f"github_pat_{s}"),
    some(20).map(lambda s: f"xoxb-1234567890-{s}"),
    some(16, string.ascii_uppercase + string.digits).map(lambda s: f"AKIA{s}"),
    some(35).map(lambda s: f"AIza{s}"),
    some(20).map(lambda s: f"eyJ{s}.eyJ{s}.{s}"),
    st.just(KEY_BLOCK),
)
WORDS = st.text(string.ascii_lowercase + " \n.,()", max_size=40)


@given(WORDS, SECRETS, WORDS)
def test_a_secret_is_found_by_its_shape_in_any_text(before, secret, after):
    clean = REDACT.text(f"{before} {secret} {after}")
    assert secret not in clean
    assert clean == f"{before} {MASK} {after}"


@given(SECRETS, st.integers(0, 3))
def test_a_secret_is_found_however_deep_in_lists_objects_and_json_within_json(secret, depth):
    value = {"content": [{"type": "text", "text": secret}], "n": 7}
    for _ in range(depth):
        value = {"inner": [json.dumps(value)], "n": 7}
    clean = REDACT.value(value)
    assert json.dumps(secret)[1:-1] not in json.dumps(clean)
    assert clean.keys() == value.keys()
    assert clean["n"] == 7


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "api_key",
        "apiKey",
        "API-KEY",
        "x-api-key",
        "github_token",
        "authToken",
        "client_secret",
        "Authorization",
        "Set-Cookie",
        "cookies",
        "AWS_SECRET_ACCESS_KEY",
        "private_key",
        "passphrase",
        "db.password",
        "password2",
        "credentials",
    ],
)
def test_what_stands_under_a_secret_key_is_hidden(key):
    assert is_secret(key)
    found = REDACT.value({key: "hunter2", "list": [{key: ["hunter2", {"v": "hunter2"}]}]})
    assert "hunter2" not in json.dumps(found)
    assert REDACT.value({key: ""}) == {key: ""}
    assert REDACT.value({key: None}) == {key: None}


@pytest.mark.parametrize(
    "key",
    [
        "token_count",
        "max_tokens",
        "tokens",
        "output_tokens",
        "key",
        "keys",
        "primary_key",
        "secretary",
        "password_length",
        "cookie_banner",
        "tokenizer",
        "author",
        "7",
    ],
)
def test_a_harmless_key_stays(key):
    assert not is_secret(key)
    value = {key: "hunter2", "usage": {"input_tokens": 5, "max_tokens": 4096, "token_count": 3}}
    assert REDACT.value(value) == value


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("export DB_PASSWORD=correcthorse; next", f"export DB_PASSWORD={MASK}; next"),
        ("password = 'a b c' end", f"password = '{MASK}' end"),
        ('cut off {"token": "abc\\"def", "x', f'cut off {{"token": "{MASK}", "x'),
        (r"{\"token\": \"abc\", \"n\": 1} x", rf"{{\"token\": \"{MASK}\", \"n\": 1}} x"),
        ("api_key: 0123456789abcdef\nname: it", f"api_key: {MASK}\nname: it"),
        ("run --token abcdef --max-tokens 400", f"run --token {MASK} --max-tokens 400"),
        ("GET /?access_token=abcd1234&z=1", f"GET /?access_token={MASK}&z=1"),
        ("Authorization: Basic dXNlcjpwYXNz\nok", f"Authorization: {MASK}\nok"),
        ("curl -H 'Cookie: a=b; c=d' x", f"curl -H 'Cookie: {MASK}' x"),
        ("sent Bearer abc.def-123456 there", f"sent Bearer {MASK} there"),
        ("postgres://ada:p@ss@db/shop", f"postgres://ada:{MASK}@db/shop"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE cut off", MASK),
    ],
)
def test_a_secret_is_found_in_the_notations_people_use(text, clean):
    assert REDACT.text(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "The token: the next one is not ours.",
        "max_tokens=4096, token_count: 12",
        "a task-management-system-2000-things",
        "token=get_token()",
        "See https://example.com/a:b and mail ada@example.com.",
        "The bearer of good news",
        "the key to it is the keyboard",
        '{"usage": {"max_tokens": 5}}',
    ],
)
def test_harmless_words_stay(text):
    assert REDACT.text(text) == text


@given(st.text())
@example("password=\x1c0000")
def test_what_has_no_mark_of_a_secret_is_returned_as_it_is(text):
    if not any(mark in text.lower() for mark in MARKS):
        assert REDACT.text(text) == text


PIECES = st.sampled_from(
    (
        *('"password": "', "token=", "secret: ", "--token ", "Bearer ", "Cookie: ", "://a:b@", "'"),
        *('"', "\\", "\n", " ", "x1y2z3x1y2z3", "sk-", "[", "{", "=", ":", "api_key", "İ"),
        KEY_BLOCK[:40],
    )
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_to_redact_twice_is_to_redact_once(text):
    once = REDACT.text(text)
    assert REDACT.text(once) == once


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)


@given(JSONS)
def test_the_shape_of_a_value_stays(value):
    def shape(v):
        if isinstance(v, dict):
            return {k: shape(x) for k, x in v.items()}
        return [shape(x) for x in v] if isinstance(v, list) else None

    assert shape(REDACT.value(value)) == shape(value)


@given(st.text(ALNUM, min_size=9, max_size=40), WORDS)
def test_the_value_of_a_secret_variable_is_hidden_wherever_it_is_said(value, words):
    env = {"DEPLOY_TOKEN": value, "HOME": "/home/ada", "PIN_TOKEN": "short", "MAX_TOKENS": "1" * 20}
    assert secret_values(env) == [value]
    clean = Redactor(secret_values(env)).text(f"{words}<{value}>{words}")
    assert value not in clean.replace(MASK, "")


def test_where_credentials_lie_is_no_secret():
    assert secret_values({"GOOGLE_APPLICATION_CREDENTIALS": "/home/ada/key.json"}) == []


def test_json_too_deep_to_walk_is_read_as_text():
    deep = "[" * 5000 + '{"password": "hunter22"}' + "]" * 5000
    assert "hunter22" not in REDACT.text(deep)


@pytest.mark.parametrize(
    "text",
    [
        "PWD=/home/ada/shop",
        "OLDPWD=/home/ada/shop/src\nHOME=/home/ada",
        '{"pwd": "/home/ada/shop", "OLDPWD": "/tmp"}',
        "pwd: ~/shop/api/src",
        'export PWD="/home/ada/shop"',
    ],
)
def test_the_directory_of_a_shell_is_no_password(text):
    assert REDACT.text(text) == text


@pytest.mark.parametrize("text", ["pwd=hunter2hunter2", '{"db_pwd": "hunter2hunter2"}'])
def test_a_password_that_is_called_pwd_is_hidden(text):
    assert "hunter2" not in REDACT.text(text)
