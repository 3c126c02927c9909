#include "lib/jinja/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "lib/jinja/arguments.h"
#include "lib/jinja/format.h"
#include "lib/jinja/operators.h"
#include "lib/jinja/text.h"
#include "lib/jinja/tojson.h"
#include "lib/jinja/value_tests.h"

namespace trainwright::jinja {
namespace {

using Filters = std::unordered_map<std::string_view, FilterFunction>;

// str(value), once.
std::string TextOf(Machine& machine, const Value& value) {
  machine.WorkOn(value);
  return Str(value);
}

TracedText TracedOf(Machine& machine, const Value& value) {
  machine.WorkOn(value);
  return TracedStr(value);
}

TracedText PlainText(Machine& machine, const Value& value) {
  if (value.is_markup()) throw Problem("this filter of a Markup string is not supported");
  return TracedOf(machine, value);
}

const std::string& NeedText(Machine& machine, const char* filter, const Value& value) {
  if (value.is_undefined()) throw Problem(value.UndefinedMessage());
  if (!value.is_string()) throw Problem(std::string(filter) + " needs a string, not " + value.TypeName());
  if (value.is_markup()) throw Problem("this filter of a Markup string is not supported");
  machine.WorkOn(value);
  return value.text();
}

// ---- attributes

using Path = std::vector<Value>;

Path PathOf(Machine& machine, const Value& attribute) {
  if (attribute.is(Kind::kNone)) return {};
  if (!attribute.is_string()) return {attribute};
  machine.WorkOn(attribute);
  Path path;
  std::string_view rest = attribute.text();
  for (;;) {
    const size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    machine.Charge(part.size() + 32 + sizeof(Value));
    const bool number =
        !part.empty() && part.find_first_not_of("0123456789") == std::string::npos && part.size() < 18;
    path.push_back(number ? Value::Int(std::stoll(part)) : Value::String(part));
    if (dot == std::string_view::npos) return path;
    rest.remove_prefix(dot + 1);
  }
}

Value Follow(Machine& machine, Value item, const Path& path, const Value& missing = Value::None()) {
  for (const Value& part : path) {
    machine.Step();
    item = GetItem(machine, item, part);
    if (item.is_undefined() && !missing.is(Kind::kNone)) item = missing;
  }
  return item;
}

Value Folded(Machine& machine, Value value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  machine.WorkOn(value);
  return machine.Text(Lower(value.text()));
}

// The keys by which items are ordered, as lists where several attributes are named.
std::vector<Value> KeysFor(Machine& machine, const std::vector<Value>& items, const Value& attribute,
                           bool case_sensitive, bool several) {
  std::vector<Path> paths;
  if (several && attribute.is_string()) {
    std::string_view rest = attribute.text();
    for (;;) {
      const size_t comma = rest.find(',');
      paths.push_back(PathOf(machine, Value::String(std::string(rest.substr(0, comma)))));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  } else {
    paths.push_back(PathOf(machine, attribute));
  }
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> parts;
    for (const Path& path : paths) {
      machine.Step();
      machine.Charge(sizeof(Value));
      parts.push_back(Folded(machine, Follow(machine, item, path), case_sensitive));
    }
    keys.push_back(several ? Value::List(std::move(parts)) : parts[0]);
  }
  return keys;
}

// The order of a stable sort; reversed ones keep the order of equals too.
std::vector<size_t> SortedOrder(Machine& machine, const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    machine.Step();
    machine.WorkOn(keys[a].Weight() < keys[b].Weight() ? keys[a] : keys[b]);
    return reverse ? Compare(keys[b], keys[a], "<") < 0 : Compare(keys[a], keys[b], "<") < 0;
  });
  return order;
}

// ---- numbers

Value AbsFilter(Machine&, const Value& value, Arguments& arguments) {
  const Parameters none("abs", arguments, {});
  if (value.is(Kind::kFloat)) return Value::Float(std::abs(value.number()));
  if (value.is_integer() && value.integer() >= 0) return Value::Int(value.integer());
  return Negated(value);
}

// A number as its reader takes it: without white space around it, and with the digits of every script as
// those of ASCII.
std::string PlainNumber(std::string_view text) {
  std::string plain;
  text = Stripped(text, "", true, true);
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int digit = DecimalOf(NextPoint(text, &at));
    if (digit >= 0) {
      plain += static_cast<char>('0' + digit);
    } else {
      plain += text.substr(begin, at - begin);
    }
  }
  return plain;
}

// A number without the underscores that stand alone between two of its digits.
std::string WithoutUnderscores(std::string_view number, bool (*is_digit)(char)) {
  std::string plain;
  for (size_t i = 0; i < number.size(); ++i) {
    const bool between = i > 0 && i + 1 < number.size() && is_digit(number[i - 1]) && is_digit(number[i + 1]);
    if (number[i] != '_' || !between) plain += number[i];
  }
  return plain;
}

// float() of a string; whether it is one.
bool ParseFloat(std::string_view text, double* out) {
  const std::string plain = WithoutUnderscores(
      PlainNumber(text), [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  const char* begin = plain.data();
  const char* end = begin + plain.size();
  const bool signed_text = begin < end && (*begin == '+' || *begin == '-');
  const bool negative = signed_text && *begin == '-';
  if (signed_text) ++begin;
  if (begin == end || *begin == '-' || plain.find_first_of("()") != std::string::npos) return false;
  const auto [stop, problem] = std::from_chars(begin, end, *out);
  if (stop != end || problem == std::errc::invalid_argument) return false;
  if (problem == std::errc::result_out_of_range) throw Problem("a number is out of the range of floats");
  if (negative) *out = -*out;
  return true;
}

// int() of a string; whether it is one.
bool ParseInt(std::string_view text, int base, int64_t* out) {
  std::string plain = PlainNumber(text);
  bool negative = false;
  if (!plain.empty() && (plain[0] == '+' || plain[0] == '-')) {
    negative = plain[0] == '-';
    plain.erase(0, 1);
  }
  const char letter = plain.size() > 2 && plain[0] == '0' ? static_cast<char>(plain[1] | 0x20) : '\0';
  const int prefix = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (prefix != 0 && (base == prefix || base == 0)) {
    plain.erase(0, plain[2] == '_' ? 3 : 2);
    base = prefix;
  } else if (base == 0) {
    if (plain.size() > 1 && plain[0] == '0' && plain.find_first_not_of("0_") != std::string::npos)
      return false;
    base = 10;
  }
  plain = WithoutUnderscores(plain, [](char c) { return c != '_'; });
  if (plain.empty() || plain[0] == '-') return false;
  uint64_t number = 0;
  const auto [stop, problem] = std::from_chars(plain.data(), plain.data() + plain.size(), number, base);
  if (stop != plain.data() + plain.size() || problem == std::errc::invalid_argument) return false;
  if (problem != std::errc() || number > static_cast<uint64_t>(INT64_MAX)) {
    throw Problem("an integer does not fit 64 bits: not supported");
  }
  *out = negative ? -static_cast<int64_t>(number) : static_cast<int64_t>(number);
  return true;
}

Value TruncatedOr(double number, const Value& otherwise) {
  if (!std::isfinite(number)) return otherwise;
  if (std::abs(number) >= 9.2e18) throw Problem("an integer does not fit 64 bits: not supported");
  return Value::Int(static_cast<int64_t>(number));
}

Value IntFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("int", arguments, {"default", "base"});
  const Value otherwise = given.Or(0, Value::Int(0));
  if (value.is_undefined()) throw Problem(value.UndefinedMessage());
  if (value.is_integer()) return Value::Int(value.integer());
  if (value.is(Kind::kFloat)) {
    if (std::isinf(value.number())) throw Problem("cannot convert float infinity to integer");
    return TruncatedOr(value.number(), otherwise);
  }
  if (!value.is_string()) return otherwise;
  machine.WorkOn(value);
  const int64_t base = given.IntegerOr(1, 10);
  int64_t integer = 0;
  double number = 0;
  const bool good_base = base == 0 || (base >= 2 && base <= 36);
  if (good_base && ParseInt(value.text(), static_cast<int>(base), &integer)) return Value::Int(integer);
  return ParseFloat(value.text(), &number) ? TruncatedOr(number, otherwise) : otherwise;
}

Value FloatFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("float", arguments, {"default"});
  double number = 0;
  if (value.is_undefined()) throw Problem(value.UndefinedMessage());
  if (value.is_number()) return Value::Float(value.number());
  if (value.is_string()) machine.WorkOn(value);
  if (value.is_string() && ParseFloat(value.text(), &number)) return Value::Float(number);
  return given.Or(0, Value::Float(0));
}

// round(): to even at halves, of the decimal that the float really is.
double RoundedTo(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  if (digits < 0) {
    const double power = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / power) * power;
  }
  char buffer[700];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, static_cast<int>(digits))
          .ptr;
  double rounded = 0;
  std::from_chars(buffer, end, rounded);
  return rounded;
}

Value RoundFilter(Machine&, const Value& value, Arguments& arguments) {
  const Parameters given("round", arguments, {"precision", "method"});
  const std::string method = given.has(1) ? given.Text(1) : "common";
  const int64_t digits = given.IntegerOr(0, 0);
  if (value.is_undefined()) throw Problem(value.UndefinedMessage());
  if (!value.is_number()) throw Problem("round needs a number");
  if (method == "common") {
    if (value.is(Kind::kFloat)) return Value::Float(RoundedTo(value.number(), digits));
    if (digits < 0) throw Problem("rounding an integer to tens is not supported");
    return Value::Int(value.integer());
  }
  if (method != "ceil" && method != "floor") throw Problem("method must be common, ceil or floor");
  if (digits < 0 || digits > 18) throw Problem("this precision is not supported");
  const double power = std::pow(10.0, static_cast<double>(digits));
  const double scaled = value.number() * power;
  return Value::Float((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / power);
}

Value SumFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("sum", arguments, {"attribute", "start"});
  static const BinaryFunction kAdd = BinaryOf("+");
  const Path path = PathOf(machine, given.Or(0, Value::None()));
  Value sum = given.Or(1, Value::Int(0));
  if (sum.is_string()) throw Problem("sum() can't sum strings");
  for (const Value& item : ItemsOf(machine, value)) sum = kAdd(machine, sum, Follow(machine, item, path));
  return sum;
}

// ---- text

template <std::string (*function)(std::string_view)>
Value TextFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("the filter", arguments, {});
  return machine.Text(function(PlainText(machine, value).bytes()));
}

// Words begin behind white space and opening brackets, not behind every sign as in str.title.
std::string WordTitled(std::string_view text) {
  std::string out, word;
  const auto flush = [&] {
    if (word.empty()) return;
    size_t end = 0;
    NextPoint(word, &end);
    out += Upper(std::string_view(word).substr(0, end));
    out += Lower(std::string_view(word).substr(end));
    word.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t code = NextPoint(text, &at);
    const std::string_view point = text.substr(begin, at - begin);
    const bool breaks =
        IsSpace(code) || (code < 0x80 && std::string_view("-({[<").find(point) != std::string_view::npos);
    if (!breaks) {
      word += point;
    } else {
      flush();
      out += point;
    }
  }
  flush();
  return out;
}

Value CenterFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("center", arguments, {"width"});
  const int64_t width = given.IntegerOr(0, 80);
  machine.Charge(static_cast<uint64_t>(std::max<int64_t>(width, 0)));
  return machine.Text(Padded(PlainText(machine, value).bytes(), width, " ", 0));
}

Value EscapeFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("escape", arguments, {});
  if (value.is_markup()) return value;
  std::string out;
  for (const char c : TextOf(machine, value)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return machine.Text(std::move(out)).AsMarkup();
}

Value SafeFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("safe", arguments, {});
  if (value.is_markup()) return value;
  return (value.is_string() ? value : machine.Text(TracedOf(machine, value))).AsMarkup();
}

Value StringFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("string", arguments, {});
  return value.is_string() ? value : machine.Text(TracedOf(machine, value));
}

Value FormatFilter(Machine& machine, const Value& value, Arguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty()) {
    throw Problem("can't handle positional and keyword arguments at the same time");
  }
  const TracedText format = PlainText(machine, value);
  if (arguments.named.empty()) {
    return machine.Text(PercentFormatted(machine, format, Value::Tuple(arguments.positional)));
  }
  Dict dict;
  for (const auto& [name, given] : arguments.named) dict.Set(Value::String(name), given);
  return machine.Text(PercentFormatted(machine, format, Value::OfDict(std::move(dict))));
}

Value IndentFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("indent", arguments, {"width", "first", "blank"});
  NeedText(machine, "indent", value);
  TracedText text = value.traced();
  text.Add("\n", /*is_data=*/false);
  std::string indent;
  if (given.has(0) && given[0].is_string()) {
    indent = given.Text(0);
  } else {
    const int64_t width = std::max<int64_t>(given.IntegerOr(0, 4), 0);
    machine.Charge(static_cast<uint64_t>(width));
    indent.assign(static_cast<size_t>(width), ' ');
  }
  const bool blank = given.TruthOr(2, false);
  const TracedText margin(std::move(indent), given.has(0) && given[0].HasData());
  TracedText out;
  bool first = true;
  for (size_t at = 0; at < text.size();) {
    const std::string_view line = NextLine(text.bytes(), false, &at);
    const TracedText words = text.Part(line);
    machine.Step();
    machine.Charge(margin.cost() + words.cost());
    if (!first) out.Add("\n", false);
    if (first ? given.TruthOr(1, false) : blank || !line.empty()) out.Add(margin);
    out.Add(words);
    first = false;
  }
  return machine.Text(std::move(out));
}

Value JoinFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("join", arguments, {"d", "attribute"});
  const TracedText separator = given.has(0) ? TracedOf(machine, given[0]) : TracedText();
  const Path path = PathOf(machine, given.Or(1, Value::None()));
  TracedText out;
  bool first = true;
  for (const Value& item : ItemsOf(machine, value)) {
    const TracedText text = TracedOf(machine, Follow(machine, item, path));
    machine.Step();
    machine.Charge(text.cost() + separator.cost());
    if (!first) out.Add(separator);
    first = false;
    out.Add(text);
  }
  return machine.Text(std::move(out));
}

Value ReplaceFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("replace", arguments, {"old", "new", "count"}, 2);
  const int64_t most = given.has(2) && !given[2].is(Kind::kNone) ? given.Integer(2) : -1;
  return ReplaceCounted(machine, TracedOf(machine, value), TextOf(machine, given[0]),
                        TracedOf(machine, given[1]), most);
}

Value TrimFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("trim", arguments, {"chars"});
  const TracedText text = PlainText(machine, value);
  if (!given.has(0) || given[0].is(Kind::kNone))
    return machine.Text(text.Part(Stripped(text.bytes(), "", true, true)));
  if (given.Text(0).empty()) return value;
  return machine.Text(text.Part(Stripped(text.bytes(), given.Text(0), true, true)));
}

Value TruncateFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const std::string& text = NeedText(machine, "truncate", value);
  const int64_t length = given.IntegerOr(0, 255);
  const std::string end = given.has(2) ? given.Text(2) : "...";
  const int64_t leeway = given.has(3) && !given[3].is(Kind::kNone) ? given.Integer(3) : 5;
  const auto end_size = static_cast<int64_t>(PointCount(end));
  if (length < end_size) throw Problem("truncate expects a length of its end at least");
  if (leeway < 0) throw Problem("truncate expects a leeway of 0 at least");
  if (static_cast<int64_t>(PointCount(text)) <= length + leeway) return value;
  std::string cut = text.substr(0, ByteOf(text, static_cast<size_t>(length - end_size)));
  if (!given.TruthOr(1, false)) cut = cut.substr(0, cut.rfind(' '));
  return machine.Text(cut + end);
}

Value WordCountFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("wordcount", arguments, {});
  const std::string text = TextOf(machine, value);
  int64_t count = 0;
  bool within = false;
  for (size_t at = 0; at < text.size();) {
    const bool word = IsWord(NextPoint(text, &at));
    count += word && !within ? 1 : 0;
    within = word;
  }
  return Value::Int(count);
}

Value ToJsonFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonLayout layout;
  layout.ascii = given.TruthOr(0, false);
  layout.sorted = given.TruthOr(3, false);
  if (given.has(1) && !given[1].is(Kind::kNone)) {
    layout.indented = true;
    if (given[1].is_string()) {
      layout.indent = given.Text(1);
    } else {
      const int64_t width = std::max<int64_t>(given.Integer(1), 0);
      if (width > 1000) throw Problem("the indent of tojson is too large");
      layout.indent.assign(static_cast<size_t>(width), ' ');
    }
    layout.between_items = ",";
  }
  if (given.has(2) && !given[2].is(Kind::kNone)) {
    const std::vector<Value> separators = ItemsOf(machine, given[2]);
    if (separators.size() != 2 || !separators[0].is_string() || !separators[1].is_string()) {
      throw Problem("the separators of tojson are two strings");
    }
    layout.between_items = separators[0].text();
    layout.after_key = separators[1].text();
  }
  return machine.Text(ToJson(machine, value, layout));
}

// ---- sequences

Value AttrFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("attr", arguments, {"name"}, 1);
  const Value name = Value::String(given.Text(0));
  if (value.is(Kind::kDict)) {  // its attributes only, never its items
    const Value without = Value::OfDict(Dict());
    const Value found = GetAttribute(machine, without, name);
    return found.is_undefined() ? found : GetAttribute(machine, value, name);
  }
  return GetAttribute(machine, value, name);
}

Value BatchFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("batch", arguments, {"linecount", "fill_with"}, 1);
  const int64_t size = given.Integer(0);
  std::vector<Value> batches, batch;
  for (const Value& item : ItemsOf(machine, value)) {
    if (static_cast<int64_t>(batch.size()) == size) {
      batches.push_back(machine.List(std::move(batch)));
      batch.clear();
    }
    batch.push_back(item);
  }
  if (!batch.empty()) {
    const bool fills = given.has(1) && !given[1].is(Kind::kNone);
    if (fills && size > 0) machine.Charge(static_cast<uint64_t>(size) * sizeof(Value));
    while (fills && static_cast<int64_t>(batch.size()) < size) batch.push_back(given[1]);
    batches.push_back(machine.List(std::move(batch)));
  }
  return machine.Sequence(Kind::kIterator, std::move(batches));
}

Value SliceFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("slice", arguments, {"slices", "fill_with"}, 1);
  const std::vector<Value> items = ItemsOf(machine, value);
  const int64_t slices = given.Integer(0);
  if (slices == 0) throw Problem("division by zero");
  if (slices < 0) return machine.Sequence(Kind::kIterator, {});
  machine.Charge(static_cast<uint64_t>(slices) * sizeof(Value));
  const auto count = static_cast<int64_t>(items.size());
  const int64_t size = count / slices, with_extra = count % slices;
  std::vector<Value> lists;
  for (int64_t i = 0, begin = 0; i < slices; ++i) {
    const int64_t end = begin + size + (i < with_extra ? 1 : 0);
    std::vector<Value> part(items.begin() + begin, items.begin() + end);
    if (given.has(1) && !given[1].is(Kind::kNone) && i >= with_extra) part.push_back(given[1]);
    lists.push_back(machine.List(std::move(part)));
    begin = end;
  }
  return machine.Sequence(Kind::kIterator, std::move(lists));
}

Value DefaultFilter(Machine&, const Value& value, Arguments& arguments) {
  const Parameters given("default", arguments, {"default_value", "boolean"});
  if (value.is_undefined() || (given.TruthOr(1, false) && !value.Truth()))
    return given.Or(0, Value::String(""));
  return value;
}

Value DictSortFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = given.has(1) ? given.Text(1) : "key";
  if (by != "key" && by != "value") throw Problem("You can only sort by either \"key\" or \"value\"");
  if (value.is_undefined()) throw Problem(value.UndefinedMessage());
  if (!value.is(Kind::kDict)) throw Problem("dictsort needs a dict");
  const auto& items = value.dict().items();
  std::vector<Value> keys, sorted;
  for (const auto& item : items) {
    keys.push_back(Folded(machine, by == "key" ? item.first : item.second, given.TruthOr(0, false)));
  }
  for (const size_t i : SortedOrder(machine, keys, given.TruthOr(2, false))) {
    sorted.push_back(machine.Sequence(Kind::kTuple, {items[i].first, items[i].second}));
  }
  return machine.List(std::move(sorted));
}

Value FirstFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("first", arguments, {});
  if (value.is(Kind::kIterator)) {
    Sequence& sequence = value.sequence();
    return sequence.taken < sequence.items.size() ? sequence.items[sequence.taken++] : Value();
  }
  const std::vector<Value> items = ItemsOf(machine, value);
  return items.empty() ? Value() : items.front();
}

Value LastFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("last", arguments, {});
  if (value.is(Kind::kIterator)) throw Problem("a generator is not reversible");
  const std::vector<Value> items = ItemsOf(machine, value);
  return items.empty() ? Value() : items.back();
}

Value GroupByFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const std::vector<Value> items = ItemsOf(machine, value);
  const Path path = PathOf(machine, given[0]);
  const bool case_sensitive = given.TruthOr(2, false);
  std::vector<Value> keys, folded;
  for (const Value& item : items) {
    keys.push_back(Follow(machine, item, path, given.Or(1, Value::None())));
    folded.push_back(Folded(machine, keys.back(), case_sensitive));
  }
  const std::vector<size_t> order = SortedOrder(machine, folded, false);
  std::vector<Value> groups;
  for (size_t i = 0; i < order.size();) {
    const size_t first = order[i];
    std::vector<Value> members;
    for (; i < order.size() && Equal(machine, folded[order[i]], folded[first]); ++i)
      members.push_back(items[order[i]]);
    groups.push_back(
        machine.Sequence(Kind::kTuple, {keys[first], machine.List(std::move(members))}, "group"));
  }
  return machine.List(std::move(groups));
}

Value ItemsFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("items", arguments, {});
  if (value.is_undefined()) return machine.Sequence(Kind::kIterator, {});
  if (!value.is(Kind::kDict)) throw Problem("Can only get item pairs from a mapping.");
  std::vector<Value> items;
  for (const auto& [key, held] : value.dict().items())
    items.push_back(machine.Sequence(Kind::kTuple, {key, held}));
  return machine.Sequence(Kind::kIterator, std::move(items));
}

Value LengthFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("length", arguments, {});
  if (value.is_string()) machine.WorkOn(value);
  return Value::Int(LengthOf(value));
}

Value ListFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("list", arguments, {});
  return machine.List(ItemsOf(machine, value));
}

Value ReverseFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters none("reverse", arguments, {});
  if (value.is_string()) {
    return GetSlice(machine, value, Value::None(), Value::None(), Value::Int(-1));
  }
  const bool as_list = value.is(Kind::kIterator);
  std::vector<Value> items = ItemsOf(machine, value);
  std::reverse(items.begin(), items.end());
  return machine.Sequence(as_list ? Kind::kList : Kind::kIterator, std::move(items));
}

Value SortFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const std::vector<Value> items = ItemsOf(machine, value);
  const std::vector<Value> keys =
      KeysFor(machine, items, given.Or(2, Value::None()), given.TruthOr(1, false), true);
  std::vector<Value> sorted;
  for (const size_t i : SortedOrder(machine, keys, given.TruthOr(0, false))) sorted.push_back(items[i]);
  return machine.List(std::move(sorted));
}

Value UniqueFilter(Machine& machine, const Value& value, Arguments& arguments) {
  const Parameters given("unique", arguments, {"case_sensitive", "attribute"});
  const std::vector<Value> items = ItemsOf(machine, value);
  const std::vector<Value> keys =
      KeysFor(machine, items, given.Or(1, Value::None()), given.TruthOr(0, false), false);
  Dict seen;
  std::vector<Value> unique;
  for (size_t i = 0; i < items.size(); ++i) {
    machine.Step();
    machine.WorkOn(keys[i]);
    if (seen.Find(keys[i]) != nullptr) continue;
    seen.Set(keys[i], Value::None());
    unique.push_back(items[i]);
  }
  return machine.Sequence(Kind::kIterator, std::move(unique));
}

Value Extreme(Machine& machine, const Value& value, const Arguments& arguments, bool largest) {
  const Parameters given("min or max", arguments, {"case_sensitive", "attribute"});
  const std::vector<Value> items = ItemsOf(machine, value);
  if (items.empty()) return Value();
  const std::vector<Value> keys =
      KeysFor(machine, items, given.Or(1, Value::None()), given.TruthOr(0, false), false);
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    machine.Step();
    if (Ordered(machine, keys[i], keys[best], largest ? ">" : "<")) best = i;
  }
  return items[best];
}
Value MaxFilter(Machine& m, const Value& value, Arguments& arguments) {
  return Extreme(m, value, arguments, true);
}
Value MinFilter(Machine& m, const Value& value, Arguments& arguments) {
  return Extreme(m, value, arguments, false);
}

Value MapFilter(Machine& machine, const Value& value, Arguments& arguments) {
  std::vector<Value> mapped;
  if (!value.Truth()) return machine.Sequence(Kind::kIterator, {});
  if (arguments.positional.empty()) {
    if (arguments.named.empty() ||
        std::none_of(arguments.named.begin(), arguments.named.end(),
                     [](const auto& named) { return named.first == "attribute"; })) {
      throw Problem("map requires a filter argument");
    }
    const Parameters given("map", arguments, {"attribute", "default"}, 1);
    const Path path = PathOf(machine, given[0]);
    for (const Value& item : ItemsOf(machine, value)) {
      mapped.push_back(Follow(machine, item, path, given.Or(1, Value::None())));
    }
    return machine.Sequence(Kind::kIterator, std::move(mapped));
  }
  const FilterFunction filter =
      arguments.positional[0].is_string() ? FindFilter(arguments.positional[0].text()) : nullptr;
  if (filter == nullptr) throw Problem("map names a filter that is not known or not supported");
  arguments.positional.erase(arguments.positional.begin());
  for (const Value& item : ItemsOf(machine, value)) {
    machine.Work(1 + arguments.positional.size() + arguments.named.size());
    Arguments copy = arguments;
    mapped.push_back(filter(machine, item, copy));
  }
  return machine.Sequence(Kind::kIterator, std::move(mapped));
}

Value Selected(Machine& machine, const Value& value, Arguments& arguments, bool wanted, bool by_attribute) {
  std::vector<Value> selected;
  if (!value.Truth()) return machine.Sequence(Kind::kIterator, {});
  Path path;
  auto& given = arguments.positional;
  if (by_attribute) {
    if (given.empty()) throw Problem("Missing parameter for attribute name");
    path = PathOf(machine, given[0]);
    given.erase(given.begin());
  }
  TestFunction test = nullptr;
  if (!given.empty()) {
    test = given[0].is_string() ? FindTest(given[0].text()) : nullptr;
    if (test == nullptr) throw Problem("a filter names a test that is not known or not supported");
    given.erase(given.begin());
  }
  for (const Value& item : ItemsOf(machine, value)) {
    machine.Work(1 + arguments.positional.size() + arguments.named.size());
    const Value tested = Follow(machine, item, path);
    Arguments copy = arguments;
    if ((test == nullptr ? tested.Truth() : test(machine, tested, copy)) == wanted) selected.push_back(item);
  }
  return machine.Sequence(Kind::kIterator, std::move(selected));
}
Value SelectFilter(Machine& m, const Value& v, Arguments& a) {
  return Selected(m, v, a, true, false);
}
Value RejectFilter(Machine& m, const Value& v, Arguments& a) {
  return Selected(m, v, a, false, false);
}
Value SelectAttrFilter(Machine& m, const Value& v, Arguments& a) {
  return Selected(m, v, a, true, true);
}
Value RejectAttrFilter(Machine& m, const Value& v, Arguments& a) {
  return Selected(m, v, a, false, true);
}

}  // namespace

FilterFunction FindFilter(std::string_view name) {
  static const Filters kFilters = {
      {"abs", AbsFilter},
      {"attr", AttrFilter},
      {"batch", BatchFilter},
      {"capitalize", TextFilter<Capitalized>},
      {"center", CenterFilter},
      {"count", LengthFilter},
      {"d", DefaultFilter},
      {"default", DefaultFilter},
      {"dictsort", DictSortFilter},
      {"e", EscapeFilter},
      {"escape", EscapeFilter},
      {"first", FirstFilter},
      {"float", FloatFilter},
      {"format", FormatFilter},
      {"groupby", GroupByFilter},
      {"indent", IndentFilter},
      {"int", IntFilter},
      {"items", ItemsFilter},
      {"join", JoinFilter},
      {"last", LastFilter},
      {"length", LengthFilter},
      {"list", ListFilter},
      {"lower", TextFilter<Lower>},
      {"map", MapFilter},
      {"max", MaxFilter},
      {"min", MinFilter},
      {"reject", RejectFilter},
      {"rejectattr", RejectAttrFilter},
      {"replace", ReplaceFilter},
      {"reverse", ReverseFilter},
      {"round", RoundFilter},
      {"safe", SafeFilter},
      {"select", SelectFilter},
      {"selectattr", SelectAttrFilter},
      {"slice", SliceFilter},
      {"sort", SortFilter},
      {"string", StringFilter},
      {"sum", SumFilter},
      {"title", TextFilter<WordTitled>},
      {"tojson", ToJsonFilter},
      {"trim", TrimFilter},
      {"truncate", TruncateFilter},
      {"unique", UniqueFilter},
      {"upper", TextFilter<Upper>},
      {"wordcount", WordCountFilter},
  };
  const auto it = kFilters.find(name);
  return it == kFilters.end() ? nullptr : it->second;
}

bool IsFilterOfJinja(std::string_view name) {
  if (FindFilter(name) != nullptr) return true;
  static constexpr std::string_view kOthers[] = {"filesizeformat", "forceescape", "pprint",
                                                 "random",         "striptags",   "urlencode",
                                                 "urlize",         "wordwrap",    "xmlattr"};
  return std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
}

}  // namespace trainwright::jinja
