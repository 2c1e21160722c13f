"""One HTML file: the dashboard's styles and scripts, the run's data, and a policy that lets nothing else happen."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

from ksearch.frozen.link import link
from ksearch.frozen.strict import for_html

STYLES = ("vendor/uplot.css", "base.css", "views.css")
START = "js/app.js"
ICON = "static/icon.svg"  # as the pages name it


class Unsafe(Exception):
    """An asset holds what would end its element: a fault of ours, found when it is built in."""


def frozen_page(answers: Mapping[str, Any]) -> str:
    """The file's text. Nothing in `answers` can become markup or script: it stands in a data block, escaped."""
    static = files("ksearch.web") / "static"

    def read(path: str) -> str:
        return static.joinpath(path).read_text(encoding="utf-8")

    icon = "data:image/svg+xml;base64," + base64.b64encode(read("icon.svg").encode()).decode()
    style = _inline("\n".join(map(read, STYLES)), "style")
    theme, plots = _inline(read("theme.js"), "script"), _inline(read("vendor/uplot.js"), "script")
    ours = files("ksearch.frozen").joinpath("answers.js").read_text(encoding="utf-8")
    pages = link(START, read).replace(ICON, icon)
    code = _inline(f"{ours}\n{pages}", "script")
    return _PAGE.format(
        policy=escape(_policy([theme, plots, code], style)),
        title=escape(str(answers["run"])),
        icon=icon,
        style=style,
        theme=theme,
        data=for_html(answers),
        plots=plots,
        code=code,
    )


def _policy(scripts: list[str], style: str) -> str:
    """Only these very scripts and styles, named by their hash; no request to anywhere."""
    return (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _inline(text: str, element: str) -> str:
    """Text as the content of a script or style element: a hash holds for it byte by byte."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if element == "script":
        text = text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    if f"</{element}" in text.lower() or "<!--" in text or "\0" in text:
        raise Unsafe(f"an asset holds </{element} or a comment: it cannot stand in a page")
    return text


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · K-Search</title>
<link rel="icon" href="{icon}" type="image/svg+xml">
<style>{style}</style>
<script>{theme}</script>
</head>
<body>
<div id="app"><p class="waiting">Loading…</p></div>
<noscript><p class="waiting">This page needs JavaScript. It asks nothing of the network.</p></noscript>
<script type="application/json" id="frozen">{data}</script>
<script>{plots}</script>
<script>{code}</script>
</body>
</html>
"""
