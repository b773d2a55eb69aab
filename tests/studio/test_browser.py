"""The page as a person uses it: Debian's Chromium, driven by Selenium."""

import dataclasses
import json
from urllib.parse import urlencode

import numpy as np
import pytest
from numpy.testing import assert_allclose
from selenium.webdriver.common.keys import Keys
from tests.planning.logged import write_logs
from tests.spectrum.test_noise import noise
from tests.studio import browser
from tests.studio.drawn import losses_of, view_of
from tests.studio.opened import UNMEASURED

import eigencurve as ec
from eigencurve.planning.forecasts import LogSettings, forecast_view, plan_from_view, read_runs
from eigencurve.planning.warnings import rate_limit
from eigencurve.studio import texts
from eigencurve.studio.source import Upload, subject_of
from eigencurve.studio.state import Settings, to_params

SMALL = Settings(zoo=UNMEASURED, epochs=10, steps_per_epoch=50)
NOISIER = dataclasses.replace(SMALL, noise=2e4)
OWN = ec.Spectrum([-0.01, 0.002, 0.1, 3.0], [1, 5, 3, 1], dim=10)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    browser.chromium()
    with browser.served(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture(scope="module")
def desktop(address, tmp_path_factory):
    with browser.window(address, tmp_path_factory.mktemp("desktop"), 1280, 900) as page:
        yield page


@pytest.fixture
def page(desktop):
    yield desktop
    assert desktop.severe() == []
    assert desktop.strangers() == []


def test_a_moved_slider_shows_the_librarys_numbers_and_the_address_restores_them(page):
    before, after = losses_of(SMALL), losses_of(NOISIER)
    assert before != after
    page.open(urlencode(to_params(SMALL)))
    page.until(lambda: page.losses() == before, "the losses")
    page.press("noise", Keys.ARROW_RIGHT)
    page.until(lambda: page.losses() == after, "the losses at the new noise")
    problem = ec.NoisyQuadratic(subject_of(NOISIER).spectrum, NOISIER.noise, 1.0)
    exact = problem.compare({"Cosine": ec.cosine(500, 0.1)}, tune_lr=True)
    assert_allclose(float(page.losses()["Cosine"]), exact["Cosine"].loss, rtol=0.01)

    page.until(lambda: "noise=20000" in page.driver.current_url, "the address")
    link = page.driver.current_url
    page.open(urlencode(to_params(SMALL)))
    page.until(lambda: page.losses() == before, "the losses of the first address")
    page.driver.get(link)
    page.until(lambda: page.losses() == after, "the losses of the link")
    page.until(lambda: page.says("noise") == "20000", "the noise of the link")


def test_opens_with_the_verdict_and_another_noise_changes_it(page):
    noisier = dataclasses.replace(SMALL, noise=2e4)
    before, after = (_plan(settings).verdict for settings in (SMALL, noisier))
    assert before != after
    page.open(urlencode(to_params(SMALL)))
    page.until(lambda: page.verdict() == before, "the verdict")
    assert all(sentence.replace("`", "") in page.text() for sentence in _plan(SMALL).warnings)
    limit = rate_limit(subject_of(SMALL))
    about = f"{limit.about(SMALL.lr)}."
    page.until(lambda: about in page.all('[data-testid="stSidebar"]')[0].text, "the limit next to the rate")
    page.until(lambda: f"Peak rate {about}" in page.text(), "the limit above the curves")
    page.press("noise", Keys.ARROW_RIGHT)
    page.until(lambda: page.verdict() == after, "the verdict at the new noise")


def _plan(settings):
    return ec.plan(settings.zoo, total_steps=settings.total_steps, lr=settings.lr, noise=settings.noise)


def test_what_is_downloaded_is_the_schedule(page):
    settings = dataclasses.replace(SMALL, beta=1.0)
    page.open(urlencode(to_params(settings)))
    page.until(page.losses, "the losses")
    schedule = view_of(settings).curves.schedules["eigencurve"]
    page.until(page.verdict, "the verdict")
    assert ec.schedule_from_dict(json.loads(page.download("JSON", "eigencurve.json"))) == schedule
    head, *lines = page.download("CSV", "eigencurve.csv").decode().splitlines()
    steps, rates = zip(*(line.split(",") for line in lines), strict=True)
    assert head == "step,lr"
    assert [int(step) for step in steps] == list(range(500))
    assert np.array_equal([float(rate) for rate in rates], schedule.values())


def test_a_good_file_and_a_bad_one(page, tmp_path):
    good, bad = tmp_path / "own spectrum.npz", tmp_path / "bad.txt"
    ec.save_spectrum(OWN, good)
    bad.write_text("1.0 0.5\n2.0 <b>half</b>\n")
    settings = dataclasses.replace(SMALL, source="upload")
    losses = losses_of(settings, Upload(good.name, OWN))
    page.open(urlencode(to_params(settings)))
    page.until(lambda: texts.NO_FILE in page.text(), "the question for a file")

    file_input = page.until(lambda: page.all("input[type=file]"), "the file input")[0]
    file_input.send_keys(str(good))
    page.until(lambda: page.losses() == losses, "the losses of the file")
    assert "own spectrum.npz" in page.text()
    assert 'ec.load_spectrum("own spectrum.npz")' in page.text()

    page.until(lambda: page.all("input[type=file]"), "the file input")[0].send_keys(str(bad))
    page.until(lambda: "two numbers per line" in page.text(), "the refusal")
    assert "line 2: '2.0 <b>half</b>'" in page.text()
    assert "Traceback" not in page.text()
    assert page.losses() == {}


def test_measured_noise_of_a_file_can_be_overridden(page, tmp_path):
    path = tmp_path / "noisy.npz"
    ec.save_spectrum(OWN, path, noise=noise())
    upload, settings = Upload(path.name, OWN, noise()), dataclasses.replace(SMALL, source="upload")
    measured, own = losses_of(settings, upload), losses_of(dataclasses.replace(settings, noise=2.0), upload)
    page.open(urlencode(to_params(settings)))
    page.until(lambda: page.all("input[type=file]"), "the file input")[0].send_keys(str(path))
    page.until(lambda: page.losses() == measured, "the losses with the measured noise")
    assert "Noise: measured, σ² = 0.9 (B = 4, γ = 1.10)" in page.text()
    page.until(lambda: page.all(".st-key-set_noise_choice label"), "the choice")[-1].click()
    page.until(lambda: page.says("noise") == "1", "the nearest value on the slider")
    page.press("noise", Keys.ARROW_RIGHT)
    page.until(lambda: page.losses() == own, "the losses with another noise")
    assert "Noise: given, σ² = 2" in page.text()


def test_forecasts_from_two_logs_and_a_bad_one(page, tmp_path):
    good = write_logs(tmp_path)
    view = forecast_view(read_runs(good, LogSettings()).runs, best=True)
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    page.open(urlencode(to_params(SMALL)))
    page.until(page.losses, "the first page")
    page.until(lambda: _clicked(page, texts.FORECAST_TITLE), "the link to the page")
    page.until(lambda: "Two runs with different schedules" in page.text(), "the question for logs")
    page.until(lambda: page.all("input[type=file]"), "the file input")[0].send_keys("\n".join(map(str, good)))
    expected = {row.name + " *" * bool(row.beyond): f"{row.loss:.4f}" for row in view.table.rows}
    page.until(lambda: page.losses() == expected, "the forecasts")
    first, longer = plan_from_view(view), plan_from_view(forecast_view(view.runs, 4000, best=True))
    page.until(lambda: page.verdict() == first.verdict, "the verdict")
    assert page.overflow() <= 0
    page.whole(1280)
    page.screenshot("forecast")
    page.usual()
    assert ec.schedule_from_dict(json.loads(page.download("JSON", "best.json"))) == view.best.schedule
    steps = page.until(lambda: page.all('[class*="st-key-plan_steps"] input'), "the number of steps")[0]
    steps.send_keys(Keys.CONTROL, "a")
    steps.send_keys("4000", Keys.ENTER)
    page.until(lambda: page.verdict() == longer.verdict, "the verdict for a longer run")
    page.until(lambda: page.all("input[type=file]"), "the file input")[0].send_keys(str(tmp_path / "bad.csv"))
    page.until(lambda: "bad.csv: no column of steps" in page.text(), "the refusal")
    assert page.losses() == {}


def _clicked(page, label):
    next(link for link in page.all("a") if label in link.text).click()
    return True


def test_a_bad_address_is_explained(page):
    losses = losses_of(SMALL)
    page.open(f"zoo={UNMEASURED}&lr=fast&epochs=10&steps_per_epoch=50&colour=red")
    page.until(lambda: page.losses() == losses, "the losses of the defaults")
    assert "'lr' must be a number, got 'fast'. The default is used." in page.text()
    assert "no setting 'colour'" in page.text()


def test_the_best_schedule_and_the_desktops_looks(page):
    settings = dataclasses.replace(SMALL, best=True)
    page.open(urlencode(to_params(settings)))
    page.until(lambda: "Numerically best" in page.losses(), "the best schedule")
    assert [page.says(name) for name in ("epochs", "steps_per_epoch", "lr", "noise")] == ["10", "50", "0.1", "10000"]
    assert page.overflow() <= 0
    page.whole(1280)
    assert page.screenshot("desktop").stat().st_size > 10_000
    page.usual()


def test_the_dark_page(address, tmp_path):
    with browser.window(address, tmp_path, 1280, 900, dark=True) as page:
        page.open()
        page.until(page.losses, "the losses")
        script = "return getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).backgroundColor"
        red, green, blue = (int(part) for part in page.driver.execute_script(script)[4:-1].split(",")[:3])
        assert max(red, green, blue) < 64
        page.whole(1280)
        page.screenshot("dark")
        assert page.severe() == []


def test_the_phone(address, tmp_path):
    with browser.window(address, tmp_path, 390, 844) as page:
        losses = losses_of(SMALL)
        page.open(urlencode(to_params(SMALL)))
        page.until(lambda: page.losses() == losses, "the losses")
        page.until(page.verdict, "the verdict")
        assert page.top_of_verdict() < 844
        assert page.overflow() <= 0
        assert page.wide_tables() == 0
        page.until(lambda: page.all('[data-testid="stExpandSidebarButton"]'), "the sidebar's button")[0].click()
        page.until(lambda: page.setting("noise", "label").is_displayed(), "the sidebar")
        page.screenshot("phone-settings")
        page.driver.execute_script(
            "arguments[0].click()", page.all('[data-testid="stSidebarCollapseButton"] button')[0]
        )
        page.until(lambda: page.all('[data-testid="stExpandSidebarButton"]'), "the page alone")
        page.whole(390)
        page.screenshot("phone")
        assert page.severe() == []
        assert page.strangers() == []
