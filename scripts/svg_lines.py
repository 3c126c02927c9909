#!/usr/bin/env python3
"""A plot of lines over one x axis as SVG, readable on light and on dark screens.

usage: svg_lines.py FIGURE.json > FIGURE.svg

FIGURE.json: {"title", "x_label", "y_label", "log_x", "log_y" (both may be absent), "from_zero" (likewise),
              "lines": {name: [[x, y], ...]}}
"""
import html
import json
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 76, 190, 44, 52
COLOURS = ("#3366cc", "#dc6b19", "#2e8b57", "#b03a8c", "#8a6d3b", "#5b7083", "#c0392b", "#16a3a3")


def ticks_of(low, high, log):
    """Round numbers from low to high; of a logarithmic axis powers of 2 where it is short, else of 10."""
    if log:
        base = 2 if high / low <= 2 ** 9 else 10
        exponents = range(math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9) + 1)
        return [float(base) ** exponent for exponent in exponents] or [low, high]
    rough = (high - low) / 6
    scale = 10 ** math.floor(math.log10(rough))
    step = next(factor * scale for factor in (1, 2, 2.5, 5, 10) if factor * scale >= rough)
    return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def text_of(value):
    for bound, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= bound:
            return f"{value / (1e3 if unit == 'k' else bound):.4g}{unit}"
    return f"{value:.4g}"


class Axis:
    def __init__(self, values, log, begin, end, from_zero=False):
        self.log, self.begin, self.end = log, begin, end
        self.low, self.high = min(values), max(values)
        if from_zero and not log:
            self.low = min(0.0, self.low)
        if self.low == self.high:
            self.low, self.high = (self.low / 2, self.high * 2) if log else (self.low - 1, self.high + 1)

    def place(self, value):
        low, high, at = (math.log(x) if self.log else x for x in (self.low, self.high, value))
        return self.begin + (at - low) / (high - low) * (self.end - self.begin)

    def ticks(self):
        return ticks_of(self.low, self.high, self.log)


def svg(figure):
    lines = {name: [point for point in points if point[1] is not None] for name, points in figure["lines"].items()}
    points = [point for of_line in lines.values() for point in of_line]
    if not points:
        raise ValueError(f"{figure['title']}: nothing to plot")
    x = Axis([point[0] for point in points], figure.get("log_x", False), LEFT, WIDTH - RIGHT)
    y = Axis([point[1] for point in points], figure.get("log_y", False), HEIGHT - BOTTOM, TOP, figure.get("from_zero", False))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           "<style>text{fill:#333}.grid{stroke:#8884;fill:none}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>"]

    def write(at_x, at_y, text, more=""):
        out.append(f'<text x="{at_x:.1f}" y="{at_y:.1f}" {more}>{html.escape(text)}</text>')

    write(LEFT, 24, figure["title"], 'font-size="15"')
    for value in x.ticks():
        at = x.place(value)
        out.append(f'<path class="grid" d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        write(at, HEIGHT - BOTTOM + 16, text_of(value), 'text-anchor="middle"')
    for value in y.ticks():
        at = y.place(value)
        out.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
        write(LEFT - 6, at + 4, text_of(value), 'text-anchor="end"')
    write((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, figure["x_label"], 'text-anchor="middle"')
    write(14, (TOP + HEIGHT - BOTTOM) / 2, figure["y_label"],
          f'text-anchor="middle" transform="rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2})"')
    for number, (name, of_line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = "L".join(f"{x.place(a):.1f} {y.place(b):.1f}" for a, b in of_line)
        if path:
            out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(of_line) <= 40:
            out += [f'<circle cx="{x.place(a):.1f}" cy="{y.place(b):.1f}" r="3" fill="{colour}"/>' for a, b in of_line]
        out.append(f'<rect x="{WIDTH - RIGHT + 14}" y="{TOP + 20 * number}" width="12" height="4" fill="{colour}"/>')
        write(WIDTH - RIGHT + 32, TOP + 7 + 20 * number, name)
    return "\n".join(out) + "\n</svg>\n"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print(svg(json.load(file)), end="")
