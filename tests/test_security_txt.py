from django.test import Client
from pytest_django import Settings

URL = "/.well-known/security.txt"


def test_it_says_whom_to_tell_and_until_when(client: Client, settings: Settings) -> None:
    settings.SECURITY_CONTACT = ["mailto:security@example.com", "https://example.com/security"]
    settings.SECURITY_EXPIRES = "2999-01-31T02:00:00+02:00"

    answer = client.get(URL)

    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content.decode().splitlines() == [
        "Contact: mailto:security@example.com",
        "Contact: https://example.com/security",
        "Expires: 2999-01-31T00:00:00Z",
    ]
    assert client.post(URL).status_code == 405


def test_without_a_contact_there_is_none(client: Client) -> None:
    assert client.get(URL).status_code == 404
