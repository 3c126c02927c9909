#include "lib/jinja/strftime.h"

#include <ctime>

#include "lib/jinja/value.h"

namespace trainwright::jinja {
namespace {

std::tm BrokenDown(std::chrono::sys_seconds time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::tm broken = {};
  broken.tm_year = static_cast<int>(date.year()) - 1900;
  broken.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
  broken.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
  broken.tm_hour = static_cast<int>(clock.hours().count());
  broken.tm_min = static_cast<int>(clock.minutes().count());
  broken.tm_sec = static_cast<int>(clock.seconds().count());
  broken.tm_wday = static_cast<int>(std::chrono::weekday(day).c_encoding());
  const auto first = std::chrono::sys_days(date.year() / std::chrono::January / 1);
  broken.tm_yday = static_cast<int>((day - first).count());
  return broken;
}

}  // namespace

std::string FormatTime(std::string_view format, std::chrono::sys_seconds time) {
  const std::tm broken = BrokenDown(time);
  static constexpr std::string_view kDirectives = "aAbBcdDeFgGhHIjklmMnprRStTuUVwWxXyY%";
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string directive = "%";
    if (i + 1 < format.size() && format[i + 1] == '-') directive += format[++i];
    if (++i == format.size()) throw Problem("a date format ends within a directive");
    directive += format[i];
    if (directive == "%f") {
      out += "000000";
    } else if (directive == "%z" || directive == "%Z") {
      continue;  // a time without a zone
    } else if (kDirectives.find(format[i]) == std::string_view::npos) {
      throw Problem("the directive " + directive + " of a date is not supported");
    } else {
      char buffer[128];
      out.append(buffer, std::strftime(buffer, sizeof buffer, directive.c_str(), &broken));
    }
  }
  return out;
}

}  // namespace trainwright::jinja
