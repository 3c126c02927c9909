/// A parsed template. Names are numbers here, filters, tests and operators functions: rendering looks up
/// nothing by text but attributes.
///
/// Immutable after parsing, and so thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/jinja/value.h"

namespace trainwright::jinja {

/// What a filter makes of a value.
using FilterFunction = Value (*)(Machine& machine, const Value& value, Arguments& arguments);
using TestFunction = bool (*)(Machine& machine, const Value& value, Arguments& arguments);
using BinaryFunction = Value (*)(Machine& machine, const Value& a, const Value& b);

enum class ExpressionKind : uint8_t {
  kConstant,
  kName,
  kList,
  kTuple,
  kDict,    ///< keys and values , alternating
  kConcat,  ///< a ~ b ~ c
  kBinary,
  kNegative,
  kPositive,
  kNot,
  kAnd,
  kOr,
  kCompare,    ///< `signs` between the parts
  kCondition,  ///< test, then, else or null
  kAttribute,
  kItem,
  kSlice,   ///< begin, end, step, each or null; within kItem only
  kCall,    ///< callee, then the arguments
  kFilter,  ///< value or null (the body of a block), then the arguments
  kTest,
  kNamespace,  ///< as a target: name `id`, attribute `value`
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  ExpressionKind kind = ExpressionKind::kConstant;
  int line = 1;
  uint32_t height = 1;
  int id = -1;                ///< of a name
  bool looks_around = false;  ///< its value may depend on other turns than that of a round: turn_loop.h
  Value value;                ///< a constant, the name of a name, attribute or filter
  std::vector<ExpressionPtr> parts;
  std::vector<std::pair<std::string, ExpressionPtr>> named;  ///< arguments by name
  ExpressionPtr more_positional, more_named;                 ///< *a and **b of calls
  std::vector<std::string> signs;
  BinaryFunction binary = nullptr;
  FilterFunction filter = nullptr;
  TestFunction test = nullptr;
};

enum class StatementKind : uint8_t {
  kText,      ///< `text`
  kPrint,     ///< the values of `parts`
  kFor,       ///< target, sequence, condition or null
  kIf,        ///< conditions, each with its body; bodies may be one more
  kSet,       ///< target, value
  kSetBlock,  ///< target, filters or null
  kWith,      ///< targets and values , alternating
  kMacro,
  kCall,         ///< the call; the rest is that of a macro
  kFilterBlock,  ///< filters
  kGeneration,
  kBreak,
  kContinue,
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

struct Statement {
  StatementKind kind = StatementKind::kText;
  int line = 1;
  int id = -1;  ///< a macro's name
  bool recursive = false, uses_loop = false;
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
  Value value;  ///< a macro's name
  std::string text;
  std::vector<ExpressionPtr> parts;
  std::vector<Block> bodies;    ///< of a loop: the body, else
  std::vector<int> parameters;  ///< of a macro
  std::vector<std::string> parameter_names;
  std::vector<ExpressionPtr> defaults;  ///< of the last parameters
};

struct SyntaxTree {
  std::string name;
  Block body;
  std::vector<std::string> names;  ///< by id
  int loop_id = -1, caller_id = -1, kwargs_id = -1, varargs_id = -1;
  bool has_generation = false, uses_time = false;
  const Statement* turn_loop = nullptr;  ///< that writes the messages one by one, where it has one
  int messages_id = -1;
  uint64_t first_turn_apart = 0;  ///< the messages before it may be read outside of their rounds
};

}  // namespace trainwright::jinja
