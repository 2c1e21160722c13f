"""Waits and keys in what a provider says."""

from __future__ import annotations

import email.utils
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksearch.errors import ModelError, RateLimited
from ksearch.models.classify import clean, http_error, message_of, retry_after_s


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "7"}, "", 7),
        ({"retry-after": "1.5"}, "", 1.5),
        ({"retry-after-ms": "250", "Retry-After": "7"}, "", 0.25),
        ({}, '{"error": {"details": [{"retryDelay": "32s"}]}}', 32),
        ({}, "", None),
        ({"Retry-After": "soon"}, "", None),
        ({"Retry-After": "-5"}, "", None),
        ({"Retry-After": "nan"}, "", None),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", 0),
    ],
)
def test_the_wait_is_read_in_each_of_its_forms(headers: dict[str, str], body: str, seconds: float | None) -> None:
    assert retry_after_s(headers, body) == seconds


def test_a_date_is_a_wait_from_now() -> None:
    wait = retry_after_s({"Retry-After": email.utils.formatdate(time.time() + 100, usegmt=True)})
    assert wait is not None
    assert 90 < wait <= 100


def test_google_words_for_a_limit_per_minute_are_no_quota_when_it_says_when_to_come_back() -> None:
    body = b'{"error": {"message": "You exceeded your current quota", "details": [{"retryDelay": "20s"}]}}'
    error = http_error("google:g", 429, {}, body)
    assert type(error) is RateLimited
    assert error.retry_after_s == 20


@pytest.mark.parametrize(
    "key", ["sk-abc123def456", "sk-proj-a_b-c-1234567", "gsk_x sk-12345678", "AIzaSyA12345678", "Bearer abc.def"]
)
def test_keys_that_providers_echo_are_not_repeated(key: str) -> None:
    secret = key.split()[-1]
    assert secret not in clean(f"Incorrect API key provided: {key}. Find yours at ...")


@given(st.binary(), st.integers(300, 599), st.dictionaries(st.text(), st.text()))
def test_any_answer_at_all_is_an_error_of_the_family(body: bytes, status: int, headers: dict[str, str]) -> None:
    error = http_error("x", status, headers, body)
    assert isinstance(error, ModelError)
    assert str(error).isprintable()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"error": {"message": "a"}}', "a"),
        ('{"error": "a"}', "a"),
        ('{"detail": "a"}', "a"),
        ('{"message": "a"}', "a"),
        ("a\n b", "a b"),
        ("", ""),
        ('["a"]', '["a"]'),
    ],
)
def test_the_message_is_found_in_each_of_its_forms(body: str, message: str) -> None:
    assert message_of(body) == message
