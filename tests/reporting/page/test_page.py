"""The page as text: one file that needs nothing, escapes everything, and stays small."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from kvsim.errors import InputError
from kvsim.reporting.exports.markdown import escaped
from kvsim.reporting.figures.catalogue import FIGURES
from kvsim.reporting.inputs import Subject
from kvsim.reporting.page import pictures as drawn
from kvsim.reporting.page import report, write_report
from kvsim.reporting.page.pictures import MOST_LETTERS, Picture, inline_svg, shown
from kvsim.reporting.page.render import json_block, with_names
from kvsim.reporting.run_folder import write_comparison
from tests.fake_results import fake_result
from tests.reporting.page.subjects import HOSTILE, HOSTILE_VARIANT


@pytest.fixture(autouse=True)
def _few_figures(monkeypatch):
    """How all of them are drawn is tested where they are."""
    monkeypatch.setattr(drawn, "FIGURES", drawn.FIGURES[:1])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    results = [fake_result(HOSTILE_VARIANT, rows=40), fake_result("paged", waste=0.3, rows=40)]
    for result in results:
        result.scenario_given = f"name: {HOSTILE}\n"
        result.notes = [HOSTILE]
        result.tables["addresses"] = {
            "time_s": [0.0], "start": [0], "length": [16], "request": [1], "sample": [0], "class": ["used"],
        }  # fmt: skip
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawn, "FIGURES", drawn.FIGURES[:2])
        write_report(Subject(name=HOSTILE, results=results), folder, formats=("png",))
    return folder


class Elements(HTMLParser):
    """Every element with its attributes, and the text in scripts."""

    def __init__(self, text):
        super().__init__()
        self.found, self.scripts, self._open = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._open = tag == "script"

    def handle_endtag(self, tag):
        self._open = False

    def handle_data(self, data):
        if self._open:
            self.scripts.append(data)


def test_nothing_of_a_name_becomes_an_element(hostile):
    page = Elements((hostile / "report.html").read_text())
    assert [attrs.get("type") for tag, attrs in page.found if tag == "script"] == ["application/json", None]
    assert "b" not in {tag for tag, attrs in page.found if not attrs.get("class", "").startswith("part-")}
    data = json.loads(page.scripts[0])
    assert [one["name"] for one in data["maps"]] == [HOSTILE_VARIANT, "paged"]


def test_results_without_a_map_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, "FIGURES", ())
    mapped = fake_result("regions", rows=9)
    mapped.tables["addresses"] = {
        "time_s": [0.0], "start": [0], "length": [16], "request": [1], "sample": [0], "class": ["used"],
    }  # fmt: skip
    results = [mapped, fake_result("long", rows=9)]
    written = write_report(Subject(name="two", results=results), tmp_path, formats=())
    assert "regions: all 1 changes." in written.page.read_text()
    assert "Of long no addresses were recorded." in written.page.read_text()
    assert "tables to sort and the memory map: open it here" in (tmp_path / "README.md").read_text()


def test_the_markdown_twin_of_a_page_without_a_map_promises_none(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, "FIGURES", ())
    write_report(Subject(name="tree", results=[fake_result("tree", rows=9)]), tmp_path, formats=())
    assert "with tables to sort: open it here." in (tmp_path / "README.md").read_text()


def test_only_the_scripts_of_the_page_may_run(hostile):
    page = Elements((hostile / "report.html").read_text())
    [policy] = [attrs["content"] for _, attrs in page.found if attrs.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256("".join(page.scripts[1:]).encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")


def test_the_page_loads_nothing(hostile):
    page = Elements((hostile / "report.html").read_text())
    for tag, attrs in page.found:
        for name in ("src", "href", "xlink:href", "data", "srcset", "action"):
            assert re.match(r"#|data:", attrs.get(name) or "#"), (tag, name, attrs[name])
        assert not re.search(r"https?:|@import|url\((?!#)", attrs.get("style") or "")
    style = re.search("<style>(.*?)</style>", (hostile / "report.html").read_text(), re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style


def test_the_markdown_twin_has_the_finding_the_table_and_the_figures(hostile):
    text = (hostile / "README.md").read_text()
    assert text.startswith(f"# {escaped(HOSTILE)}\n")
    assert "**Pool 41,408 tokens, 100 requests:" in text
    assert "| variant |" in text
    names = re.findall(r"!\[[^]]*\]\(<([^>]*)>\)", text)
    assert len(names) == 3
    assert all((hostile / name).is_file() for name in names)
    assert "<" not in re.sub(r"\\<|\(<[^>]*>\)", "", text)


def test_the_same_report_is_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, "FIGURES", FIGURES[1:2])
    results = [fake_result("a", rows=40), fake_result("b", rows=40)]
    for name in ("one", "two"):
        write_report(Subject(name="twice", results=results), tmp_path / name)
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.*")]
    assert {path.suffix for path in files} == {".html", ".md", ".png", ".svg", ".pdf"}
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes()


def test_a_report_of_many_results_stays_below_three_megabytes_and_says_what_it_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, "draw", None)
    noisy = "".join(f"M {place} {place * 7919 % 1000} L {place * 31 % 977} 3 " for place in range(10_000))
    svg = f'<svg viewBox="0 0 9 9"><path d="{noisy}"/></svg>'.encode()
    made = [
        Picture(title=f"figure {place}", caption="", place=f"v{place}", forms={"svg": svg, "png": b"x" * 90_000})
        for place in range(60)
    ]
    monkeypatch.setattr(report, "draw", lambda *_: made)
    results = [fake_result(f"variant {place}", rows=30) for place in range(60)]
    written = write_report(Subject(name="many", results=results), tmp_path, formats=())
    text = written.page.read_text()
    assert 2_000_000 < written.page.stat().st_size < 3_000_000
    assert text.count("Left out here, so that the page stays small") == 60 - text.count('<div class="card">')
    assert text.count("data:image/png") > 15


def test_a_page_that_cannot_be_small_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MOST_BYTES", 10_000)
    with pytest.raises(InputError, match=r"report\.html: would be [\d,]+ bytes long without any figure"):
        write_report(Subject(name="large", results=[fake_result()]), tmp_path, formats=())


def test_an_svg_in_a_page_keeps_its_names_to_itself():
    file = (
        '<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "x" "http://y">\n'
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="z" viewBox="0 0 1 1"><metadata>when</metadata>'
        '<style type="text/css">*{stroke-linejoin: round}</style><g id="unused"><path id="p1" d="M 1 2"/></g>'
        '<use xlink:href="#p1"/><g clip-path="url(#p1)"/><text>a id="p1" url(#p1)</text></svg>'
    )
    assert inline_svg(file, "f3-", "a &amp; b") == (
        '<svg role="img" aria-label="a &amp; b" viewBox="0 0 1 1"><g><path id="f3-p1" d="M 1 2"/></g>'
        '<use xlink:href="#f3-p1"/><g clip-path="url(#f3-p1)"/><text>a id="p1" url(#p1)</text></svg>'
    )


def test_a_figure_is_an_svg_unless_that_is_long_and_longer_than_its_png():
    def picture(svg, png):
        return Picture(title="t", caption="", place="p", forms={"svg": b"<svg " + b"x" * svg, "png": b"x" * png})

    made = shown([picture(MOST_LETTERS, 1000), picture(50_000, 1000), picture(50_000, 90_000)], 10_000_000)
    assert [bool(one.svg) for one in made] == [False, True, True]
    made = shown([picture(50_000, 1000), picture(50_000, 90_000), picture(50_000, 1000)], 60_000)
    assert [(bool(one.svg), bool(one.image)) for one in made] == [(False, True), (True, False), (False, True)]


def test_json_in_a_script_cannot_end_it():
    text = json_block({"name": "</script><!-- \u2028"})
    assert "<" not in text
    assert json.loads(text) == {"name": "</script><!-- \u2028"}


def test_a_report_in_the_folder_of_a_comparison_also_says_what_else_lies_there(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, "FIGURES", ())
    results = [fake_result("a", rows=9), fake_result("b", rows=9)]
    write_comparison("two", results, tmp_path, figures=False)
    write_report(Subject(name="two", results=results), tmp_path, formats=("png",))
    text = (tmp_path / "README.md").read_text()
    assert "## Files" in text
    assert "- `a/`: the run a, with a README of its own" in text
    assert "- `summary.json`: the numbers" in text


def test_marks_that_turn_text_around_are_left_out_of_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, "FIGURES", ())
    turned = "\u202etxet"
    subject = Subject(name=f"of {turned}", results=[fake_result(turned, rows=9), fake_result("b", rows=9)])
    page = write_report(subject, tmp_path, formats=()).page.read_text()
    assert "<h1>of txet</h1>" in page
    assert "\u202e" not in page


def test_a_name_between_backquotes_is_set_as_code_and_is_escaped():
    assert with_names("`<b>` beats `paged`, a ` alone stays") == (
        "<code>&lt;b&gt;</code> beats <code>paged</code>, a ` alone stays"
    )
