/// A value of a template, with the semantics of Python's: what equality, truth, order, str() and repr() say.
///
/// Values are immutable and share what they hold; only objects (namespaces, loops, iterators) have a state,
/// which belongs to one rendering. Copying costs a reference count. What is wrong with operands is thrown as
/// a Problem, which the renderer turns into an Error of the template and its line.
///
/// Immutable values may be read by several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/jinja/traced_text.h"

namespace trainwright::jinja {

class Machine;
class Value;
struct Arguments;

/// What went wrong while rendering, without its place.
class Problem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What is wrong with a variable, wherever the template reads it.
class VariableProblem : public Problem {
 public:
  using Problem::Problem;
};

/// What raise_exception was called with.
class Raised : public Problem {
 public:
  using Problem::Problem;
};

/// How deep lists and dicts may be nested within each other.
constexpr uint32_t kMostNesting = 400;

/// The values and bytes of text that a list or dict may hold, each as often as it would be printed: a list
/// that holds another twice, and that one another, costs no memory, but printing and comparing it would.
constexpr uint64_t kMostWeight = uint64_t{1} << 26;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kRange,     ///< a Sequence whose repr is given
  kIterator,  ///< Python's generators: each item is taken once
  kView,      ///< keys, values or items of a dict
  kDict,
  kObject,
};

struct Sequence {
  std::vector<Value> items;
  std::string label;  ///< of a range its repr, of a view the name of its type
  size_t taken = 0;   ///< of an iterator
  uint32_t nesting = 1;
  uint64_t weight = 1;
  bool has_data = false;
};

class Dict;

/// What has attributes or can be called: a namespace, a macro, a loop, a function.
class Object {
 public:
  virtual ~Object() = default;
  /// What repr() writes; throws Problem where Python writes an address.
  virtual std::string Repr() const = 0;
  /// \returns whether there is such an attribute
  virtual bool GetAttribute(Machine&, std::string_view, Value*) { return false; }
  virtual bool IsCallable() const { return false; }
  virtual Value Call(Machine& machine, Arguments& arguments);
  /// The items left, for what can be iterated.
  virtual const std::vector<Value>* Items() const { return nullptr; }
};

class Value {
 public:
  Value() : kind_(Kind::kUndefined), int_(0) {}
  static Value None() { return Value(Kind::kNone, 0); }
  static Value Bool(bool value) { return Value(Kind::kBool, value ? 1 : 0); }
  static Value Int(int64_t value) { return Value(Kind::kInt, value); }
  static Value Float(double value);
  static Value String(std::string text) { return String(TracedText(std::move(text))); }
  static Value String(TracedText text);
  /// \param name of what is not defined, for messages
  static Value Undefined(const Value& name);
  static Value List(std::vector<Value> items) { return Of(Kind::kList, std::move(items), ""); }
  static Value Tuple(std::vector<Value> items) { return Of(Kind::kTuple, std::move(items), ""); }
  static Value Iterator(std::vector<Value> items) { return Of(Kind::kIterator, std::move(items), ""); }
  static Value Of(Kind kind, std::vector<Value> items, std::string label);
  static Value OfDict(Dict dict);
  static Value OfObject(std::shared_ptr<Object> object);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  /// What Python's int() takes as it is: a bool is one.
  bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integer() || kind_ == Kind::kFloat; }
  /// Whether it is in memory as a Sequence.
  bool is_sequence() const { return kind_ >= Kind::kList && kind_ <= Kind::kView; }
  bool boolean() const { return int_ != 0; }
  int64_t integer() const { return int_; }
  double number() const { return kind_ == Kind::kFloat ? float_ : static_cast<double>(int_); }
  const std::string& text() const { return traced().bytes(); }
  const TracedText& traced() const { return *static_cast<const TracedText*>(data_.get()); }
  Sequence& sequence() const { return *static_cast<Sequence*>(data_.get()); }
  const std::vector<Value>& items() const { return sequence().items; }
  const Dict& dict() const { return *static_cast<const Dict*>(data_.get()); }
  Object* object() const { return static_cast<Object*>(data_.get()); }
  const void* identity() const { return data_.get(); }
  /// Of markupsafe's Markup: what escape and safe give. What would escape more of it is refused.
  bool is_markup() const { return markup_; }
  Value AsMarkup() const;

  bool Truth() const;
  uint32_t Nesting() const;
  uint64_t Weight() const;
  /// Whether a text in it is data, or may be.
  bool HasData() const;
  /// The name of its type in Python.
  const char* TypeName() const;
  /// What undefined values say when they are used: "'x' is undefined".
  std::string UndefinedMessage() const;

 private:
  Value(Kind kind, int64_t value) : kind_(kind), int_(value) {}

  Kind kind_;
  bool markup_ = false;
  union {
    int64_t int_;
    double float_;
  };
  std::shared_ptr<void> data_;
};

/// A dict: in the order in which keys came, found by equality.
class Dict {
 public:
  using Item = std::pair<Value, Value>;
  /// Replaces the value where there is the key.
  /// \throws Problem for a key that has no hash in Python
  void Set(const Value& key, Value value);
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;
  const std::vector<Item>& items() const { return items_; }
  uint32_t nesting() const { return nesting_; }
  uint64_t weight() const { return weight_; }
  bool has_data() const { return has_data_; }

 private:
  size_t Index(const Value& key) const;

  std::vector<Item> items_;
  std::unordered_multimap<uint64_t, size_t> index_;  ///< of large ones
  uint32_t nesting_ = 1;
  uint64_t weight_ = 1;
  bool has_data_ = false;
};

/// What a call brings.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  bool has_names_of_data = false;  ///< by **: whoever makes texts of the names takes them all for data

  /// The name of one of `named` as a text.
  Value NameOf(const std::string& name) const { return Value::String(TracedText(name, has_names_of_data)); }
  bool HaveData() const;
};

bool Equal(const Value& a, const Value& b);
/// Python's `is`.
bool Same(const Value& a, const Value& b);
/// Of what has an order: <0, 0, >0; 2 where NaN makes all comparisons false.
/// \param sign for messages: "<"
int Compare(const Value& a, const Value& b, const char* sign);
/// One of < <= > >=.
bool Ordered(const Value& a, const Value& b, std::string_view sign);
uint64_t HashOf(const Value& value);
std::string Str(const Value& value);
TracedText TracedStr(const Value& value);
std::string Repr(const Value& value);
/// As repr() writes floats: the shortest that reads back.
std::string FloatText(double value);
/// `text` in Python's quotes.
std::string QuotedText(std::string_view text);

}  // namespace trainwright::jinja
