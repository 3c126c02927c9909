/// A page of line plots over one common x axis, as a self-contained SVG: no script, no font and no file from
/// elsewhere, readable on light and on dark screens.
///
/// The first panel takes the whole width, the others follow two a row. Points outside every range cannot
/// happen: ranges come from the points.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/report/bounded_series.h"

namespace trainwright {

enum class SeriesStyle {
  kFaint,   ///< a thin pale line: what was measured, under its mean; up to five points have dots
  kLine,    ///< a strong line; likewise
  kPoints,  ///< a line in a second colour with a dot on each point
};

struct PlotSeries {
  std::string name;  ///< for the legend, with its last value: "evaluation 3.21"; empty: none
  SeriesStyle style = SeriesStyle::kLine;
  std::vector<PlotPoint> points;  ///< x rising, finite
};

struct PlotPanel {
  std::string title;
  std::string unit = {};  ///< "nats", shown after the title
  std::vector<PlotSeries> series = {};
  bool from_zero = false;  ///< the y axis starts at 0 and reaches at least least_high
  double least_high = 0;
  /// The y axis becomes logarithmic where all y are positive and span more than a factor of 100.
  bool may_be_log = false;
};

enum class MarkerKind { kNote, kWarning, kError };

/// A moment worth knowing: a dashed line through every panel (notes and errors) or a triangle above the first
/// one (warnings), with a text that appears under the pointer.
struct PlotMarker {
  double x = 0;
  MarkerKind kind = MarkerKind::kNote;
  std::string text;
};

/// What else the x axis counts, written under the first panel: epochs, where it counts steps.
struct PlotScale {
  std::string label;  ///< a short word
  /// The scale's value y at some x, both rising; it runs evenly between two. One that does not rise is left
  /// out.
  std::vector<PlotPoint> points;
};

struct PlotFigure {
  std::string title;
  std::vector<std::string> subtitles;  ///< one a line
  std::string x_label;                 ///< "step"
  double x_low = 0, x_high = 1;        ///< every x lies between them; x_high > x_low
  std::vector<PlotPanel> panels;       ///< at least one
  std::vector<PlotMarker> markers;     ///< x rising
  PlotScale second_scale = {};
};

/// The document, UTF-8. Its size is bounded by the number of points: about 13 bytes each.
std::string RenderSvg(const PlotFigure& figure);

}  // namespace trainwright
