"""Small SVG charts without a library: each has a panel of its own that follows the reader's light or dark scheme.

Colours are those of Okabe and Ito, which people with any colour vision tell apart; dashes and marks say the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 430
LEFT, RIGHT, TOP, BOTTOM = 66, 206, 58, 58
DASHES = ("", "9 4", "2 4", "12 4 2 4", "5 3")
STYLE = """
  .panel { fill: #ffffff; } .ink { fill: #1f2328; } .dim { fill: #59636e; }
  .grid { stroke: #d8dee4; } .axis { stroke: #59636e; }
  .c0 { color: #0072b2; } .c1 { color: #d55e00; } .c2 { color: #009e73; } .c3 { color: #9a6700; }
  .c4 { color: #b0578d; }
  @media (prefers-color-scheme: dark) {
    .panel { fill: #161b22; } .ink { fill: #e6edf3; } .dim { fill: #9da7b3; }
    .grid { stroke: #30363d; } .axis { stroke: #9da7b3; }
    .c0 { color: #56b4e9; } .c1 { color: #ff8c42; } .c2 { color: #2fcf9f; } .c3 { color: #f0e442; }
    .c4 { color: #e69ac8; }
  }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
  .title { font-size: 16px; font-weight: 600; } .sub { font-size: 12.5px; } .tick { font-size: 12px; }
"""


@dataclass(frozen=True, slots=True)
class Band:
    """A line with its interval."""

    name: str
    colour: int  # 0..4
    xs: Sequence[float]
    middle: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a dot chart: a name, and for each series its value with its interval."""

    name: str
    values: Sequence[tuple[float, float, float]]


def line_chart(title: str, sub: str, x_label: str, y_label: str, bands: Sequence[Band], x_step: float) -> str:
    """Lines over a linear axis, each named at its end."""
    x_end = max(max(b.xs) for b in bands)
    y_end = max(max(b.high) for b in bands)
    y_step = nice_step(y_end - 1)
    y_end = 1 + math.ceil((y_end - 1) / y_step) * y_step
    plot_w, plot_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(value: float) -> float:
        return LEFT + plot_w * value / x_end

    def y(value: float) -> float:
        return TOP + plot_h * (1 - (value - 1) / (y_end - 1))

    parts = [_head(title, sub, HEIGHT)]
    for i in range(round((y_end - 1) / y_step) + 1):
        at = 1 + i * y_step
        parts.append(_grid(LEFT, y(at), WIDTH - RIGHT, y(at)))
        parts.append(_text(LEFT - 8, y(at) + 4, f"{at:.4g}x", "dim tick", "end"))
    for i in range(math.floor(x_end / x_step + 1e-9) + 1):
        at = i * x_step
        parts.append(_text(x(at), HEIGHT - BOTTOM + 18, f"{at:g}", "dim tick", "middle"))
    parts.append(f'<line class="axis" x1="{LEFT}" y1="{y(1):.1f}" x2="{WIDTH - RIGHT}" y2="{y(1):.1f}"/>')
    parts.append(_text(LEFT + plot_w / 2, HEIGHT - 16, x_label, "ink", "middle"))
    parts.append(_upright(18, TOP + plot_h / 2, y_label))
    for i, band in enumerate(bands):
        parts.append(_band(band, DASHES[i % len(DASHES)], x, y))
    parts += _names(bands, x, y)
    return _svg(parts, HEIGHT)


def dot_chart(title: str, sub: str, x_label: str, names: Sequence[str], rows: Sequence[Row]) -> str:
    """A row per case on a logarithmic axis; each series has a colour and a mark of its own."""
    left, step = 236, 34
    height = TOP + 26 + step * len(rows) + BOTTOM
    end = max(v[2] for r in rows for v in r.values)
    ticks = [t for t in (1, 1.5, 2, 3, 4, 6, 8, 10, 15) if t <= end * 1.02]

    def x(value: float) -> float:
        return left + (WIDTH - left - 24) * math.log(max(value, 1)) / math.log(end * 1.03)

    parts = [_head(title, sub, height)]
    at = float(left)
    for i, name in enumerate(names):
        parts.append(_mark(i, at + 6, TOP + 9))
        parts.append(_text(at + 17, TOP + 13, name, "ink tick"))
        at += 32 + 6.9 * len(name)
    bottom = height - BOTTOM
    for tick in ticks:
        parts.append(_grid(x(tick), TOP + 26, x(tick), bottom))
        parts.append(_text(x(tick), bottom + 18, f"{tick:g}x", "dim tick", "middle"))
    for n, row in enumerate(rows):
        y = TOP + 26 + step * (n + 0.5)
        parts.append(_text(left - 14, y + 4, row.name, "ink tick", "end"))
        if n:
            parts.append(_grid(left - 8, y - step / 2, WIDTH - 24, y - step / 2))
        for i, (value, low, high) in enumerate(row.values):
            at_y = y + (i - (len(row.values) - 1) / 2) * 5.4
            parts.append(
                f'<line class="c{i}" stroke="currentColor" stroke-width="2" x1="{x(low):.1f}" y1="{at_y:.1f}" '
                f'x2="{x(high):.1f}" y2="{at_y:.1f}"/>{_mark(i, x(value), at_y)}'
            )
    parts.append(_text(left + (WIDTH - left) / 2, height - 16, x_label, "ink", "middle"))
    return _svg(parts, height)


def nice_step(span: float) -> float:
    """A round step that gives four to nine of them."""
    power = 10 ** math.floor(math.log10(span / 4))
    return next(power * m for m in (1, 2, 2.5, 5, 10) if span / (power * m) <= 8)


def _head(title: str, sub: str, height: float) -> str:
    panel = f'<rect class="panel" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'
    return panel + _text(20, 28, title, "ink title") + _text(20, 47, sub, "dim sub")


def _svg(parts: Sequence[str], height: float) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}" '
        f'role="img">\n<style>{STYLE}</style>\n{body}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, css: str, anchor: str = "start") -> str:
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _upright(x: float, y: float, text: str) -> str:
    place = f'text-anchor="middle" transform="translate({x} {y:.1f}) rotate(-90)"'
    return f'<text class="ink" {place}>{escape(text)}</text>'


def _grid(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="grid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _band(band: Band, dash: str, x: object, y: object) -> str:
    assert callable(x)
    assert callable(y)
    upper = [f"{x(a):.1f},{y(b):.1f}" for a, b in zip(band.xs, band.high, strict=True)]
    lower = [f"{x(a):.1f},{y(b):.1f}" for a, b in zip(band.xs, band.low, strict=True)]
    line = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(band.xs, band.middle, strict=True))
    shade = f'<polygon fill="currentColor" opacity="0.16" points="{" ".join([*upper, *lower[::-1]])}"/>'
    stroke = f'fill="none" stroke="currentColor" stroke-width="2.4" stroke-dasharray="{dash}"'
    return f'<g class="c{band.colour}">{shade}<polyline {stroke} points="{line}"/></g>'


def _names(bands: Sequence[Band], x: object, y: object) -> list[str]:
    """Each line's name at its end, moved apart where they would touch."""
    assert callable(x)
    assert callable(y)
    parts, last = [], -1e9
    ends = sorted((y(b.middle[-1]), i, b) for i, b in enumerate(bands))
    for at, i, band in ends:
        place = last = max(at, last + 18)
        end, start = x(band.xs[-1]), WIDTH - RIGHT + 10
        dash = DASHES[i % len(DASHES)]
        parts.append(
            f'<g class="c{band.colour}" stroke="currentColor"><path d="M{end:.1f} {at:.1f} L{start:.1f} {place:.1f}" '
            f'stroke-width="1" opacity="0.5"/><path d="M{start:.1f} {place:.1f} h22" stroke-width="2.4" '
            f'stroke-dasharray="{dash}"/></g>'
        )
        parts.append(_text(start + 28, place + 4, f"{band.name} {band.middle[-1]:.2f}x", "ink tick"))
    return parts


def _mark(kind: int, x: float, y: float) -> str:
    shapes = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.2"/>',
        f'<rect x="{x - 3.7:.1f}" y="{y - 3.7:.1f}" width="7.4" height="7.4"/>',
        f'<path d="M{x:.1f} {y - 4.8:.1f} l4.8 8.4 h-9.6 z"/>',
        f'<path d="M{x:.1f} {y - 5.2:.1f} l5.2 5.2 l-5.2 5.2 l-5.2 -5.2 z"/>',
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="none" stroke="currentColor" stroke-width="2"/>',
    )
    return f'<g class="c{kind}" fill="currentColor">{shapes[kind]}</g>'
