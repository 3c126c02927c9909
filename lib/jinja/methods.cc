#include "lib/jinja/methods.h"

#include <algorithm>
#include <unordered_map>

#include "lib/jinja/arguments.h"
#include "lib/jinja/format.h"
#include "lib/jinja/operators.h"
#include "lib/jinja/text.h"

namespace trainwright::jinja {
namespace {

using Methods = std::unordered_map<std::string_view, MethodFunction>;

// The list of the parts that a text falls into. Each is counted before the next is looked for.
class Parts {
 public:
  Parts(Machine& machine, const TracedText& whole) : machine_(machine), whole_(whole) {}
  void Add(std::string_view part) {
    machine_.Step();
    machine_.Charge(sizeof(Value));
    parts_.push_back(machine_.Text(whole_.Part(part)));
  }
  Value InOrder() { return Value::List(std::move(parts_)); }
  Value Reversed() {
    std::reverse(parts_.begin(), parts_.end());
    return InOrder();
  }

 private:
  Machine& machine_;
  const TracedText& whole_;
  std::vector<Value> parts_;
};

void NoArguments(const char* name, const Arguments& arguments) {
  const Parameters none(name, arguments, {});
}

Value StripText(Machine& machine, const char* name, const Value& self, const Arguments& arguments, bool left,
                bool right) {
  const Parameters given(name, arguments, {"chars"});
  if (!arguments.named.empty()) throw Problem(std::string(name) + " takes no named arguments");
  std::string_view set;
  if (given.has(0) && !given[0].is(Kind::kNone)) {
    set = given.Text(0);
    if (set.empty()) return self;
  }
  return machine.Text(self.traced().Part(Stripped(self.text(), set, left, right)));
}

Value Strip(Machine& m, const Value& self, const Arguments& a) {
  return StripText(m, "strip", self, a, true, true);
}
Value LStrip(Machine& m, const Value& self, const Arguments& a) {
  return StripText(m, "lstrip", self, a, true, false);
}
Value RStrip(Machine& m, const Value& self, const Arguments& a) {
  return StripText(m, "rstrip", self, a, false, true);
}

// The pieces between runs of white space. The last keeps the white space at its far end.
Value SplitAtSpace(Machine& machine, const TracedText& text, int64_t most) {
  Parts parts(machine, text);
  std::string_view rest = Stripped(text.bytes(), "", true, false);
  for (; !rest.empty(); --most) {
    const size_t end = most == 0 ? rest.size() : EndOfFirstWord(rest);
    parts.Add(rest.substr(0, end));
    rest = Stripped(rest.substr(end), "", true, false);
  }
  return parts.InOrder();
}

Value SplitAtSpaceFromRight(Machine& machine, const TracedText& text, int64_t most) {
  Parts parts(machine, text);
  std::string_view rest = Stripped(text.bytes(), "", false, true);
  for (; !rest.empty(); --most) {
    const size_t begin = most == 0 ? 0 : BeginOfLastWord(rest);
    parts.Add(rest.substr(begin));
    rest = Stripped(rest.substr(0, begin), "", false, true);
  }
  return parts.Reversed();
}

Value SplitAt(Machine& machine, const TracedText& whole, std::string_view separator, int64_t most) {
  Parts parts(machine, whole);
  const std::string_view text = whole.bytes();
  size_t begin = 0;
  for (; most != 0; --most) {
    const size_t at = FindFirst(text, separator, begin);
    if (at == std::string_view::npos) break;
    parts.Add(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.Add(text.substr(begin));
  return parts.InOrder();
}

// The text is searched turned round, so that each search goes on where the one before has ended.
Value SplitAtFromRight(Machine& machine, const TracedText& whole, std::string_view separator, int64_t most) {
  Parts parts(machine, whole);
  const std::string_view text = whole.bytes();
  machine.Charge(text.size() + separator.size());
  const std::string turned(text.rbegin(), text.rend()),
      turned_separator(separator.rbegin(), separator.rend());
  size_t begin = 0;
  for (; most != 0; --most) {
    const size_t at = FindFirst(turned, turned_separator, begin);
    if (at == std::string_view::npos) break;
    parts.Add(text.substr(text.size() - at, at - begin));
    begin = at + separator.size();
  }
  parts.Add(text.substr(0, text.size() - begin));
  return parts.Reversed();
}

Value SplitText(Machine& machine, const Value& self, const Arguments& arguments, bool from_right) {
  const Parameters given("split", arguments, {"sep", "maxsplit"});
  const TracedText& text = self.traced();
  const int64_t most = given.IntegerOr(1, -1);
  if (!given.has(0) || given[0].is(Kind::kNone)) {
    return from_right ? SplitAtSpaceFromRight(machine, text, most) : SplitAtSpace(machine, text, most);
  }
  const std::string& separator = given.Text(0);
  if (separator.empty()) throw Problem("empty separator");
  return from_right ? SplitAtFromRight(machine, text, separator, most)
                    : SplitAt(machine, text, separator, most);
}

Value Split(Machine& m, const Value& self, const Arguments& a) {
  return SplitText(m, self, a, false);
}
Value RSplit(Machine& m, const Value& self, const Arguments& a) {
  return SplitText(m, self, a, true);
}

Value SplitLines(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters given("splitlines", arguments, {"keepends"});
  const bool keeps_ends = given.TruthOr(0, false);
  Parts lines(machine, self.traced());
  for (size_t at = 0; at < self.text().size();) lines.Add(NextLine(self.text(), keeps_ends, &at));
  return lines.InOrder();
}

// text[begin:end] of find and its like; false where begin lies behind the end.
bool Cut(const Parameters& given, const std::string& text, std::string_view* part, int64_t* offset) {
  if (!given.has(1) && !given.has(2)) {
    *part = text;
    *offset = 0;
    return true;
  }
  const auto size = static_cast<int64_t>(PointCount(text));
  const auto bound = [&](size_t i, int64_t value) {
    if (given.has(i) && !given[i].is(Kind::kNone)) value = given.Integer(i);
    return value < 0 ? std::max<int64_t>(0, value + size) : value;
  };
  const int64_t begin = bound(1, 0), end = std::min(bound(2, size), size);
  *offset = begin;
  if (begin > end) return false;
  const size_t from = ByteOf(text, static_cast<size_t>(begin));
  *part = std::string_view(text).substr(from, ByteOf(text, static_cast<size_t>(end)) - from);
  return true;
}

int64_t FindIn(const char* name, const Value& self, const Arguments& arguments, bool from_right) {
  const Parameters given(name, arguments, {"sub", "start", "end"}, 1);
  std::string_view part;
  int64_t offset = 0;
  const std::string& sought = given.Text(0);
  if (!Cut(given, self.text(), &part, &offset)) return -1;
  const size_t at = from_right ? FindLast(part, sought) : FindFirst(part, sought);
  return at == std::string_view::npos ? -1 : offset + static_cast<int64_t>(PointCount(part.substr(0, at)));
}

Value FindText(Machine&, const Value& self, const Arguments& a) {
  return Value::Int(FindIn("find", self, a, false));
}
Value RFindText(Machine&, const Value& self, const Arguments& a) {
  return Value::Int(FindIn("rfind", self, a, true));
}

Value FoundOrProblem(int64_t at) {
  if (at < 0) throw Problem("substring not found");
  return Value::Int(at);
}
Value IndexText(Machine&, const Value& self, const Arguments& a) {
  return FoundOrProblem(FindIn("index", self, a, false));
}
Value RIndexText(Machine&, const Value& self, const Arguments& a) {
  return FoundOrProblem(FindIn("rindex", self, a, true));
}

Value CountText(Machine&, const Value& self, const Arguments& arguments) {
  const Parameters given("count", arguments, {"sub", "start", "end"}, 1);
  std::string_view part;
  int64_t offset = 0, count = 0;
  const std::string& sought = given.Text(0);
  if (!Cut(given, self.text(), &part, &offset)) return Value::Int(0);
  if (sought.empty()) return Value::Int(static_cast<int64_t>(PointCount(part)) + 1);
  for (size_t at = 0; (at = FindFirst(part, sought, at)) != std::string_view::npos; at += sought.size())
    ++count;
  return Value::Int(count);
}

Value AffixText(const char* name, const Value& self, const Arguments& arguments, bool at_end) {
  const Parameters given(name, arguments, {"affix", "start", "end"}, 1);
  std::string_view part;
  int64_t offset = 0;
  const bool cut = Cut(given, self.text(), &part, &offset);
  const auto matches = [&](const Value& affix) {
    if (!affix.is_string()) throw Problem(std::string(name) + " needs a string or a tuple of strings");
    const std::string& text = affix.text();
    return cut && (at_end ? part.ends_with(text) : part.starts_with(text));
  };
  if (!given[0].is(Kind::kTuple)) return Value::Bool(matches(given[0]));
  const auto& items = given[0].items();
  return Value::Bool(std::any_of(items.begin(), items.end(), matches));
}

Value StartsWith(Machine&, const Value& self, const Arguments& a) {
  return AffixText("startswith", self, a, false);
}
Value EndsWith(Machine&, const Value& self, const Arguments& a) {
  return AffixText("endswith", self, a, true);
}

Value ReplaceText(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters given("replace", arguments, {"old", "new", "count"}, 2);
  if (!arguments.named.empty()) throw Problem("replace takes no named arguments");
  const std::string& old = given.Text(0);
  given.Text(1);
  return ReplaceCounted(machine, self.traced(), old, given[1].traced(), given.IntegerOr(2, -1));
}

template <std::string (*function)(std::string_view)>
Value Mapped(Machine& machine, const Value& self, const Arguments& arguments) {
  NoArguments("the method", arguments);
  return machine.Text(function(self.text()));
}

template <bool (*is)(char32_t)>
Value All(Machine&, const Value& self, const Arguments& arguments) {
  NoArguments("the method", arguments);
  const std::string& text = self.text();
  bool all = !text.empty();
  for (size_t at = 0; at < text.size();) all &= is(NextPoint(text, &at));
  return Value::Bool(all);
}

Value IsAsciiText(Machine&, const Value& self, const Arguments& arguments) {
  NoArguments("isascii", arguments);
  return Value::Bool(IsAscii(self.text()));
}

Value IsUpperText(Machine&, const Value& self, const Arguments& arguments) {
  NoArguments("isupper", arguments);
  return Value::Bool(IsCaseOf(self.text(), true));
}

Value IsLowerText(Machine&, const Value& self, const Arguments& arguments) {
  NoArguments("islower", arguments);
  return Value::Bool(IsCaseOf(self.text(), false));
}

Value JoinText(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters given("join", arguments, {"iterable"}, 1);
  TracedText out;
  bool first = true;
  for (const Value& item : ItemsOf(machine, given[0])) {
    if (!item.is_string()) throw Problem(std::string("join needs strings, not ") + item.TypeName());
    machine.Charge(item.traced().cost() + self.traced().cost());
    if (!first) out.Add(self.traced());
    first = false;
    out.Add(item.traced());
  }
  return machine.Text(std::move(out));
}

Value FormatText(Machine& machine, const Value& self, const Arguments& arguments) {
  return machine.Text(BraceFormat(machine, self.traced(), arguments));
}

Value RemovePrefix(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters given("removeprefix", arguments, {"prefix"}, 1);
  const std::string& prefix = given.Text(0);
  if (!self.text().starts_with(prefix)) return self;
  return machine.Text(self.traced().Part(std::string_view(self.text()).substr(prefix.size())));
}

Value RemoveSuffix(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters given("removesuffix", arguments, {"suffix"}, 1);
  const std::string& suffix = given.Text(0);
  if (!self.text().ends_with(suffix)) return self;
  const size_t size = self.text().size() - suffix.size();
  return machine.Text(self.traced().Part(std::string_view(self.text()).substr(0, size)));
}

Value ZFill(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters given("zfill", arguments, {"width"}, 1);
  machine.Charge(static_cast<uint64_t>(std::max<int64_t>(0, given.Integer(0))));
  const std::string& text = self.text();
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const std::string_view digits = std::string_view(text).substr(sign);
  return machine.Text(text.substr(0, sign) +
                      Padded(digits, given.Integer(0) - static_cast<int64_t>(sign), "0", 1));
}

template <int side>
Value Justified(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters given("the method", arguments, {"width", "fillchar"}, 1);
  const std::string fill = given.has(1) ? given.Text(1) : " ";
  if (PointCount(fill) != 1) throw Problem("the fill character must be exactly one character long");
  machine.Charge(static_cast<uint64_t>(std::max<int64_t>(0, given.Integer(0))) * fill.size());
  return machine.Text(Padded(self.text(), given.Integer(0), fill, side));
}

Value PartitionText(Machine& machine, const Value& self, const Arguments& arguments, bool from_right) {
  const Parameters given("partition", arguments, {"sep"}, 1);
  const std::string_view text = self.text();
  const std::string& separator = given.Text(0);
  if (separator.empty()) throw Problem("empty separator");
  const size_t at = from_right ? FindLast(text, separator) : FindFirst(text, separator);
  const Value empty = Value::String("");
  if (at == std::string::npos) {
    return from_right ? machine.Sequence(Kind::kTuple, {empty, empty, self})
                      : machine.Sequence(Kind::kTuple, {self, empty, empty});
  }
  const auto part = [&](std::string_view piece) { return machine.Text(self.traced().Part(piece)); };
  return machine.Sequence(Kind::kTuple, {part(text.substr(0, at)), part(text.substr(at, separator.size())),
                                         part(text.substr(at + separator.size()))});
}
Value Partition(Machine& m, const Value& self, const Arguments& a) {
  return PartitionText(m, self, a, false);
}
Value RPartition(Machine& m, const Value& self, const Arguments& a) {
  return PartitionText(m, self, a, true);
}

Value GetOfDict(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters given("get", arguments, {"key", "default"}, 1);
  machine.WorkOn(given[0]);
  if (!arguments.named.empty()) throw Problem("dict.get() takes no keyword arguments");
  const Value* found = self.dict().Find(given[0]);
  return found != nullptr ? *found : given.Or(1, Value::None());
}

Value ItemsOfDict(Machine& machine, const Value& self, const Arguments& arguments) {
  NoArguments("items", arguments);
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict().items()) {
    items.push_back(machine.Sequence(Kind::kTuple, {key, value}));
  }
  return machine.Sequence(Kind::kView, std::move(items), "dict_items");
}

Value KeysOfDict(Machine& machine, const Value& self, const Arguments& arguments) {
  NoArguments("keys", arguments);
  std::vector<Value> items;
  for (const auto& item : self.dict().items()) items.push_back(item.first);
  return machine.Sequence(Kind::kView, std::move(items), "dict_keys");
}

Value ValuesOfDict(Machine& machine, const Value& self, const Arguments& arguments) {
  NoArguments("values", arguments);
  std::vector<Value> items;
  for (const auto& item : self.dict().items()) items.push_back(item.second);
  return machine.Sequence(Kind::kView, std::move(items), "dict_values");
}

Value CopyOf(Machine& machine, const Value& self, const Arguments& arguments) {
  NoArguments("copy", arguments);
  if (self.is(Kind::kDict)) {
    machine.Charge(self.dict().items().size() * sizeof(Value) * 2);
    return Value::OfDict(self.dict());
  }
  return machine.List(self.items());
}

Value CountItems(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters given("count", arguments, {"value"}, 1);
  const auto& items = self.items();
  return Value::Int(std::count_if(items.begin(), items.end(), [&](const Value& item) {
    machine.Step();
    return Equal(machine, item, given[0]);
  }));
}

Value IndexOfItem(Machine& machine, const Value& self, const Arguments& arguments) {
  const Parameters given("index", arguments, {"value", "start", "stop"}, 1);
  const auto size = static_cast<int64_t>(self.items().size());
  const auto bound = [&](size_t i, int64_t value) {
    value = given.IntegerOr(i, value);
    return std::clamp<int64_t>(value < 0 ? value + size : value, 0, size);
  };
  for (int64_t i = bound(1, 0); i < bound(2, size); ++i) {
    machine.Step();
    if (Equal(machine, self.items()[static_cast<size_t>(i)], given[0])) return Value::Int(i);
  }
  throw Problem("the value is not in the list");
}

const Methods& MethodsOfText() {
  static const Methods kMethods = {
      {"strip", Strip},
      {"lstrip", LStrip},
      {"rstrip", RStrip},
      {"split", Split},
      {"rsplit", RSplit},
      {"splitlines", SplitLines},
      {"find", FindText},
      {"rfind", RFindText},
      {"index", IndexText},
      {"rindex", RIndexText},
      {"count", CountText},
      {"startswith", StartsWith},
      {"endswith", EndsWith},
      {"replace", ReplaceText},
      {"upper", Mapped<Upper>},
      {"lower", Mapped<Lower>},
      {"capitalize", Mapped<Capitalized>},
      {"title", Mapped<Titled>},
      {"isalpha", All<IsAlpha>},
      {"isdigit", All<IsDigit>},
      {"isalnum", All<IsAlnum>},
      {"isspace", All<IsSpace>},
      {"isascii", IsAsciiText},
      {"isupper", IsUpperText},
      {"islower", IsLowerText},
      {"join", JoinText},
      {"format", FormatText},
      {"removeprefix", RemovePrefix},
      {"removesuffix", RemoveSuffix},
      {"zfill", ZFill},
      {"ljust", Justified<-1>},
      {"rjust", Justified<1>},
      {"center", Justified<0>},
      {"partition", Partition},
      {"rpartition", RPartition},
  };
  return kMethods;
}

const Methods& MethodsOf(const Value& self) {
  static const Methods kOfDict = {{"get", GetOfDict},
                                  {"items", ItemsOfDict},
                                  {"keys", KeysOfDict},
                                  {"values", ValuesOfDict},
                                  {"copy", CopyOf}};
  static const Methods kOfList = {{"count", CountItems}, {"index", IndexOfItem}, {"copy", CopyOf}};
  static const Methods kOfTuple = {{"count", CountItems}, {"index", IndexOfItem}};
  static const Methods kOfOthers;
  switch (self.kind()) {
    case Kind::kString:
      return MethodsOfText();
    case Kind::kDict:
      return kOfDict;
    case Kind::kList:
      return kOfList;
    case Kind::kTuple:
    case Kind::kRange:
      return kOfTuple;
    default:
      return kOfOthers;
  }
}

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Value CallMethod(Machine& machine, MethodFunction method, const Value& self, const Arguments& arguments) {
  if (self.is_string()) {
    const bool looks_at_an_end = method == StartsWith || method == EndsWith;
    if (!looks_at_an_end || arguments.positional.size() + arguments.named.size() > 1) machine.WorkOn(self);
    for (const Value& argument : arguments.positional) machine.WorkOn(argument);
    for (const auto& named : arguments.named) machine.WorkOn(named.second);
  }
  const Machine::DataScope scope(machine, self, arguments);
  return method(machine, self, arguments);
}

MethodFunction FindMethod(const Value& self, std::string_view name) {
  const Methods& methods = MethodsOf(self);
  const auto it = methods.find(name);
  return it == methods.end() ? nullptr : it->second;
}

OtherAttribute FindOtherAttribute(const Value& self, std::string_view name) {
  bool blocked = false, other = false;
  switch (self.kind()) {
    case Kind::kString:
      other = IsOneOf(name, {"casefold", "encode", "expandtabs", "format_map", "isdecimal", "isidentifier",
                             "isnumeric", "isprintable", "istitle", "maketrans", "swapcase", "translate"});
      break;
    case Kind::kList:
      blocked = IsOneOf(name, {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"});
      break;
    case Kind::kDict:
      blocked = IsOneOf(name, {"clear", "pop", "popitem", "setdefault", "update"});
      other = name == "fromkeys";
      break;
    case Kind::kBool:
    case Kind::kInt:
      other = IsOneOf(name, {"real", "imag", "numerator", "denominator", "bit_length", "bit_count",
                             "conjugate", "to_bytes", "from_bytes", "as_integer_ratio"});
      break;
    case Kind::kFloat:
      other =
          IsOneOf(name, {"real", "imag", "conjugate", "as_integer_ratio", "hex", "fromhex", "is_integer"});
      break;
    case Kind::kRange:
      other = IsOneOf(name, {"start", "stop", "step"});
      break;
    case Kind::kView:
      other = IsOneOf(name, {"isdisjoint", "mapping"});
      break;
    default:
      break;
  }
  return blocked ? OtherAttribute::kBlocked : other ? OtherAttribute::kUnsupported : OtherAttribute::kNone;
}

}  // namespace trainwright::jinja
