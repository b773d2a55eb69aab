"""A real browser and a real server for the tests of the page."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from eigencurve.studio.launch import command

# For a machine that is busy with other tests; nothing is slept through.
PATIENCE = 180
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


def chromium() -> tuple[str, str]:
    """Paths of Chromium and its driver, installed where they are missing and that can be done; else skip."""
    if not _installed():
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            pytest.skip("there is no chromium and chromedriver, and only root with apt-get can install them")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        packages = ["install", "--yes", "--no-install-recommends", "chromium", "chromium-driver"]
        for words in (["update"], packages):
            wait = ["-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"]
            done = subprocess.run(["apt-get", *wait, *words], env=quiet, capture_output=True, text=True, check=False)
        if not _installed():
            pytest.skip(f"apt-get could not install chromium: {done.stderr.strip()[-300:]}")
    return shutil.which("chromium"), shutil.which("chromedriver")


def _installed() -> bool:
    return shutil.which("chromium") is not None and shutil.which("chromedriver") is not None


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The page's address, from a server that runs in ``folder``."""
    for _ in range(3):  # between finding a free port and listening on it, somebody else may take it
        port = _free_port()
        with (folder / "server.log").open("w") as log:
            server = subprocess.Popen(
                command(port=port, open_browser=False), cwd=folder, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            if _answers(server, port):
                yield f"http://127.0.0.1:{port}"
                return
        finally:
            server.terminate()
            server.wait(PATIENCE)
    pytest.fail("the server did not start:\n" + (folder / "server.log").read_text())


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _answers(server: subprocess.Popen, port: int) -> bool:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    return False


class Page:
    """The studio in a browser window."""

    def __init__(self, driver: webdriver.Chrome, address: str, downloads: Path) -> None:
        self.driver, self.address, self.downloads = driver, address, downloads

    def open(self, query: str = "") -> None:
        self.driver.get(f"{self.address}/?{query}")
        self.until(lambda: self.all('[data-testid="stHeading"]'), "a heading")

    def until(self, condition, what: str):
        """The first true value of ``condition``, which elements that are just being redrawn may spoil."""
        wait = WebDriverWait(self.driver, PATIENCE, poll_frequency=0.1, ignored_exceptions=[Exception])
        try:
            return wait.until(lambda _: condition())
        except TimeoutException:
            pytest.fail(f"waited in vain for {what}; the page says: {self.text()[:3000]}")

    def all(self, selector: str) -> list:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self) -> str:
        return self.driver.find_element(By.TAG_NAME, "body").text

    def setting(self, name: str):
        """The input of a setting, once it is drawn."""
        return self.until(lambda: self.all(f".st-key-{name} input"), f"the setting {name}")[0]

    def type(self, name: str, text: str) -> None:
        """Type a value into the field of a setting."""
        self.setting(name).send_keys(Keys.CONTROL, "a")
        self.setting(name).send_keys(text, Keys.ENTER)

    def table(self) -> list[list[str]]:
        """The cells of the table of the plan, without its header."""
        script = """
            return [...document.querySelectorAll('.st-key-verdict table')[0].querySelectorAll('tbody tr')].map(row =>
                [...row.querySelectorAll('th, td')].map(cell => cell.innerText.trim()))"""
        return self.driver.execute_script(script)

    def verdict(self) -> str:
        """The verdict at the top; empty while there is none."""
        paragraphs = self.all('.st-key-verdict [data-testid="stMarkdown"] p')
        return paragraphs[0].text if paragraphs else ""

    def top_of_verdict(self) -> float:
        """Where the verdict begins, in pixels below the top of the window."""
        script = "return document.querySelector('.st-key-verdict').getBoundingClientRect().top"
        return float(self.driver.execute_script(script))

    def quiet(self) -> bool:
        """Whether the script has ended and every figure is drawn."""
        running = self.all('[data-testid="stStatusWidget"], [data-testid="stSkeleton"]')
        return not running and len(self.all(".js-plotly-plot .main-svg")) >= 2

    def download(self, label: str, name: str) -> bytes:
        """Click a button, as a person would, and wait for the whole file."""
        path = self.downloads / name
        path.unlink(missing_ok=True)
        self.until(self.quiet, "the figures")
        self.until(lambda: self._clicked(label), f"the button {label}")
        self.until(lambda: path.exists() and not list(self.downloads.glob("*.crdownload")), f"the file {name}")
        return path.read_bytes()

    def _clicked(self, label: str) -> bool:
        """A script's click would not do: a browser saves a file only for one who clicks."""
        button = next(b for b in self.all('[data-testid="stDownloadButton"] button') if label in b.text)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        return True

    def severe(self) -> list[str]:
        """What the console calls an error."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def strangers(self) -> list[str]:
        """Addresses outside this page that were asked for anything."""
        script = "return performance.getEntriesByType('resource').map(entry => entry.name)"
        own = (self.address, self.address.replace("http", "ws"), "data:", "blob:")
        return [name for name in self.driver.execute_script(script) if not name.startswith(own)]

    def overflow(self) -> int:
        """How many pixels the content is wider than the window."""
        script = """
            const main = document.querySelector('[data-testid="stMain"]');
            return Math.max(main.scrollWidth - main.clientWidth, document.documentElement.scrollWidth - innerWidth)"""
        return int(self.driver.execute_script(script))

    def usual(self) -> None:
        """Make the window as it was before :meth:`whole`."""
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def whole(self, width: int) -> None:
        """Make the window as high as the page."""
        self.until(self.quiet, "the figures")
        height = self.driver.execute_script("return document.querySelector('[data-testid=\"stMain\"]').scrollHeight")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.until(lambda: self.driver.execute_script("return innerHeight") == height, "the window's height")

    def screenshot(self, name: str) -> Path:
        """The window as it is, kept as build output."""
        self.until(self.quiet, "the figures")
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        path.write_bytes(b64decode(picture["data"]))
        return path


@contextlib.contextmanager
def window(address: str, folder: Path, width: int, height: int, dark: bool = False) -> Iterator[Page]:
    """A browser of that size with an empty profile, on the page's address."""
    binary, driver_path = chromium()
    downloads = folder / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if width < 600:
        phone = {"deviceMetrics": {"width": width, "height": height, "pixelRatio": 1, "touch": True}}
        options.add_experimental_option("mobileEmulation", phone)
    driver = webdriver.Chrome(options=options, service=Service(driver_path))
    try:
        driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
        )
        driver.set_page_load_timeout(PATIENCE)
        yield Page(driver, address, downloads)
    finally:
        driver.quit()
