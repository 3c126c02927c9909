#include "lib/report/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "lib/base/units.h"
#include "lib/report/axis_ticks.h"
#include "lib/report/markup.h"

namespace trainwright {
namespace {

// The page, in px of its own coordinates.
constexpr double kPageWidth = 960, kPageMargin = 28;
constexpr double kTitleBaseline = 40, kSubtitleHeight = 19, kHeaderGap = 22;
constexpr double kAxisWidth = 50;    // left of a frame, for its tick labels
constexpr double kPanelHeader = 26;  // above a frame, for title and legend
constexpr double kAxisHeight = 24;   // below a frame, for its tick labels
constexpr double kScaleHeight = 14;  // below those, for the labels of a second scale
constexpr double kColumnGap = 30, kRowGap = 20;
constexpr double kFirstFrameHeight = 270, kFrameHeight = 130;
constexpr double kFirstLabelWidth = 90, kLabelWidth = 80;  // least distance of ticks on the x axis
constexpr double kTickHeight = 30;                         // least distance of ticks on the y axis
constexpr double kMarkerDistance = 7;                      // markers of a kind that are closer become one
constexpr size_t kMostDots = 120;
constexpr size_t kFewPoints = 5;  // of a line, which alone would not show where they are
constexpr double kLegendCharacterWidth = 6.6;

constexpr char kStyle[] = R"(<style>
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #57606a }
.page { fill: #ffffff }
.title { font-size: 20px; font-weight: 600; fill: #1f2328 }
.panel { font-size: 13px; font-weight: 600; fill: #1f2328 }
.unit { font-size: 12px; font-weight: 400; fill: #57606a }
.tick { font-size: 11px; font-variant-numeric: tabular-nums }
.grid { stroke: #e6e9ed; stroke-width: 1; fill: none }
.axis { stroke: #8c959f; stroke-width: 1; fill: none }
.faint { stroke: #2f6fde; stroke-width: 1; stroke-opacity: 0.32; fill: none; stroke-linejoin: round }
.line { stroke: #2f6fde; stroke-width: 1.8; fill: none; stroke-linejoin: round; stroke-linecap: round }
.points { stroke: #d9730d; stroke-width: 1.6; fill: none; stroke-linejoin: round; stroke-linecap: round }
.dot { fill: #d9730d }
.few { fill: #2f6fde }
.note { stroke: #8c959f; stroke-width: 1; stroke-dasharray: 3 3; fill: none }
.error { stroke: #cf222e; stroke-width: 1.4; fill: none }
.warning { fill: #d4a017 }
@media (prefers-color-scheme: dark) {
text, .unit { fill: #9aa4af }
.page { fill: #14181d }
.title, .panel { fill: #e8ecf0 }
.grid { stroke: #262c34 }
.axis { stroke: #6b7682 }
.faint, .line { stroke: #6aa5ff }
.few { fill: #6aa5ff }
.points { stroke: #f0a14a }
.dot { fill: #f0a14a }
.note { stroke: #7d8894 }
.error { stroke: #ff6b6b }
.warning { fill: #e3b341 }
}
</style>
)";

/// A coordinate with a tenth of a px, as short as it can be.
std::string Px(double value) {
  std::string text = FormatFixed(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string Text(std::string_view style, double x, double y, std::string_view anchor, std::string_view text) {
  return "<text class=\"" + std::string(style) + "\" x=\"" + Px(x) + "\" y=\"" + Px(y) + "\"" +
         (anchor == "start" ? "" : " text-anchor=\"" + std::string(anchor) + "\"") + ">" +
         EscapeMarkup(text) + "</text>\n";
}

std::string Line(std::string_view style, double x1, double y1, double x2, double y2) {
  return "<path class=\"" + std::string(style) + "\" d=\"M" + Px(x1) + " " + Px(y1) + "L" + Px(x2) + " " +
         Px(y2) + "\"/>\n";
}

/// \param hint appears under the pointer; may be empty
std::string Dot(std::string_view style, double x, double y, std::string_view hint) {
  return "<circle class=\"" + std::string(style) + "\" cx=\"" + Px(x) + "\" cy=\"" + Px(y) + "\" r=\"2.6\"" +
         (hint.empty() ? "/>\n" : "><title>" + EscapeMarkup(hint) + "</title></circle>\n");
}

/// Maps values to px along one axis.
struct Scale {
  double low = 0, high = 1, px_low = 0, px_high = 1;
  bool log = false;
  double operator()(double value) const {
    const double part = log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return px_low + std::clamp(part, 0.0, 1.0) * (px_high - px_low);
  }
};

/// Three or four significant digits, for legends; what nobody can tell from 0 on the axis is 0.
std::string Reading(double value, const Scale& y) {
  const double size = std::abs(value);
  if (size == 0 || (!y.log && size <= 1e-4 * std::abs(y.high))) return "0";
  if (size >= 10000) return FormatCount(value);
  if (size < 1e-3) {
    const int power = static_cast<int>(std::floor(std::log10(size)));
    return FormatFixed(value / std::pow(10.0, power), 2) + "e" + std::to_string(power);
  }
  const int before_point = static_cast<int>(std::floor(std::log10(size)));
  return FormatFixed(value, std::clamp((size < 1 ? 2 : 3) - before_point, 0, 5));
}

Scale VerticalScale(const PlotPanel& panel, double top, double bottom) {
  std::optional<double> low, high;
  for (const PlotSeries& series : panel.series) {
    for (const PlotPoint& point : series.points) {
      low = std::min(low.value_or(point.y), point.y);
      high = std::max(high.value_or(point.y), point.y);
    }
  }
  Scale scale = {.low = low.value_or(0), .high = high.value_or(1), .px_low = bottom, .px_high = top};
  scale.log = panel.may_be_log && scale.low > 0 && scale.high > 100 * scale.low;
  if (scale.log) {
    const double pad = std::pow(scale.high / scale.low, 0.04);
    scale.low /= pad;
    scale.high *= pad;
    return scale;
  }
  if (panel.from_zero) {
    scale.low = std::min(scale.low, 0.0);
    scale.high = std::max(scale.high, panel.least_high);
  }
  // A constant gets room around it; so does what rounding alone moves.
  const double least = std::max(std::abs(scale.low), std::abs(scale.high)) * 1e-6;
  if (scale.high - scale.low <= least) {
    const double half = scale.high == 0 ? 1 : std::abs(scale.high) * 0.1;
    scale.high += half;
    if (!panel.from_zero || scale.low < 0) scale.low -= half;
  }
  const double pad = 0.05 * (scale.high - scale.low);
  scale.high += pad;
  if (!panel.from_zero || scale.low < 0) scale.low -= pad;
  return scale;
}

struct Frame {
  double left = 0, top = 0, right = 0, bottom = 0;
};

const char* ClassOf(SeriesStyle style) {
  switch (style) {
    case SeriesStyle::kFaint:
      return "faint";
    case SeriesStyle::kPoints:
      return "points";
    default:
      return "line";
  }
}

std::string RenderSeries(const PlotSeries& series, const Scale& x, const Scale& y) {
  if (series.points.empty()) return "";
  const size_t most_dots = series.style == SeriesStyle::kPoints ? kMostDots : kFewPoints;
  const bool dots = series.points.size() <= most_dots;
  std::string path, circles, last;
  for (const PlotPoint& point : series.points) {
    const std::string place = Px(x(point.x)) + " " + Px(y(point.y));
    if (place != last) path += (path.empty() ? "M" : "L") + place;
    last = place;
    if (!dots) continue;
    circles += Dot(series.style == SeriesStyle::kPoints ? "dot" : "few", x(point.x), y(point.y),
                   series.name + " " + Reading(point.y, y) + " at " + FormatFixed(point.x, 0));
  }
  return "<path class=\"" + std::string(ClassOf(series.style)) + "\" d=\"" + path + "\"/>\n" + circles;
}

/// "- train 3.2  - evaluation 3.4", ending at the right edge of the frame.
std::string RenderLegend(const PlotPanel& panel, const Frame& frame, const Scale& y) {
  std::string legend;
  double right = frame.right;
  for (auto series = panel.series.rbegin(); series != panel.series.rend(); ++series) {
    if (series->name.empty() || series->points.empty()) continue;
    const std::string text = series->name + " " + Reading(series->points.back().y, y);
    right -= static_cast<double>(text.size()) * kLegendCharacterWidth;
    legend += Text("legend", right, frame.top - 9, "start", text);
    right -= 6;
    const std::string swatch = std::string(ClassOf(series->style)) + " swatch";
    legend += Line(swatch, right - 16, frame.top - 13, right, frame.top - 13);
    if (series->style == SeriesStyle::kPoints) {
      legend += Dot("dot", right - 8, frame.top - 13, "");
    }
    right -= 34;
  }
  return legend;
}

bool IsDrawn(const PlotScale& scale) {
  const std::vector<PlotPoint>& points = scale.points;
  const auto falls = [](const PlotPoint& a, const PlotPoint& b) { return b.x < a.x || b.y < a.y; };
  return points.size() > 1 && points.front().y < points.back().y &&
         std::adjacent_find(points.begin(), points.end(), falls) == points.end();
}

/// Where a scale has a value that lies between those of its points.
double PlaceOn(const PlotScale& scale, double value) {
  const auto after = std::lower_bound(scale.points.begin(), scale.points.end(), value,
                                      [](const PlotPoint& point, double wanted) { return point.y < wanted; });
  if (after == scale.points.begin()) return after->x;
  if (after == scale.points.end()) return scale.points.back().x;
  const PlotPoint& before = *(after - 1);
  return before.x + (after->x - before.x) * (value - before.y) / (after->y - before.y);
}

std::string RenderScale(const PlotScale& scale, const Frame& frame, const Scale& x) {
  const int count = static_cast<int>((frame.right - frame.left) / kFirstLabelWidth);
  const AxisTicks ticks = LinearTicks(scale.points.front().y, scale.points.back().y, count);
  const double baseline = frame.bottom + 17 + kScaleHeight;
  const std::string exponent = ticks.exponent == 0 ? "" : "1e" + std::to_string(ticks.exponent) + " ";
  std::string svg = Text("tick", frame.left - 8, baseline, "end", exponent + scale.label);
  double last = frame.left - kFirstLabelWidth;
  for (size_t i = 0; i < ticks.values.size(); ++i) {
    const double at = x(PlaceOn(scale, ticks.values[i]));
    if (at - last < kFirstLabelWidth / 2) continue;  // where it runs faster than elsewhere
    last = at;
    svg += Text("tick x2", at, baseline, "middle", ticks.labels[i]);
  }
  return svg;
}

std::string RenderPanel(const PlotFigure& figure, const PlotPanel& panel, const Frame& frame, bool first) {
  const Scale x = {figure.x_low, figure.x_high, frame.left, frame.right};
  const Scale y = VerticalScale(panel, frame.top, frame.bottom);
  const int y_count = std::max(2, static_cast<int>((frame.bottom - frame.top) / kTickHeight));
  const AxisTicks y_ticks = y.log ? LogTicks(y.low, y.high, y_count) : LinearTicks(y.low, y.high, y_count);
  const int x_count = static_cast<int>((frame.right - frame.left) / (first ? kFirstLabelWidth : kLabelWidth));
  const AxisTicks x_ticks = LinearTicks(figure.x_low, figure.x_high, x_count, /*whole=*/true);

  std::string unit = panel.unit;
  if (y_ticks.exponent != 0) {
    unit = "1e" + std::to_string(y_ticks.exponent) + (unit.empty() ? "" : " " + unit);
  }
  if (y.log) unit += unit.empty() ? "logarithmic" : ", logarithmic";

  std::string svg = "<g class=\"plot\">\n";
  svg += "<text class=\"panel\" x=\"" + Px(frame.left) + "\" y=\"" + Px(frame.top - 9) + "\">" +
         EscapeMarkup(panel.title) +
         (unit.empty() ? "" : "<tspan class=\"unit\" dx=\"6\">" + EscapeMarkup(unit) + "</tspan>") +
         "</text>\n";
  svg += RenderLegend(panel, frame, y);
  for (size_t i = 0; i < y_ticks.values.size(); ++i) {
    const double at = y(y_ticks.values[i]);
    svg += Line("grid", frame.left, at, frame.right, at);
    svg += Text("tick y", frame.left - 8, at + 4, "end", y_ticks.labels[i]);
  }
  svg += "<rect class=\"frame\" fill=\"none\" x=\"" + Px(frame.left) + "\" y=\"" + Px(frame.top) +
         "\" width=\"" + Px(frame.right - frame.left) + "\" height=\"" + Px(frame.bottom - frame.top) +
         "\"/>\n";
  svg += Line("axis", frame.left, frame.bottom, frame.right, frame.bottom);
  for (size_t i = 0; i < x_ticks.values.size(); ++i) {
    const double at = x(x_ticks.values[i]);
    svg += Line("axis", at, frame.bottom, at, frame.bottom + 4);
    svg += Text("tick x", at, frame.bottom + 17, "middle", x_ticks.labels[i]);
  }
  if (first && IsDrawn(figure.second_scale)) svg += RenderScale(figure.second_scale, frame, x);

  // Markers lie under the curves.
  double last_line = -kMarkerDistance, last_warning = -kMarkerDistance;
  for (const PlotMarker& marker : figure.markers) {
    const double at = x(marker.x);
    const std::string title = "<title>" + EscapeMarkup(marker.text) + "</title>";
    if (marker.kind == MarkerKind::kWarning) {
      if (!first || at - last_warning < kMarkerDistance) continue;
      last_warning = at;
      svg += "<path class=\"warning\" d=\"M" + Px(at) + " " + Px(frame.top + 8) + "l-4.5 -8h9z\">" + title +
             "</path>\n";
    } else {
      if (marker.kind == MarkerKind::kNote && at - last_line < kMarkerDistance) continue;
      last_line = at;
      const std::string style = marker.kind == MarkerKind::kError ? "error" : "note";
      svg += "<path class=\"" + style + "\" d=\"M" + Px(at) + " " + Px(frame.top) + "V" + Px(frame.bottom) +
             "\">" + title + "</path>\n";
    }
  }
  for (const PlotSeries& series : panel.series) svg += RenderSeries(series, x, y);
  return svg + "</g>\n";
}

}  // namespace

std::string RenderSvg(const PlotFigure& figure) {
  const double header = kTitleBaseline + kSubtitleHeight * static_cast<double>(figure.subtitles.size());
  std::string body = Text("title", kPageMargin, kTitleBaseline, "start", figure.title);
  for (size_t i = 0; i < figure.subtitles.size(); ++i) {
    body += Text("subtitle", kPageMargin, kTitleBaseline + kSubtitleHeight * static_cast<double>(i + 1) + 4,
                 "start", figure.subtitles[i]);
  }

  const double width = kPageWidth - 2 * kPageMargin;
  double top = header + kHeaderGap;
  for (size_t i = 0; i < figure.panels.size();) {
    const bool first = i == 0;
    const double height = first ? kFirstFrameHeight : kFrameHeight;
    const size_t columns = first ? 1 : 2;
    const double gaps = kColumnGap * static_cast<double>(columns - 1);
    const double column_width = (width - gaps) / static_cast<double>(columns);
    for (size_t column = 0; column < columns && i < figure.panels.size(); ++column, ++i) {
      const double left = kPageMargin + static_cast<double>(column) * (column_width + kColumnGap);
      const Frame frame = {left + kAxisWidth, top + kPanelHeader, left + column_width,
                           top + kPanelHeader + height};
      body += RenderPanel(figure, figure.panels[i], frame, first);
    }
    top += kPanelHeader + height + kAxisHeight + kRowGap;
    if (first && IsDrawn(figure.second_scale)) top += kScaleHeight;
  }
  body += Text("legend", kPageWidth / 2, top, "middle", figure.x_label);
  const std::string page_height = Px(top + kPageMargin - 8);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + Px(kPageWidth) + "\" height=\"" +
         page_height + "\" viewBox=\"0 0 " + Px(kPageWidth) + " " + page_height +
         "\" role=\"img\">\n<title>" + EscapeMarkup(figure.title) + "</title>\n" + kStyle +
         "<rect class=\"page\" width=\"" + Px(kPageWidth) + "\" height=\"" + page_height + "\"/>\n" + body +
         "</svg>\n";
}

}  // namespace trainwright
