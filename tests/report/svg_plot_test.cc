#include "lib/report/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

test::ProcessResult CheckAll(const std::vector<std::string>& pages) {
  const test::TemporaryFolder folder;
  std::string command = "python3 '" + test::Fixture("report/check_svg.py") + "'";
  for (size_t i = 0; i < pages.size(); ++i) {
    const std::string path = folder.path(std::to_string(i) + ".svg");
    test::WriteFile(path, pages[i]);
    command += " '" + path + "'";
  }
  return test::RunShell(command);
}

test::ProcessResult Check(const std::string& page) {
  return CheckAll({page});
}

/// A figure of one curve a panel, whose values reach from `low` to `high`.
PlotFigure Waves(double x_high, double low, double high) {
  PlotFigure figure = {.title = "waves", .x_label = "step", .x_high = x_high};
  for (int panel = 0; panel < 3; ++panel) {
    PlotSeries series = {.name = "wave", .style = static_cast<SeriesStyle>(panel)};
    for (int i = 0; i <= 200; ++i) {
      series.points.push_back({x_high * i / 200, low + (high - low) * (0.5 + 0.5 * std::sin(i * 0.1))});
    }
    figure.panels.push_back(
        {.title = "Panel", .unit = "units", .series = {series}, .from_zero = panel == 1, .may_be_log = true});
  }
  return figure;
}

TEST(SvgPlot, EveryRangeStaysInsideItsPanelWithReadableAxes) {
  std::vector<std::string> pages;
  for (const double x_high : {1.0, 7.0, 999.0, 12345.0, 1e6, 3e9}) {
    for (const auto& [low, high] : {std::pair{0.0, 1.0},
                                    {3.0, 3.0},
                                    {-5.0, 5.0},
                                    {1e-9, 2e-9},
                                    {0.001, 900.0},
                                    {1e11, 3e12},
                                    {9.99999, 10.00001},
                                    {0.0, 0.0},
                                    {-2e7, -1e7}}) {
      pages.push_back(RenderSvg(Waves(x_high, low, high)));
    }
  }
  const test::ProcessResult checked = CheckAll(pages);
  EXPECT_EQ(checked.exit_status, 0) << checked.standard_error << checked.standard_output;
  EXPECT_EQ(std::count(checked.standard_output.begin(), checked.standard_output.end(), '\n'), 54);
}

TEST(SvgPlot, TheLegendOfALogarithmicAxisTellsItsSmallestValue) {
  PlotPanel panel = {.title = "Loss",
                     .series = {{.name = "train", .points = {{0, 7}, {1, 0.01}, {2, 5.2e-6}}}}};
  EXPECT_THAT(RenderSvg({.title = "equal axis", .x_high = 2, .panels = {panel}}), HasSubstr("train 0<"));
  panel.may_be_log = true;
  EXPECT_THAT(RenderSvg({.title = "log", .x_high = 2, .panels = {panel}}), HasSubstr("train 5.20e-6<"));
}

TEST(SvgPlot, ASecondScaleStandsUnderTheFirstPanelWhereItRises) {
  PlotFigure figure = Waves(100, 0, 1);
  EXPECT_THAT(RenderSvg(figure), Not(HasSubstr("tick x2")));
  figure.second_scale = {"epoch", {{0, 0}, {50, 1}, {100, 3}}};
  const std::string svg = RenderSvg(figure);
  EXPECT_EQ(Check(svg).exit_status, 0) << Check(svg).standard_error;
  EXPECT_THAT(svg, HasSubstr(">epoch<"));
  // The panel reaches from 78 to 932 px: 1 is at step 50, 2 at step 75.
  EXPECT_THAT(svg, ContainsRegex("\"tick x2\" x=\"505\" [^>]*>1.0<"));
  EXPECT_THAT(svg, ContainsRegex("\"tick x2\" x=\"718.5\" [^>]*>2.0<"));
  for (const std::vector<PlotPoint>& points :
       {std::vector<PlotPoint>{{5, 1}}, {{0, 1}, {100, 1}}, {{0, 0}, {50, 2}, {51, 1}, {100, 3}}}) {
    figure.second_scale.points = points;
    EXPECT_THAT(RenderSvg(figure), Not(HasSubstr("tick x2"))) << points.size();
  }
}

TEST(SvgPlot, ASecondScaleThatRunsAtTwoSpeedsStaysReadable) {
  PlotFigure figure = Waves(1000, 0, 1);
  figure.second_scale = {"epoch", {{0, 0}, {990, 0.002}, {1000, 0.009}}};
  const std::string svg = RenderSvg(figure);
  EXPECT_EQ(Check(svg).exit_status, 0) << Check(svg).standard_error;
  EXPECT_THAT(svg, HasSubstr(">1e-3 epoch<"));
}

TEST(SvgPlot, AnEmptyPanelHasItsAxes) {
  const test::ProcessResult checked = Check(RenderSvg({.title = "nothing", .panels = {{.title = "Loss"}}}));
  EXPECT_EQ(checked.standard_output, "1 panels, 0 curves, 0 points\n") << checked.standard_error;
}

TEST(SvgPlot, FewPointsOfAnyLineHaveDots) {
  const auto dots_of = [](SeriesStyle style, size_t count) {
    PlotSeries series = {.name = "train", .style = style};
    for (size_t i = 0; i < count; ++i) {
      series.points.push_back({static_cast<double>(i), 3.0 - 0.1 * static_cast<double>(i)});
    }
    const std::string svg = RenderSvg(
        {.title = "short", .x_high = 9, .panels = {{.title = "Loss", .unit = "nats", .series = {series}}}});
    EXPECT_EQ(Check(svg).exit_status, 0) << Check(svg).standard_error;
    size_t dots = 0;
    for (size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++dots;
    return dots;
  };
  for (const SeriesStyle style : {SeriesStyle::kFaint, SeriesStyle::kLine}) {
    EXPECT_EQ(dots_of(style, 1), 1u);
    EXPECT_EQ(dots_of(style, 2), 2u);
    EXPECT_EQ(dots_of(style, 5), 5u);
    EXPECT_EQ(dots_of(style, 6), 0u);
  }
  EXPECT_EQ(dots_of(SeriesStyle::kPoints, 6), 7u) << "with that of the legend";
}

TEST(SvgPlot, TextThatIsMarkupOrNoXmlIsEscaped) {
  PlotFigure figure = Waves(10, 0, 1);
  figure.title = "a<b> & \"c\" \x01\n";
  figure.markers = {{5, MarkerKind::kWarning, "loss > 3 & rising"}, {6, MarkerKind::kNote, "<resumed>"}};
  const std::string svg = RenderSvg(figure);
  EXPECT_EQ(Check(svg).exit_status, 0) << Check(svg).standard_error;
  EXPECT_THAT(svg, HasSubstr("a&lt;b&gt; &amp; &quot;c&quot; \uFFFD "));
  EXPECT_THAT(svg, HasSubstr("<title>loss &gt; 3 &amp; rising</title>"));
}

TEST(SvgPlot, TheCheckerSeesWhatItMust) {
  const std::string svg = RenderSvg(Waves(10, 0, 1));
  ASSERT_EQ(Check(svg).exit_status, 0);
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string copy = svg;
    const size_t at = copy.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return Check(copy.replace(at, from.size(), to));
  };
  const std::string path = "class=\"faint\" d=\"M";
  EXPECT_THAT(broken(path, path + "2000 200L").standard_error, HasSubstr("outside"));
  EXPECT_THAT(broken(path, path + "500 200L").standard_error, HasSubstr("backwards"));
  EXPECT_THAT(broken("</g>", "").standard_error, HasSubstr("mismatched tag"));
  EXPECT_THAT(broken("<title>", "<script/><title>").standard_error, HasSubstr("elsewhere"));
  const std::string wide = "middle\">" + std::string(60, '0') + "<";
  EXPECT_THAT(broken("middle\">0<", wide).standard_error, HasSubstr("overlap"));
}

}  // namespace
}  // namespace trainwright
