"""What people do with a page, and what they see there."""

import json


def find(browser, what):
    return browser.find_elements("css selector", what)


def text_of(browser, what):
    (found,) = find(browser, what)
    return found.text


def choose(browser, what, value):
    (found,) = find(browser, what)
    browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
        found,
        value,
    )


def assert_accessible(browser, axe, theme, width):
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_script(axe)
    found = browser.execute_async_script("axe.run().then(arguments[0])")
    serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    assert not serious, json.dumps(serious, indent=1)[:4000]
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
