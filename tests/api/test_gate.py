import pytest
from rest_framework.test import APIClient

from memsvc.api.gate import problem_with_url
from tests.api.support import FILES, problem


@pytest.mark.parametrize(
    "raw_path",
    [
        "/v1/me",
        "/v1/trees/caf%C3%A9/files/%F0%9F%91%8D.md",
        "/v1/trees/a/files/b%2Fc.md",
        "/v1/trees/a%2Fb/files",
        "/",
    ],
)
def test_a_url_of_whole_characters_passes(raw_path: str) -> None:
    assert problem_with_url({"RAW_URI": raw_path, "QUERY_STRING": "a=%C3%A9"}) == ""


@pytest.mark.parametrize(
    ("raw_path", "query"),
    [
        ("/%00", ""),
        ("/v1/trees/%00/files", ""),
        ("/%FF", ""),
        ("/%ED%A0%80", ""),
        ("/%C0%AE", ""),
        ("/v1/trees/a/index%2fx", ""),
        ("/v1/trees/default/entries/mem%2F1", ""),
        ("/v1/me", "a=%00"),
        ("/v1/me", "a=%FF"),
        ("/v1/me", "%ED%A0%80=1"),
    ],
)
@pytest.mark.parametrize("variable", ["RAW_URI", "REQUEST_URI"])
def test_a_url_that_holds_what_no_name_can_hold_is_refused(variable: str, raw_path: str, query: str) -> None:
    assert problem_with_url({variable: f"{raw_path}?{query}", "QUERY_STRING": query})


def test_the_refusal_is_a_problem_everywhere_but_in_the_admin(api: APIClient) -> None:
    for path in ("/%00", f"{FILES}/%00", "/v1/me?x=%ED%A0%80"):
        assert problem(api.get(path)) == (400, "invalid_request")
    for path in ("/admin/?q=%00", "/admin/?q=%FF", "/admin/tree/tree/%00/change/"):
        assert api.get(path).status_code == 404


def test_an_escape_that_is_no_text_is_not_taken_for_a_name(api: APIClient) -> None:
    answer = api.get(f"{FILES}/%FF", RAW_URI=f"{FILES}/%FF")

    assert problem(answer) == (400, "invalid_request")
