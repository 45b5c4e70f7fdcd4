"""The documentation page in a real browser, under the content security policy that every page has."""

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from tests.api.test_openapi import OPERATIONS
from tests.curation.test_browser import CHROMIUM, DRIVER, browser

__all__ = ["browser"]

pytestmark = [
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.django_db(transaction=True),
]


def test_the_page_shows_every_operation_and_asks_no_other_host(
    browser: webdriver.Chrome, live_url: str
) -> None:
    browser.get(f"{live_url}/v1/docs")

    shown = browser.find_elements(By.CLASS_NAME, "opblock-summary")
    complaints = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]  # type: ignore[no-untyped-call]  # of selenium
    assert complaints == []
    assert len(shown) == len(OPERATIONS)
    asked = browser.execute_script("return performance.getEntriesByType('resource').map(found => found.name)")
    assert [url for url in asked if not url.startswith((live_url, "data:"))] == []
