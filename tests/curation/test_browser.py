"""The admin in a real browser: what a policy for content, a script or a style breaks shows only there."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from tenants.models import User
from tests.curation.conftest import House, make_house
from tests.people import opening

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver (apt-get install chromium-driver)"
    ),
]


@pytest.fixture
def house(transactional_db: None) -> House:
    User.objects.create_superuser("root", password="a long password")
    return make_house("alice", "wonderland")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for argument in (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--disable-dev-shm-usage", f"--user-data-dir={tmp_path / 'profile'}"),
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.implicitly_wait(10)
    yield driver
    driver.quit()


def test_a_person_logs_in_makes_a_key_and_opens_a_file(
    browser: webdriver.Chrome, live_url: str, house: House
) -> None:
    log_in(browser, live_url)
    key_text = make_a_key(browser, live_url, house)
    key = opening(key_text)
    assert key is not None
    assert (key.tenant, key.scopes) == (house.tenant, ["read"])

    browser.get(f"{live_url}/admin/tenants/apikey/")
    assert "made in a browser" in browser.page_source
    assert key_text not in browser.page_source

    browser.get(f"{live_url}/admin/tree/file/")
    browser.find_element(By.LINK_TEXT, "/wonderland.md").click()
    content = browser.find_element(By.TAG_NAME, "pre")
    assert content.text == "<script>alert('wonderland')</script>"
    assert "monospace" in content.value_of_css_property("font-family")
    assert complaints(browser) == []


def log_in(browser: webdriver.Chrome, live_url: str) -> None:
    browser.get(f"{live_url}/admin/")

    browser.find_element(By.NAME, "username").send_keys("root")
    browser.find_element(By.NAME, "password").send_keys("a long password")
    browser.find_element(By.CSS_SELECTOR, "input[type=submit]").click()
    assert browser.find_element(By.ID, "user-tools").is_displayed()


def make_a_key(browser: webdriver.Chrome, live_url: str, house: House) -> str:
    browser.get(f"{live_url}/admin/tenants/apikey/add/")
    Select(browser.find_element(By.NAME, "tenant")).select_by_visible_text(house.tenant.slug)
    browser.find_element(By.NAME, "name").send_keys("made in a browser")
    browser.find_element(By.CSS_SELECTOR, "input[name=scopes][value=read]").click()
    browser.find_element(By.CSS_SELECTOR, "input[type=submit]").click()
    return str(browser.find_element(By.ID, "new-key").text)


def complaints(browser: webdriver.Chrome) -> list[str]:
    """What the browser found fault with: scripts that failed, or that the content policy stopped."""
    logged = browser.get_log("browser")  # type: ignore[no-untyped-call]  # of selenium
    return [
        entry["message"]
        for entry in logged
        if entry["level"] == "SEVERE" and "favicon" not in entry["message"]
    ]
