#include "lib/jinja/format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "lib/jinja/operators.h"
#include "lib/jinja/span.h"
#include "lib/jinja/text.h"

namespace trainwright::jinja {
namespace {

constexpr int64_t kMostWidth = 100'000;

struct FieldFormat {
  bool left = false, plus = false, space = false, zero = false, alternate = false, comma = false;
  int64_t width = 0, precision = -1;
  char type = 's';
};

bool IsFormatDigit(char c) {
  return c >= '0' && c <= '9';
}

int64_t TakeNumber(std::string_view text, size_t* at) {
  int64_t number = 0;
  while (*at < text.size() && IsFormatDigit(text[*at])) {
    number = number * 10 + (text[(*at)++] - '0');
    if (number > kMostWidth) throw Problem("the width of a format is too large");
  }
  return number;
}

// By C's printf, whose numbers look as Python's.
std::string PrintedNumber(const FieldFormat& field, const Value& value) {
  std::string format = "%";
  if (field.plus) format += '+';
  if (field.space) format += ' ';
  if (field.alternate) format += '#';
  if (field.zero && !field.left) format += '0';
  if (field.left) format += '-';
  format += std::to_string(field.width);
  if (field.precision >= 0) format += "." + std::to_string(field.precision);
  std::string out;
  const auto print = [&](auto number) {
    const int size = std::snprintf(nullptr, 0, format.c_str(), number);  // NOLINT
    out.resize(static_cast<size_t>(size) + 1);
    std::snprintf(out.data(), out.size(), format.c_str(), number);  // NOLINT
    out.pop_back();
  };
  const bool integral = std::string_view("diuxXo").find(field.type) != std::string_view::npos;
  if (!integral) {
    format += field.type;
    print(value.number());
    return out;
  }
  int64_t number = value.integer();
  if (value.is(Kind::kFloat)) {
    if (!(std::abs(value.number()) < 9e18)) throw Problem("a number does not fit 64 bits");
    number = static_cast<int64_t>(value.number());
  }
  if (field.type != 'd' && field.type != 'i' && field.type != 'u' && (number < 0 || field.alternate)) {
    throw Problem("this format of a number is not supported");
  }
  format += "l";
  format += field.type == 'i' || field.type == 'u' ? 'd' : field.type;
  print(static_cast<long>(number));  // NOLINT
  return out;
}

std::string PrintedText(const FieldFormat& field, std::string text) {
  if (field.precision >= 0) text.resize(ByteOf(text, static_cast<size_t>(field.precision)));
  return Padded(text, field.width, " ", field.left ? -1 : 1);
}

class PercentFormatter {
 public:
  PercentFormatter(Machine& machine, const TracedText& format, const Value& values)
      : machine_(machine), traced_(format), format_(format.bytes()), values_(values) {}

  TracedText Run() {
    while (at_ < format_.size()) {
      if (format_[at_] != '%') {
        out_.AddPart(traced_, at_, at_ + 1);
        ++at_;
        continue;
      }
      ++at_;
      Field();
    }
    const bool is_tuple = values_.is(Kind::kTuple);
    const bool used = is_tuple ? taken_ == values_.items().size()
                               : taken_ > 0 || values_.is(Kind::kDict) || values_.is(Kind::kList) || named_;
    if (!used) throw Problem("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  const Value& Take() {
    if (values_.is(Kind::kTuple)) {
      if (taken_ == values_.items().size()) throw Problem("not enough arguments for format string");
      return values_.items()[taken_++];
    }
    if (taken_++ > 0) throw Problem("not enough arguments for format string");
    return values_;
  }

  void Field() {
    FieldFormat field;
    const Value* value = nullptr;
    if (at_ < format_.size() && format_[at_] == '(') {
      const size_t end = format_.find(')', at_);
      if (end == std::string_view::npos || !values_.is(Kind::kDict))
        throw Problem("format requires a mapping");
      value = values_.dict().Find(format_.substr(at_ + 1, end - at_ - 1));
      if (value == nullptr) throw Problem("a key of the format is missing");
      named_ = true;
      at_ = end + 1;
    }
    for (; at_ < format_.size(); ++at_) {
      const char c = format_[at_];
      if (c == '-')
        field.left = true;
      else if (c == '+')
        field.plus = true;
      else if (c == ' ')
        field.space = true;
      else if (c == '0')
        field.zero = true;
      else if (c == '#')
        field.alternate = true;
      else
        break;
    }
    field.width = TakeNumber(format_, &at_);
    if (at_ < format_.size() && format_[at_] == '.') {
      ++at_;
      field.precision = TakeNumber(format_, &at_);
    }
    if (at_ == format_.size()) throw Problem("incomplete format");
    field.type = format_[at_++];
    if (field.type == '%') {
      out_.AddPart(traced_, at_ - 1, at_);
      return;
    }
    if (value == nullptr) value = &Take();
    machine_.Step();
    machine_.WorkOn(*value);
    Append(field, *value);
  }

  void Append(const FieldFormat& field, const Value& value) {
    const bool as_it_is = field.width == 0 && field.precision < 0;
    if (field.type == 's' && as_it_is && value.is_string()) {
      machine_.Charge(value.traced().cost());
      return out_.Add(value.traced());
    }
    std::string text;
    if (field.type == 's' || field.type == 'r') {
      text = PrintedText(field, field.type == 's' ? Str(value) : Repr(value));
    } else if (std::string_view("diuxXofFeEgG").find(field.type) != std::string_view::npos) {
      if (!value.is_number()) throw Problem("a number is required by the format");
      if (value.is(Kind::kFloat) && std::string_view("xXo").find(field.type) != std::string_view::npos) {
        throw Problem("an integer is required by the format");
      }
      text = PrintedNumber(field, value);
    } else {
      throw Problem(std::string("the format %") + field.type + " is not supported");
    }
    const TracedText piece(std::move(text), value.HasData());
    machine_.Charge(piece.cost());
    out_.Add(piece);
  }

  Machine& machine_;
  const TracedText& traced_;
  std::string_view format_;
  const Value& values_;
  size_t at_ = 0, taken_ = 0;
  bool named_ = false;
  TracedText out_;
};

// What stands behind the colon of a brace: [[fill]align][sign][0][width][,][.precision][type].
std::string Specified(const Value& value, std::string_view spec) {
  FieldFormat field;
  std::string fill = " ";
  char align = 0;
  const std::vector<std::string_view> points = PointsOf(spec);
  size_t at = 0;
  if (points.size() > 1 && points[1].size() == 1 &&
      std::string_view("<>^").find(points[1]) != std::string_view::npos) {
    fill = points[0];
    align = points[1][0];
    at = points[0].size() + 1;
  } else if (std::string_view("<>^").find(spec[0]) != std::string_view::npos) {
    align = spec[at++];
  }
  if (at < spec.size() && (spec[at] == '+' || spec[at] == '-' || spec[at] == ' ')) {
    field.plus = spec[at] == '+';
    field.space = spec[at++] == ' ';
  }
  if (at < spec.size() && spec[at] == '0') field.zero = true;
  const int64_t width = TakeNumber(spec, &at);
  if (at < spec.size() && spec[at] == '.') field.precision = TakeNumber(spec, &++at);
  const bool typed = at < spec.size();
  field.type = typed ? spec[at++] : value.is_string() ? 's' : 'd';
  if (at < spec.size()) throw Problem("the format '" + std::string(spec) + "' is not supported");
  std::string text;
  if (value.is_string() && field.type == 's' && !field.zero && !field.plus && !field.space) {
    text = PrintedText(field, value.text());
    return Padded(text, width, fill, align == '>' ? 1 : align == '^' ? 0 : -1);
  }
  const bool integral = field.type == 'd' || field.type == 'x' || field.type == 'X' || field.type == 'o';
  const bool real = std::string_view("fFeEgG").find(field.type) != std::string_view::npos;
  if (!(value.is(Kind::kInt) && (integral || real)) && !(value.is(Kind::kFloat) && real)) {
    throw Problem("the format '" + std::string(spec) + "' of this value is not supported");
  }
  if (integral && field.precision >= 0) throw Problem("Precision not allowed in integer format specifier");
  if (field.zero && align == 0) field.width = width;
  text = PrintedNumber(field, value);
  // The odd one goes to the right in this kind of centring.
  const auto size = static_cast<int64_t>(text.size());
  if (align == '^' && width > size)
    return Padded(Padded(text, size + (width - size) / 2, fill, 1), width, fill, -1);
  return Padded(text, width, fill, align == '<' ? -1 : 1);
}

class BraceFormatter {
 public:
  BraceFormatter(Machine& machine, const TracedText& format, const Arguments& arguments)
      : machine_(machine), traced_(format), format_(format.bytes()), arguments_(arguments) {}

  TracedText Run() {
    while (at_ < format_.size()) {
      const char c = format_[at_++];
      if (c != '{' && c != '}') {
        out_.AddPart(traced_, at_ - 1, at_);
      } else if (at_ < format_.size() && format_[at_] == c) {
        out_.AddPart(traced_, at_ - 1, at_);
        ++at_;
      } else if (c == '}') {
        throw Problem("Single '}' encountered in format string");
      } else {
        Field();
      }
    }
    return std::move(out_);
  }

 private:
  void Field() {
    const size_t end = format_.find('}', at_);
    if (end == std::string_view::npos) throw Problem("expected '}' before end of string");
    std::string_view field = format_.substr(at_, end - at_);
    at_ = end + 1;
    if (field.find('{') != std::string_view::npos) throw Problem("a format within a format is not supported");
    std::string_view spec;
    if (const size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = 0;
    if (const size_t mark = field.find('!'); mark != std::string_view::npos) {
      const std::string_view letter = field.substr(mark + 1);
      if (letter != "s" && letter != "r") throw Problem("unknown conversion specifier in a format");
      conversion = letter[0];
      field = field.substr(0, mark);
    }
    Value value = ValueOf(field);
    machine_.Step();
    machine_.WorkOn(value);
    machine_.WorkOnBytes(field.size());
    if (conversion == 's') value = Value::String(TracedStr(value));
    if (conversion == 'r') value = Value::String(TracedText(Repr(value), value.HasData()));
    const TracedText text =
        spec.empty() ? TracedStr(value) : TracedText(Specified(value, spec), value.HasData());
    machine_.Charge(text.cost());
    out_.Add(text);
  }

  Value ValueOf(std::string_view field) {
    size_t at = std::min(field.find_first_of(".["), field.size());
    Value value = First(field.substr(0, at));
    while (at < field.size()) {
      if (field[at] == '.') {
        const size_t end = std::min(field.find_first_of(".[", at + 1), field.size());
        value = GetAttribute(machine_, value, Value::String(std::string(field.substr(at + 1, end - at - 1))));
        at = end;
        continue;
      }
      const size_t end = field.find(']', at);
      if (field[at] != '[' || end == std::string_view::npos) throw Problem("a wrong name in a format");
      const std::string_view key = field.substr(at + 1, end - at - 1);
      const bool number = !key.empty() && std::all_of(key.begin(), key.end(), IsFormatDigit);
      size_t digits = 0;
      value = GetItem(machine_, value,
                      number ? Value::Int(TakeNumber(key, &digits)) : Value::String(std::string(key)));
      at = end + 1;
    }
    return value;
  }

  Value First(std::string_view name) {
    const bool number = !name.empty() && std::all_of(name.begin(), name.end(), IsFormatDigit);
    if (!name.empty() && !number) {
      machine_.Work(arguments_.named.size() / 8);
      for (const auto& [other, value] : arguments_.named) {
        if (other == name) return value;
      }
      throw Problem("a name of the format is missing: " + std::string(name));
    }
    size_t digits = 0;
    if (numbered_ != 0 && numbered_ != (number ? 1 : 2)) {
      throw Problem("cannot switch between automatic and manual field numbering");
    }
    numbered_ = number ? 1 : 2;
    const size_t index = number ? static_cast<size_t>(TakeNumber(name, &digits)) : next_++;
    if (index >= arguments_.positional.size()) throw Problem("not enough arguments for the format");
    return arguments_.positional[index];
  }

  Machine& machine_;
  const TracedText& traced_;
  std::string_view format_;
  const Arguments& arguments_;
  size_t at_ = 0, next_ = 0;
  int numbered_ = 0;
  TracedText out_;
};

}  // namespace

TracedText PercentFormatted(Machine& machine, const TracedText& format, const Value& values) {
  return PercentFormatter(machine, format, values).Run();
}

TracedText BraceFormat(Machine& machine, const TracedText& format, const Arguments& arguments) {
  return BraceFormatter(machine, format, arguments).Run();
}

Value ReplaceCounted(Machine& machine, const TracedText& text, const std::string& old, const TracedText& by,
                     int64_t most) {
  uint64_t count = 0;
  if (old.empty()) {
    count = text.size() + 1;
  } else {
    for (size_t at = 0; (at = FindFirst(text.bytes(), old, at)) != std::string::npos; at += old.size())
      ++count;
  }
  if (most >= 0) count = std::min(count, static_cast<uint64_t>(most));
  const bool is_data = text.has_data() || by.has_data(), in_parts = is_data && !old.empty();
  // What comes in the place of a part of the data cuts them in two.
  const uint64_t cut = in_parts && text.has_data() ? sizeof(Span) : 0;
  machine.Charge(text.cost() + count * (by.cost() + cut) + 32);
  if (!in_parts) return Value::String(TracedText(Replaced(text.bytes(), old, by.bytes(), most), is_data));
  TracedText out;
  size_t done = 0;
  for (; count > 0; --count) {
    const size_t at = FindFirst(text.bytes(), old, done);
    out.AddPart(text, done, at);
    out.Add(by);
    done = at + old.size();
  }
  out.AddPart(text, done, text.size());
  return Value::String(std::move(out));
}

bool IsCaseOf(std::string_view text, bool upper) {
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t point = NextPoint(text, &at);
    if (IsUpper(point) || IsLower(point)) {
      if (IsUpper(point) != upper) return false;
      any = true;
    }
  }
  return any;
}

}  // namespace trainwright::jinja
