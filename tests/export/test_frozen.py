"""The frozen page: read by a real HTML parser, without a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksearch.drivers import drive
from ksearch.frozen import frozen_answers, frozen_page
from ksearch.frozen.link import Unlinkable, link
from ksearch.frozen.strict import for_html
from ksearch.protocol import Budget, SearchConfig
from ksearch.run import Run
from ksearch.store import Store, open_store
from ksearch.testing.fakes import fake_desk
from ksearch.web.reader import RunReader
from tests.export.hostile import HOSTILE, LONG, hostile_run


class Page(HTMLParser):
    """Elements with their attributes and texts, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self.comments: list[str] = []
        self._open: list[int] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), ""))
        if tag not in ("meta", "link", "img"):
            self._open.append(len(self.elements) - 1)

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        if self._open:
            tag, attrs, text = self.elements[self._open[-1]]
            self.elements[self._open[-1]] = (tag, attrs, text + data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attrs, text) for found, attrs, text in self.elements if found == tag]

    @property
    def data(self) -> dict:
        (found,) = [text for attrs, text in self.all("script") if attrs.get("id") == "frozen"]
        return json.loads(found, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    @property
    def policy(self) -> dict[str, list[str]]:
        (text,) = [a["content"] for a, _ in self.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
        return {part.split()[0]: part.split()[1:] for part in (text or "").split(";")}


def searched(store: Store, evaluations: int = 12) -> Run:
    run = Run.create(store, "fake-1", SearchConfig(Budget(evaluations)), {"task": "softmax"})
    drive(run, fake_desk(1), sleep=lambda _: None)
    return run


@pytest.fixture(scope="module")
def store() -> Store:
    opened = open_store(":memory:")
    searched(opened)
    hostile_run(opened)
    return opened


@pytest.fixture(scope="module")
def hostile_page(store: Store) -> Page:
    return Page(frozen_page(frozen_answers(store, "hostile")))


def test_no_text_of_a_run_becomes_an_element(store: Store, hostile_page: Page) -> None:
    plain = Page(frozen_page(frozen_answers(store, "fake-1")))
    assert [tag for tag, _, _ in hostile_page.elements] == [tag for tag, _, _ in plain.elements]
    assert hostile_page.comments == plain.comments == []
    # Every script but the data is the same, byte for byte, whatever the run holds.
    for page in (plain, hostile_page):
        assert [a.get("type") for a, _ in page.all("script")] == [None, "application/json", None, None]
    code = [[text for attrs, text in page.all("script") if not attrs] for page in (plain, hostile_page)]
    assert code[0] == code[1]


def test_hostile_texts_come_back_as_they_were(hostile_page: Page) -> None:
    data = hostile_page.data
    assert data["snapshot"]["head"]["context"]["version"] == HOSTILE
    sources = [p["sources"]["kernel.cpp"] for p in data["program"].values()]
    assert sources
    assert all(text.endswith(f"{HOSTILE}\n{LONG}") for text in sources)
    node = next(n for n in data["snapshot"]["nodes"] if n["id"] == "n1")
    assert node["title"] == HOSTILE[:299] + "…" or node["title"] == HOSTILE


def test_only_the_pages_own_scripts_and_styles_may_run(hostile_page: Page) -> None:
    policy = hostile_page.policy
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
              for attrs, text in hostile_page.all("script") if not attrs]  # fmt: skip
    assert sorted(policy["script-src"]) == sorted(hashes)
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert policy["img-src"] == ["data:"]
    assert "unsafe" not in json.dumps(policy)
    # The policy stands before anything that it is to bind.
    names = [tag for tag, _, _ in hostile_page.elements]
    assert names.index("meta") < names.index("style") < names.index("script")


def test_nothing_is_asked_of_the_network(hostile_page: Page) -> None:
    addresses = [v for _, attrs, _ in hostile_page.elements for k, v in attrs.items() if k in ("src", "href")]
    assert [a for a in addresses if not (a or "").startswith("data:")] == []
    (_, style) = hostile_page.all("style")[0]
    assert re.findall(r"@import|url\((?!['\"]?data:)", style) == []


LEAVES = st.text() | st.integers() | st.floats() | st.none() | st.booleans()


@given(st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)))
def test_any_value_in_a_data_block_stays_data(value: object) -> None:
    text = for_html({"value": value})
    assert text.isascii()
    assert not set(text) & set("<>&'")
    page = Page(f'<p></p><script type="application/json">{text}</script><p></p>')
    assert [tag for tag, _, _ in page.elements] == ["p", "script", "p"]
    assert "value" in json.loads(page.all("script")[0][1], parse_constant=pytest.fail)


def test_what_a_page_is_told_is_what_the_server_would_tell(store: Store) -> None:
    found, reader = frozen_answers(store, "fake-1"), RunReader(store, "fake-1", poll_s=0)
    assert found["programs"] == reader.programs(0, 10**6)["rows"]
    assert {k: v for k, v in found["snapshot"].items() if k != "head"} == {
        k: v for k, v in reader.snapshot().items() if k != "head"
    }
    nodes: dict[str, dict] = {}
    assert len(found["trees"]) > 3
    for step in found["trees"]:  # as the page's script puts them together
        nodes.update({n["id"]: n for n in step["nodes"]})
        for id in step["gone"]:
            del nodes[id]
        whole = reader.tree_at(step["seq"])
        assert nodes == {n["id"]: n for n in whole["nodes"]}
        assert step["best"] == whole["best"]


def test_a_run_too_large_keeps_the_best_and_says_what_it_left_out(store: Store) -> None:
    whole = frozen_answers(store, "fake-1")
    best = whole["snapshot"]["head"]["best"]["program"]
    small = frozen_answers(store, "fake-1", max_bytes=len(json.dumps(whole["program"][best])) + 200)
    assert list(small["program"]) == [best]
    note = small["snapshot"]["head"]["notes"][-1]
    assert note.startswith("Left out, for the size of this file: ")
    assert f"{len(whole['program']) - 1} programs" in note
    assert len(frozen_page(small)) < len(frozen_page(whole))


def test_a_missing_blob_is_left_out_not_an_error(store: Store) -> None:
    copy = open_store(":memory:")
    searched(copy, 2)
    from sqlalchemy import text

    with copy._engine.begin() as conn:
        for row in conn.execute(text("select name from sqlite_master where sql like '%sha%' and type='table'")).all():
            conn.execute(text(f"delete from {row[0]}"))  # the blobs, all of them
    page = Page(frozen_page(frozen_answers(copy, "fake-1")))
    assert page.data["blob"] == {}
    assert all(p["missing"] for p in page.data["program"].values())


# --- the linker ----------------------------------------------------------------------------------------------------


def test_modules_run_after_what_they_import() -> None:
    files = {
        "js/app.js": 'import { a as b, c } from "./one.js";\nimport d from "../two.js";\nrun(b, c, d);\n',
        "js/one.js": 'export const a = 1;\nexport function c() {}\nexport { e } from "../two.js";\n',
        "two.js": "const x = 2;export{x as e};export default x;",
    }
    text = link("js/app.js", files.__getitem__)
    assert text.index('M["two.js"] =') < text.index('M["js/one.js"] =') < text.index('M["js/app.js"] =')
    assert 'const { a: b, c } = M["js/one.js"];' in text
    assert 'const d = M["two.js"].default;' in text
    assert 'return { e: M["two.js"].e, a, c };' in text
    assert "return { e: x, default: x };" in text


@pytest.mark.parametrize(
    "line", ['import "./x.js";', "export let a = 1;", 'import * as x from "./x.js";', "export * from './x.js';"]
)
def test_a_form_that_is_not_known_is_an_error_when_it_is_built(line: str) -> None:
    with pytest.raises(Unlinkable, match="not known"):
        link("a.js", {"a.js": line, "x.js": ""}.__getitem__)


def test_modules_that_import_each_other_are_an_error() -> None:
    files = {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}
    with pytest.raises(Unlinkable, match="a.js -> b.js -> a.js"):
        link("a.js", files.__getitem__)


def test_all_of_the_front_end_is_linked(store: Store) -> None:
    text = frozen_page(frozen_answers(store, "fake-1"))
    assert 'M["js/app.js"]' in text
    assert 'M["vendor/preact-htm.js"]' in text
    assert not re.search(r"^(import|export)\b", text, re.M)
