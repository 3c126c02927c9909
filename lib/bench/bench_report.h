/// What people read of a bench run: a table, a plot, a page.
#pragma once

#include <string>

#include "lib/bench/bench_job.h"

namespace trainwright {

/// The table and sentences for a terminal; ends with a newline.
std::string DescribeBench(const BenchResult& result, const std::string& by);

/// Ratios and values of the deciding metric, round by round, as SVG. One figure for each row.
std::string RenderBenchSvg(const BenchResult& result, size_t row);

/// A page of the table, the warnings and every row's figure, self-contained.
std::string RenderBenchHtml(const BenchResult& result, const std::string& by);

}  // namespace trainwright
