#include "lib/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "lib/jinja/text.h"

namespace trainwright::jinja {
namespace {

constexpr size_t kIndexedFrom = 16;

// An int beside a float: equal and ordered exactly, as in Python, where neither is rounded.
int CompareNumbers(const Value& a, const Value& b) {
  if (!a.is(Kind::kFloat) && !b.is(Kind::kFloat)) {
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer() ? 1 : 0;
  }
  const long double x =
      a.is(Kind::kFloat) ? static_cast<long double>(a.number()) : static_cast<long double>(a.integer());
  const long double y =
      b.is(Kind::kFloat) ? static_cast<long double>(b.number()) : static_cast<long double>(b.integer());
  if (std::isnan(x) || std::isnan(y)) return 2;
  return x < y ? -1 : x > y ? 1 : 0;
}

void AppendRepr(const Value& value, std::string* out, uint32_t depth);

void AppendItems(const std::vector<Value>& items, std::string* out, uint32_t depth) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) *out += ", ";
    AppendRepr(items[i], out, depth);
  }
}

void AppendDict(const Dict& dict, std::string* out, uint32_t depth) {
  *out += '{';
  for (size_t i = 0; i < dict.items().size(); ++i) {
    if (i > 0) *out += ", ";
    AppendRepr(dict.items()[i].first, out, depth);
    *out += ": ";
    AppendRepr(dict.items()[i].second, out, depth);
  }
  *out += '}';
}

void AppendRepr(const Value& value, std::string* out, uint32_t depth) {
  if (depth > kMostNesting) throw Problem("lists and dicts are nested too deep");
  switch (value.kind()) {
    case Kind::kUndefined:
      *out += "Undefined";
      return;
    case Kind::kNone:
      *out += "None";
      return;
    case Kind::kBool:
      *out += value.boolean() ? "True" : "False";
      return;
    case Kind::kInt:
      *out += std::to_string(value.integer());
      return;
    case Kind::kFloat:
      *out += FloatText(value.number());
      return;
    case Kind::kString:
      if (value.is_markup()) throw Problem("the repr of a Markup string is not supported");
      *out += QuotedText(value.text());
      return;
    case Kind::kList:
      *out += '[';
      AppendItems(value.items(), out, depth + 1);
      *out += ']';
      return;
    case Kind::kTuple:
      *out += '(';
      AppendItems(value.items(), out, depth + 1);
      *out += value.items().size() == 1 ? ",)" : ")";
      return;
    case Kind::kRange:
      *out += value.sequence().label;
      return;
    case Kind::kIterator:
      throw Problem("a generator was printed: Python writes its address");
    case Kind::kView:
      *out += value.sequence().label + "([";
      AppendItems(value.items(), out, depth + 1);
      *out += "])";
      return;
    case Kind::kDict:
      AppendDict(value.dict(), out, depth + 1);
      return;
    case Kind::kObject:
      *out += value.object()->Repr();
      return;
  }
}

bool EqualDicts(const Dict& a, const Dict& b) {
  if (a.items().size() != b.items().size()) return false;
  return std::all_of(a.items().begin(), a.items().end(), [&](const Dict::Item& item) {
    const Value* other = b.Find(item.first);
    return other != nullptr && Equal(item.second, *other);
  });
}

bool IsKeysOrItems(const Value& value) {
  return value.sequence().label != "dict_values";
}

// Sets, in which order does not count. An item of a view of items is found by its key.
bool EqualViews(const Value& a, const Value& b) {
  const bool finds_items = b.sequence().label == "dict_items";
  Dict held;
  for (const Value& item : b.items()) {
    if (finds_items) {
      held.Set(item.items()[0], item.items()[1]);
    } else {
      held.Set(item, Value::None());
    }
  }
  return a.items().size() == b.items().size() &&
         std::all_of(a.items().begin(), a.items().end(), [&](const Value& item) {
           if (!finds_items) return held.Find(item) != nullptr;
           if (!item.is(Kind::kTuple) || item.items().size() != 2) return false;
           const Value* value = held.Find(item.items()[0]);
           return value != nullptr && Equal(*value, item.items()[1]);
         });
}

bool EqualSequences(const Value& a, const Value& b) {
  if (a.kind() != b.kind() || a.is(Kind::kIterator)) return a.identity() == b.identity();
  const auto& x = a.items();
  const auto& y = b.items();
  if (a.is(Kind::kView)) {
    return IsKeysOrItems(a) && IsKeysOrItems(b) ? EqualViews(a, b) : a.identity() == b.identity();
  }
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), Equal);
}

void CheckSize(uint32_t nesting, uint64_t weight) {
  if (nesting > kMostNesting) throw Problem("lists and dicts are nested too deep");
  if (weight > kMostWeight) throw Problem("a list or dict holds too much");
}

[[noreturn]] void Unordered(const Value& a, const Value& b, const char* sign) {
  for (const Value* value : {&a, &b}) {
    if (value->is_undefined()) throw Problem(value->UndefinedMessage());
  }
  throw Problem(std::string("'") + sign + "' not supported between instances of '" + a.TypeName() +
                "' and '" + b.TypeName() + "'");
}

}  // namespace

Value Object::Call(Machine&, Arguments&) {
  throw Problem(Repr() + " is not callable");
}

Value Value::Float(double value) {
  Value result;
  result.kind_ = Kind::kFloat;
  result.float_ = value;
  return result;
}

Value Value::String(TracedText text) {
  Value result(Kind::kString, 0);
  result.data_ = std::make_shared<TracedText>(std::move(text));
  return result;
}

Value Value::Undefined(const Value& name) {
  Value result;
  if (name.is_string()) result.data_ = name.data_;
  return result;
}

Value Value::Of(Kind kind, std::vector<Value> items, std::string label) {
  Value result(kind, 0);
  uint32_t nesting = 0;
  uint64_t weight = 1;
  bool has_data = false;
  for (const Value& item : items) {
    has_data = has_data || item.HasData();
    nesting = std::max(nesting, item.Nesting());
    weight += item.Weight();
    CheckSize(nesting + 1, weight);
  }
  result.data_ = std::make_shared<Sequence>(
      Sequence{std::move(items), std::move(label), 0, nesting + 1, weight, has_data});
  return result;
}

Value Value::OfDict(Dict dict) {
  Value result(Kind::kDict, 0);
  CheckSize(dict.nesting(), dict.weight());
  result.data_ = std::make_shared<Dict>(std::move(dict));
  return result;
}

Value Value::OfObject(std::shared_ptr<Object> object) {
  Value result(Kind::kObject, 0);
  result.data_ = std::move(object);
  return result;
}

Value Value::AsMarkup() const {
  Value result = *this;
  result.markup_ = true;
  return result;
}

bool Value::Truth() const {
  switch (kind_) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return int_ != 0;
    case Kind::kFloat:
      return float_ != 0;
    case Kind::kString:
      return !text().empty();
    case Kind::kDict:
      return !dict().items().empty();
    case Kind::kIterator:
    case Kind::kObject:
      return true;
    default:
      return !items().empty();
  }
}

uint32_t Value::Nesting() const {
  if (is_sequence()) return sequence().nesting;
  return kind_ == Kind::kDict ? dict().nesting() : 0;
}

uint64_t Value::Weight() const {
  if (is_sequence()) return sequence().weight;
  if (kind_ == Kind::kString) return text().size() + 1;
  return kind_ == Kind::kDict ? dict().weight() : 1;
}

bool Value::HasData() const {
  if (kind_ == Kind::kString) return traced().has_data();
  if (is_sequence()) return sequence().has_data;
  return kind_ == Kind::kDict ? dict().has_data() : kind_ == Kind::kObject;
}

bool Arguments::HaveData() const {
  return has_names_of_data ||
         std::any_of(positional.begin(), positional.end(), [](const Value& v) { return v.HasData(); }) ||
         std::any_of(named.begin(), named.end(), [](const auto& item) { return item.second.HasData(); });
}

const char* Value::TypeName() const {
  static constexpr const char* kNames[] = {"Undefined", "NoneType", "bool",  "int",   "float",
                                           "str",       "list",     "tuple", "range", "generator",
                                           "dict_view", "dict",     "object"};
  return kNames[static_cast<size_t>(kind_)];
}

std::string Value::UndefinedMessage() const {
  return data_ == nullptr ? "an undefined value was used" : QuotedText(text()) + " is undefined";
}

void Dict::Set(const Value& key, Value value) {
  nesting_ = std::max({nesting_, value.Nesting() + 1, key.Nesting() + 1});
  weight_ += value.Weight() + key.Weight();
  has_data_ = has_data_ || value.HasData() || key.HasData();
  CheckSize(nesting_, weight_);
  const uint64_t hash = HashOf(key);
  const size_t at = Index(key);
  if (at < items_.size()) {
    items_[at].second = std::move(value);
    return;
  }
  items_.emplace_back(key, std::move(value));
  if (items_.size() == kIndexedFrom) {
    for (size_t i = 0; i < items_.size(); ++i) index_.emplace(HashOf(items_[i].first), i);
  } else if (items_.size() > kIndexedFrom) {
    index_.emplace(hash, items_.size() - 1);
  }
}

size_t Dict::Index(const Value& key) const {
  if (index_.empty()) {
    for (size_t i = 0; i < items_.size(); ++i) {
      if (Equal(items_[i].first, key)) return i;
    }
    return items_.size();
  }
  const auto [begin, end] = index_.equal_range(HashOf(key));
  for (auto it = begin; it != end; ++it) {
    if (Equal(items_[it->second].first, key)) return it->second;
  }
  return items_.size();
}

const Value* Dict::Find(const Value& key) const {
  HashOf(key);  // what has no hash is refused even in an empty dict
  const size_t at = Index(key);
  return at < items_.size() ? &items_[at].second : nullptr;
}

const Value* Dict::Find(std::string_view key) const {
  if (!index_.empty()) return Find(Value::String(std::string(key)));
  for (const Item& item : items_) {
    if (item.first.is_string() && item.first.text() == key) return &item.second;
  }
  return nullptr;
}

bool Equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return CompareNumbers(a, b) == 0;
  if (a.is_sequence() && b.is_sequence()) return EqualSequences(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kString:
      return a.text() == b.text();
    case Kind::kDict:
      return EqualDicts(a.dict(), b.dict());
    case Kind::kObject:
      return a.identity() == b.identity();
    default:
      return true;
  }
}

bool Same(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kNone:
      return true;
    case Kind::kBool:
      return a.boolean() == b.boolean();
    case Kind::kInt:  // CPython keeps one object for each small number; others are those of one literal
      return a.integer() == b.integer();
    case Kind::kFloat:
      return a.number() == b.number();
    case Kind::kString:
      return a.identity() == b.identity() || a.text() == b.text();
    default:
      return a.identity() == b.identity() && a.identity() != nullptr;
  }
}

int Compare(const Value& a, const Value& b, const char* sign) {
  if (a.is_number() && b.is_number()) return CompareNumbers(a, b);
  if (a.is_string() && b.is_string()) {
    const int order = a.text().compare(b.text());  // UTF-8 has the order of code points
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  const bool listed = a.is(Kind::kList) || a.is(Kind::kTuple);
  if (!listed || a.kind() != b.kind()) Unordered(a, b, sign);
  for (size_t i = 0; i < std::min(a.items().size(), b.items().size()); ++i) {
    if (!Equal(a.items()[i], b.items()[i])) return Compare(a.items()[i], b.items()[i], sign);
  }
  return a.items().size() < b.items().size() ? -1 : a.items().size() > b.items().size() ? 1 : 0;
}

bool Ordered(const Value& a, const Value& b, std::string_view sign) {
  const int order = Compare(a, b, std::string(sign).c_str());
  if (order == 2) return false;
  if (sign == "<") return order < 0;
  if (sign == "<=") return order <= 0;
  return sign == ">" ? order > 0 : order >= 0;
}

uint64_t HashOf(const Value& value) {
  switch (value.kind()) {
    case Kind::kBool:
    case Kind::kInt:
      return std::hash<double>()(static_cast<double>(value.integer()));
    case Kind::kFloat:
      return std::hash<double>()(value.number());
    case Kind::kString:
      return std::hash<std::string>()(value.text());
    case Kind::kTuple: {
      uint64_t hash = 7;
      for (const Value& item : value.items()) hash = hash * 1000003 + HashOf(item);
      return hash;
    }
    case Kind::kList:
    case Kind::kDict:
    case Kind::kView:
      throw Problem(std::string("unhashable type: '") + value.TypeName() + "'");
    case Kind::kNone:
    case Kind::kUndefined:
      return static_cast<uint64_t>(value.kind());
    default:
      return std::hash<const void*>()(value.identity());
  }
}

std::string Str(const Value& value) {
  if (value.is_string()) return value.text();
  return value.is_undefined() ? std::string() : Repr(value);
}

TracedText TracedStr(const Value& value) {
  return value.is_string() ? value.traced() : TracedText(Str(value), value.HasData());
}

std::string Repr(const Value& value) {
  std::string out;
  AppendRepr(value, &out, 0);
  return out;
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string digits(buffer, end);
  const bool negative = digits[0] == '-';
  if (negative) digits.erase(0, 1);
  const size_t mark = digits.find('e');
  const int exponent = std::stoi(digits.substr(mark + 1));
  digits.resize(mark);
  std::erase(digits, '.');
  const int count = static_cast<int>(digits.size());
  std::string text;
  if (exponent < -4 || exponent >= 16) {
    text = digits.substr(0, 1);
    if (count > 1) text += "." + digits.substr(1);
    const std::string power = std::to_string(std::abs(exponent));
    text += (exponent < 0 ? "e-" : "e+") + std::string(power.size() < 2 ? "0" : "") + power;
  } else if (exponent < 0) {
    text = "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  } else if (count <= exponent + 1) {
    text = digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  } else {
    const auto whole = static_cast<size_t>(exponent + 1);
    text = digits.substr(0, whole) + "." + digits.substr(whole);
  }
  return (negative ? "-" : "") + text;
}

std::string QuotedText(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  char escaped[16];
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t point = NextPoint(text, &at);
    if (point == static_cast<char32_t>(quote) || point == '\\') {
      out += '\\';
      out += static_cast<char>(point);
    } else if (point == '\n') {
      out += "\\n";
    } else if (point == '\r') {
      out += "\\r";
    } else if (point == '\t') {
      out += "\\t";
    } else if (IsPrintable(point)) {
      out += text.substr(begin, at - begin);
    } else {
      const auto code = static_cast<unsigned>(point);
      const char* format = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
      std::snprintf(escaped, sizeof escaped, format, code);  // NOLINT
      out += escaped;
    }
  }
  return out + quote;
}

}  // namespace trainwright::jinja
