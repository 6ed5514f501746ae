"""The page in a browser: it opens from a file, asks for nothing, its tables sort, its map tells the truth."""

import base64
import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from kvsim.reporting.page import pictures, write_report
from kvsim.reporting.page.report import PAGE
from kvsim.step import CLASSES
from tests.reporting.page.browsing import browser, needs_browser, prefer_dark, wait_until
from tests.reporting.page.subjects import HOSTILE, HOSTILE_VARIANT, POOL_TOKENS, hostile_subject

pytestmark = [pytest.mark.browser, needs_browser]

SHOTS = Path(__file__).parents[3] / "build" / "screenshots"
"""Screenshots are kept here, to be looked at."""

DRAWN = "document.getElementById('map').dataset.drawn === 'true'"


@pytest.fixture(scope="module")
def subject():
    return hostile_subject()


@pytest.fixture(scope="module")
def page(subject, tmp_path_factory):
    """A browser that shows the page of the subject; made once, since it takes a second or two to start."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "FIGURES", pictures.FIGURES[:2])  # how they are drawn is tested elsewhere
        write_report(subject, folder, formats=("png",))
    with browser(tmp_path_factory.mktemp("profile")) as driver:
        driver.get((folder / PAGE).as_uri())
        wait_until(driver, DRAWN)
        yield driver


def settle(driver):
    """Wait until everything is drawn, and two frames more, so that it is seen."""
    wait_until(driver, DRAWN)
    driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")


def part(driver, name):
    return driver.find_element("css selector", f"#map [data-part={name}]")


def pixels(driver, name):
    """A screenshot, kept under this name: an array of height x width x 3."""
    from matplotlib.image import imread

    data = driver.get_screenshot_as_png()
    SHOTS.mkdir(parents=True, exist_ok=True)
    (SHOTS / f"{name}.png").write_bytes(data)
    return imread(io.BytesIO(data), format="png")[:, :, :3]


def canvas_pixels(driver, place=0, strip=False):
    """What a canvas of the map shows, as an array of height x width x 4."""
    which = f"document.querySelectorAll('#map .plane')[{place}].querySelectorAll('canvas')[{int(strip)}]"
    width, height, flat = driver.execute_script(
        f"const c = {which}; const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "return [c.width, c.height, btoa(Array.from(d, (one) => String.fromCharCode(one)).join(''))];"
    )
    return np.frombuffer(base64.b64decode(flat), np.uint8).reshape(height, width, 4)


def requests_of(driver):
    """The addresses that the page asked for, but for itself and what is written out in it."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    urls = [one["request"]["url"] for one in asked if one["documentURL"] == driver.current_url]
    assert driver.current_url in urls
    return [url for url in urls if url != driver.current_url and not url.startswith("data:")]


def click(driver, element):
    """Click it where nothing lies above it."""
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def test_it_opens_from_a_file_without_an_error_or_a_request(page):
    assert [entry for entry in page.get_log("browser") if entry["level"] != "INFO"] == []
    assert requests_of(page) == []
    assert page.current_url.startswith("file://")


def test_hostile_names_are_shown_as_text_and_nothing_of_them_runs(page):
    assert page.find_element("css selector", "h1").text == HOSTILE
    assert page.title.startswith(HOSTILE)
    assert HOSTILE_VARIANT in [one.text for one in page.find_elements("css selector", "tbody th")]
    assert part(page, "planes").find_element("css selector", "strong").text == HOSTILE_VARIANT
    assert page.find_elements("css selector", "main b:not([class])") == []
    assert page.execute_script("return document.scripts.length") == 2  # the data and the page's own


def test_a_name_without_end_makes_nothing_wider_than_the_window(page):
    assert page.execute_script("return document.documentElement.scrollWidth") <= 1280
    column = page.find_element("css selector", "#summary tbody th")
    assert column.size["width"] < 640


def test_tables_sort_by_click_and_by_keyboard(page):
    from selenium.webdriver.common.keys import Keys

    table = page.find_element("css selector", "#summary table")
    heads = table.find_elements("css selector", "thead th")
    column = next(place for place, head in enumerate(heads) if head.text.startswith("waste"))

    def values():
        cells = table.find_elements("css selector", f"tbody tr :nth-child({column + 1})")
        return [float(cell.get_attribute("data-n")) for cell in cells]

    before = values()
    button = heads[column].find_element("css selector", "button")
    click(page, button)
    assert heads[column].get_attribute("aria-sort") == "ascending"
    assert values() == sorted(before)
    button.send_keys(Keys.ENTER)
    assert heads[column].get_attribute("aria-sort") == "descending"
    assert values() == sorted(before, reverse=True)
    button.send_keys(Keys.SPACE)
    assert heads[column].get_attribute("aria-sort") == "none"
    assert values() == before


def pool_at(result, time_s):
    """What the addresses of a run say of every slot at a time: its class, its request ("": nobody's), since when."""
    pool = [("free", "", 0.0)] * POOL_TOKENS
    table = result.tables["addresses"]
    columns = (table[name] for name in ("time_s", "start", "length", "request", "class"))
    for at, start, length, request, kind in zip(*columns, strict=True):
        if at <= time_s + 1e-6:
            pool[start : start + length] = [(kind, "" if request is None else str(request), at)] * length
    return pool


@pytest.mark.parametrize("place", [0, 1])
def test_the_tip_says_what_the_addresses_say(page, subject, place):
    from selenium.webdriver import ActionChains

    result = subject.results[place]
    canvas = page.find_elements("css selector", "#map .plane canvas:first-of-type")[place]
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    length_s = max(one.metrics["simulated_s"] for one in subject.results)
    width, height = (
        page.execute_script(f"return arguments[0].{name}", canvas) for name in ("clientWidth", "clientHeight")
    )
    left, right, top, bottom = (
        page.execute_script(f"return kvsim.{name}") for name in ("LEFT", "RIGHT", "TOP", "BOTTOM")
    )
    wide, high = width - left - right, height - top - bottom
    seen = set()
    for across, up in ((0.2, 0.03), (0.35, 0.2), (0.5, 0.08), (0.5, 0.6), (0.6, 0.3), (0.99, 0.5)):
        x, y = round(left + across * wide), round(top + (1 - up) * high)
        ActionChains(page).move_to_element_with_offset(canvas, x - width // 2, y - height // 2).perform()
        tip = part(page, "tip")
        time_s, slot = float(tip.get_attribute("data-time")), int(tip.get_attribute("data-slot"))
        assert time_s == pytest.approx((x - left) / wide * length_s, abs=2.1 * length_s / wide)
        assert slot == pytest.approx((1 - (y - top) / high) * POOL_TOKENS, abs=2.1 * POOL_TOKENS / high + 1)
        pool = pool_at(result, time_s)
        kind, request, since = pool[slot]
        seen.add(kind)
        assert (tip.get_attribute("data-kind"), tip.get_attribute("data-request")) == (kind, request)
        assert float(tip.get_attribute("data-since")) == pytest.approx(since, abs=1e-5)
        if request:
            row = list(result.tables["requests"]["id"]).index(int(request))
            prompt, output = (result.tables["requests"][name][row] for name in ("prompt_tokens", "output_tokens"))
            assert f"request {request}" in tip.text.splitlines()
            assert f"prompt {prompt:,}, output {output:,} tokens" in tip.text
            holds = Counter(one for one, whose, _ in pool if whose == request)
            told = ", ".join(f"{holds[name]:,} {name}" for name in CLASSES if holds[name])
            assert tip.text.splitlines()[-1] == f"holds {told}"
    assert len(seen) > 1


def test_the_cursor_moves_by_keyboard_and_escape_puts_it_away(page):
    from selenium.webdriver.common.keys import Keys

    canvas = page.find_element("css selector", "#map .plane canvas:first-of-type")
    canvas.send_keys(Keys.HOME)
    tip = part(page, "tip")
    assert tip.is_displayed()
    assert float(tip.get_attribute("data-time")) == 0
    slot = int(tip.get_attribute("data-slot"))
    canvas.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_UP)
    assert float(tip.get_attribute("data-time")) > 0
    assert int(tip.get_attribute("data-slot")) > slot
    canvas.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()


def test_the_map_scrubs_to_the_state_that_the_addresses_say(page, subject):
    slider, length_s = part(page, "time"), max(one.metrics["simulated_s"] for one in subject.results)
    for share in (0.3, 0.7, 0.1):
        page.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))", slider, share * 2000
        )
        time_s = share * length_s
        assert part(page, "clock").text == f"{time_s:,.2f} s"
        settle(page)
        for place, result in enumerate(subject.results):
            kinds = [kind for kind, _, _ in pool_at(result, time_s)]
            told = page.find_elements("css selector", "#map .plane figcaption span")[place].text
            shares = {name: round(kinds.count(name) / POOL_TOKENS * 100, 1) for name in dict.fromkeys(kinds)}
            assert {name: float(number) for name, number, _ in map(str.split, told.split(" · "))} == {
                name: share for name, share in shares.items() if share
            }


def test_the_map_plays_and_pauses_and_changes_while_it_does(page):
    page.execute_script("arguments[0].value = 0; arguments[0].dispatchEvent(new Event('input'))", part(page, "time"))
    page.execute_script("arguments[0].value = '4'", part(page, "speed"))
    before = canvas_pixels(page, strip=True)
    click(page, part(page, "play"))
    assert part(page, "play").text == "Pause"
    wait_until(page, "Number(document.querySelector('[data-part=time]').value) > 400")
    click(page, part(page, "play"))
    assert part(page, "play").text == "Play"
    assert (canvas_pixels(page, strip=True) != before).any()
    stands = part(page, "time").get_attribute("value")
    page.execute_async_script("setTimeout(arguments[0], 100)")
    assert part(page, "time").get_attribute("value") == stands


def test_colour_by_request_tells_more_owners_apart_and_zoom_shows_single_slots(page):
    def colours():
        settle(page)
        return len(np.unique(canvas_pixels(page, place=1).reshape(-1, 4), axis=0))

    by_class = colours()
    click(page, page.find_element("css selector", "#map input[value=request]"))
    assert colours() > by_class + 5
    click(page, page.find_element("css selector", "#map input[value=class]"))
    for _ in range(5):
        click(page, part(page, "closer"))
    wait_until(page, DRAWN)
    click(page, part(page, "all"))
    assert colours() == by_class


def test_every_control_of_the_map_is_reached_by_tab_and_shows_its_focus(page):
    from selenium.webdriver.common.keys import Keys

    page.execute_script("[...document.querySelectorAll('#summary button')].at(-1).focus()")
    reached = {}
    for _ in range(9):
        page.switch_to.active_element.send_keys(Keys.TAB)
        name, outline = page.execute_script(
            "const e = document.activeElement;"
            "return [e.dataset.part || e.getAttribute('aria-label') || e.name, getComputedStyle(e).outlineStyle]"
        )
        reached[name] = outline
    maps = [name for name in reached if "what lies at which address" in name]
    assert list(reached) == ["play", "time", "speed", "map-colour", "closer", "farther", "all", *maps]
    assert len(maps) == 2
    assert "none" not in reached.values()


@pytest.mark.parametrize("look", ["light", "dark", "narrow"])
def test_a_screenshot_is_kept_and_is_not_blank(page, look):
    prefer_dark(page, look == "dark")
    if look == "narrow":
        page.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": 380, "height": 900, "deviceScaleFactor": 1, "mobile": True}
        )
    try:
        settle(page)
        for name in ("summary", "map", "figures"):
            page.execute_script(f"document.getElementById('{name}').scrollIntoView({{behavior: 'instant'}})")
            settle(page)
            shot = pixels(page, f"{name}-{look}")
            paper = np.median(shot.reshape(-1, 3), axis=0)
            assert (paper.mean() < 0.5) == (look == "dark")
            assert (np.abs(shot - paper).max(axis=2) > 0.1).mean() > 0.02
        assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        prefer_dark(page, False)
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
