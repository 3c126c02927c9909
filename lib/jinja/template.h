/// Jinja templates as models bring them for chats: text in, text out, and nothing else.
///
/// The language is that of Jinja 3.1 as transformers 5 sets it up for chat templates (an immutable sandbox
/// with trim_blocks and lstrip_blocks, loop controls, the generation block, raise_exception, strftime_now and
/// its own tojson). What a template may do is to compute: it reads no file, includes no other template, and
/// calls nothing but the filters, tests, functions and methods listed in filters.cc, value_tests.cc,
/// globals.cc and methods.cc. What the language has and this engine lacks is refused by name (filters, tests
/// and statements when a template is parsed, the rest when it is rendered), not rendered differently.
/// Integers have 64 bits.
///
/// A Template is immutable after parsing and thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/jinja/span.h"

namespace trainwright::jinja {

/// What one rendering may cost. What it exceeds ends it with Error{kBadInput} naming the limit.
struct Limits {
  uint64_t steps = 10'000'000;  ///< expressions and statements evaluated, and what else is work: machine.h
  uint64_t value_bytes = uint64_t{256} << 20;  ///< of strings and lists made on the way, summed
  uint64_t output_bytes = uint64_t{64} << 20;
  uint32_t depth = 200;  ///< macros, loops and expressions within each other
};

/// Where a rendering writes the messages that it shows apart: each in a part of the text of its own, which
/// would be the same were there no messages after it, or were the words of earlier ones others. What comes
/// before the first of these parts depends on none of these messages, and what follows the last on none
/// either, but on add_generation_prompt.
struct TurnPlaces {
  uint64_t first = 0;  ///< the number of the first message that is shown apart, not 0
  /// Where the part of each message from that one on begins, then where the last ends. Empty where the
  /// rendering shows none apart.
  std::vector<uint64_t> begins;
};

struct Rendered {
  std::string text;
  std::vector<Span> generations;  ///< what is in {% generation %} blocks, in order
  std::vector<Span> data;         ///< what comes from data variables; in order, apart from each other
  uint64_t steps = 0;             ///< that it took
  TurnPlaces turns;
};

struct RenderOptions {
  Limits limits;
  /// What strftime_now(format) reports, in its own time zone (C locale).
  std::chrono::sys_seconds now = {};
  /// Called every some thousand steps; what it throws ends the rendering. Not set: nothing is.
  std::function<void()> poll = {};
  /// Variables whose texts and keys are data: Rendered::data says where they are in the text. Not data is
  /// the role of an item of such a list where it is a word of letters, digits, "_", "-" and ".": templates
  /// make marks of it.
  std::vector<std::string> data_variables = {};
};

class Template {
 public:
  /// \param source UTF-8
  /// \param name for messages
  /// \throws Error{kUsage} with the line: what is no Jinja, or a construct that this engine lacks
  static Template Parse(std::string_view source, const std::string& name);

  /// \param variables an object: the template's globals, objects in their order
  /// \throws Error{kBadInput} with the line: an undefined value used, a limit exceeded, a wrong operand;
  /// without it: a fault of the variables; RaisedError for raise_exception
  Rendered Render(const nlohmann::ordered_json& variables, const RenderOptions& options = {}) const;

  /// Whether a {% generation %} block comes anywhere in it.
  bool has_generation() const;
  /// Whether it calls strftime_now: what it renders depends on the day.
  bool uses_time() const;

  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

 private:
  struct Impl;
  explicit Template(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace trainwright::jinja
