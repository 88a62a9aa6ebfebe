"""A headless Chromium; tests that need one are skipped, with the reason, where it is not."""

import os
import shutil
import subprocess

import pytest

CHROMIUM = shutil.which(os.environ.get("CHROMIUM", "chromium")) or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@pytest.fixture(scope="session")
def chromium():
    webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not there: pip install selenium")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no Chromium with its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for option in OPTIONS:
        options.add_argument(option)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium):
    """The browser, whose console must have nothing to say in the end."""
    chromium.get_log("browser")
    yield chromium
    assert chromium.get_log("browser") == []


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The script of axe-core, from the folder AXE_CORE or from npm."""
    folder = os.environ.get("AXE_CORE")
    if folder is None:
        if shutil.which("npm") is None:
            pytest.skip("there is no npm to get axe-core by")
        folder = tmp_path_factory.mktemp("axe")
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, "axe-core@4"]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("axe-core cannot be installed from npm")
        folder = folder / "node_modules" / "axe-core"
    with open(os.path.join(folder, "axe.min.js"), encoding="utf-8") as file:
        return file.read()
