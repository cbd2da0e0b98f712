"""Which host a header, an origin or a setting names."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from api.access.host_names import allowed_name, host_of, host_of_origin, hosts_of_environment
from api.serving import known_as
from api.settings import Settings
from planner.errors import DocumentInvalid


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8642", "localhost"),
        ("localhost.:80", "localhost"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("[::1]:8642", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("plans.example.org", "plans.example.org"),
    ],
)
def test_the_host_of_an_authority(authority: str, host: str) -> None:
    assert host_of(authority) == host


@pytest.mark.parametrize(
    "authority",
    [
        *("", ".", ":80", "[::1", "[::1]x", "[fe80::1%eth0]", "::1", "a b", "a/b", "localhost@evil.example"),
        *("evil.example#localhost", "localhost:80:80", "localhost:123456", "localhost,evil.example"),
    ],
)
def test_what_is_no_authority_names_no_host(authority: str) -> None:
    assert host_of(authority) is None


def test_the_host_of_an_origin() -> None:
    assert host_of_origin("http://LOCALHOST:5173") == "localhost"
    assert host_of_origin("https://[::1]") == "::1"
    for text in ("null", "", "file://", "localhost", "http://a/b", "http://localhost:1@evil.example"):
        assert host_of_origin(text) is None


def test_settings_name_hosts_and_nothing_else() -> None:
    named = Settings(allowed_hosts=("Plans.Example.org", "::1", "[::1]", "10.0.0.7"))
    assert named.allowed_hosts == ("plans.example.org", "::1", "::1", "10.0.0.7")
    for text in ("http://a", "a:80", "[::1]:80", "a/b", "*.example.org", ""):
        with pytest.raises(ValueError, match="is no host"):
            allowed_name(text)


def test_any_host_needs_authentication() -> None:
    assert Settings(allowed_hosts=("*",), authentication=True).allowed_hosts == ("*",)
    with pytest.raises(ValidationError, match="act as admin"):
        Settings(allowed_hosts=("*",))


def test_the_environment_names_hosts_by_commas_or_spaces() -> None:
    assert hosts_of_environment({"MESHWRIGHT_ALLOWED_HOSTS": "a.example, b.example c"}) == (
        "a.example",
        "b.example",
        "c",
    )
    assert hosts_of_environment({"MESHWRIGHT_ALLOWED_HOSTS": " "}) is None
    assert hosts_of_environment({}) is None


def test_the_address_that_is_listened_on_is_a_name_of_the_service() -> None:
    assert known_as(Settings(), "10.0.0.7").allowed_hosts == ("10.0.0.7",)
    for wildcard in ("0.0.0.0", "::"):
        assert known_as(Settings(), wildcard).allowed_hosts == ()
    with pytest.raises(DocumentInvalid):
        known_as(Settings(), "http://a")
