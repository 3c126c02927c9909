#!/usr/bin/env python3
"""Checks a plot page of lib/report/svg_plot.h by arithmetic on the picture itself.

usage: check_svg.py FILE.svg...

Well-formed XML without scripts or anything from elsewhere; every curve lies inside its panel and runs from left to right;
everything lies on the page; no two tick labels of an axis, and no panel's title and legend, overlap. Prints
"PANELS panels, CURVES curves, POINTS points" for each; exits with 1 at the first problem.
"""
import re
import sys
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
CURVES = {"faint", "line", "points"}
CHARACTER_WIDTH = 6.7  # of the 11 px of tick labels, no less than any digit of a sans-serif font
LABEL_HEIGHT = 12


def points_of(path):
    numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", path.get("d"))]
    return list(zip(numbers[::2], numbers[1::2]))


def require(holds, problem):
    if not holds:
        raise SystemExit(problem)


def check_labels(plot, axis, width):
    def interval(text):
        if axis != "y":
            half = len(text.text) * CHARACTER_WIDTH / 2
            return float(text.get("x")) - half, float(text.get("x")) + half
        return float(text.get("y")) - LABEL_HEIGHT, float(text.get("y"))

    labels = [text for text in plot.iter(SVG + "text") if text.get("class") == f"tick {axis}"]
    require(labels, f"an {axis} axis has no label")
    require(len({text.text for text in labels}) == len(labels), f"labels repeat: {[text.text for text in labels]}")
    spans = sorted(map(interval, labels))
    for (_, end), (begin, _) in zip(spans, spans[1:]):
        require(end < begin, f"labels overlap on an {axis} axis: {[text.text for text in labels]}")
    for text in labels:
        if axis == "y":
            require(float(text.get("x")) - len(text.text) * CHARACTER_WIDTH >= 0, f"{text.text} leaves the page")
    require(axis == "y" or spans[-1][1] <= width, "the last label leaves the page")


def check(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    root = xml.fromstring(text)
    width, height = float(root.get("width")), float(root.get("height"))
    require(not re.search(r"<script|<image|href|url\(|@import|@font-face", text), "needs something from elsewhere")
    plots = [group for group in root.iter(SVG + "g") if group.get("class") == "plot"]
    curves = count = 0
    for plot in plots:
        frame = next(rect for rect in plot.iter(SVG + "rect") if rect.get("class") == "frame")
        left, top = float(frame.get("x")), float(frame.get("y"))
        right, bottom = left + float(frame.get("width")), top + float(frame.get("height"))
        require(0 < left < right < width and 0 < top < bottom < height, "a panel leaves the page")
        for path in plot.iter(SVG + "path"):
            if path.get("class") not in CURVES:
                continue
            points = points_of(path)
            curves, count = curves + 1, count + len(points)
            for x, y in points:
                require(left - 0.051 <= x <= right + 0.051 and top - 0.051 <= y <= bottom + 0.051,
                        f"point {x} {y} lies outside its panel")
            require(all(a[0] <= b[0] for a, b in zip(points, points[1:])), "a curve runs backwards")
        title = next(text for text in plot.iter(SVG + "text") if text.get("class") == "panel")
        title_end = left + 8.5 * len("".join(title.itertext())) + 6
        legend = [float(text.get("x")) for text in plot.iter(SVG + "text") if text.get("class") == "legend"]
        require(not legend or title_end < min(legend) - 22, "a panel's title and legend overlap")
        check_labels(plot, "x", width)
        check_labels(plot, "y", width)
        if any(text.get("class") == "tick x2" for text in plot.iter(SVG + "text")):
            check_labels(plot, "x2", width)
    print(f"{len(plots)} panels, {curves} curves, {count} points")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        check(argument)
