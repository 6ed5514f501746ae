"""A headless Chromium, as a reader of a page has one."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium and chromedriver here (Debian: chromium, chromium-driver)"
)

QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)


@contextmanager
def browser(profile, width=1280, height=1000) -> Iterator:
    """A browser with an empty profile in the folder `profile`, whose console and network are written down."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*QUIET, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def wait_until(driver, script, seconds=20.0):
    """Wait until a JavaScript expression holds."""
    until = time.monotonic() + seconds
    while not driver.execute_script(f"return {script}"):
        assert time.monotonic() < until, f"never came true: {script}"
        time.sleep(0.02)


def prefer_dark(driver, dark):
    """What the reader's system says of colours."""
    value = "dark" if dark else "light"
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": value}]}
    )
