/// What one rendering has used up of its limits, and what must be cleared at its end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/jinja/template.h"
#include "lib/jinja/value.h"

namespace trainwright::jinja {

class Machine {
 public:
  explicit Machine(const RenderOptions& options) : options_(options) {}
  ~Machine() {
    for (const auto& clear : clearers_) clear();
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// One more expression or statement.
  void Step() { Work(1); }
  /// What takes as long as this many steps.
  void Work(uint64_t steps) {
    if (steps > options_.limits.steps - steps_)
      throw Problem("the rendering takes more than the limit of " + Steps());
    steps_ += steps;
    if (steps_ < next_poll_) return;
    next_poll_ = steps_ + kStepsOfPoll;
    if (options_.poll) options_.poll();
  }
  /// A pass over this many bytes of text.
  void WorkOnBytes(uint64_t bytes) { Work(bytes / 64); }
  /// A pass over all that a value holds, or is.
  void WorkOn(const Value& value) {
    if (value.is_string()) return WorkOnBytes(value.text().size());
    Work(value.Weight() / 16);
  }
  /// `bytes` of values come into being.
  void Charge(uint64_t bytes) {
    if (bytes > options_.limits.value_bytes - value_bytes_) {
      throw Problem("the rendering makes more than the limit of " +
                    std::to_string(options_.limits.value_bytes) + " bytes of values");
    }
    value_bytes_ += bytes;
  }
  /// Counts a string that was made: of data where a DataScope says so.
  Value Text(std::string text) { return Text(TracedText(std::move(text), makes_data_)); }
  Value Text(TracedText text) {
    Charge(text.cost() + 32);
    return Value::String(std::move(text));
  }
  Value List(std::vector<Value> items) { return Sequence(Kind::kList, std::move(items)); }
  Value Sequence(Kind kind, std::vector<Value> items, std::string label = "") {
    Charge((items.size() + 2) * sizeof(Value));
    return Value::Of(kind, std::move(items), std::move(label));
  }
  /// Objects may hold each other: what breaks such circles is called when the rendering ends.
  void AtEnd(std::function<void()> clear) {
    Charge(256);
    clearers_.push_back(std::move(clear));
  }
  void CheckOutput(uint64_t bytes) const {
    if (bytes > options_.limits.output_bytes) {
      throw Problem("the text is longer than the limit of " + std::to_string(options_.limits.output_bytes) +
                    " bytes");
    }
  }

  /// A level of what is nested or calls within each other.
  class Level {
   public:
    explicit Level(Machine& machine) : machine_(machine) {
      if (machine_.depth_ >= machine_.options_.limits.depth) {
        throw Problem("nested deeper than the limit of " + std::to_string(machine_.options_.limits.depth));
      }
      ++machine_.depth_;
    }
    ~Level() { --machine_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Machine& machine_;
  };

  /// While it lives, strings that are made without their TracedText are data as a whole.
  class DataScope {
   public:
    DataScope(Machine& machine, const Value& self, const Arguments& arguments)
        : machine_(machine), before_(machine.makes_data_) {
      machine_.makes_data_ = self.HasData() || arguments.HaveData();
    }
    ~DataScope() { machine_.makes_data_ = before_; }
    DataScope(const DataScope&) = delete;
    DataScope& operator=(const DataScope&) = delete;

   private:
    Machine& machine_;
    bool before_;
  };

  /// What is written of one turn may depend on others (turn_loop.h).
  void NoteLookAround() { looked_around_ = true; }
  bool looked_around() const { return looked_around_; }

  const RenderOptions& options() const { return options_; }
  uint64_t steps() const { return steps_; }
  int line() const { return line_; }
  void set_line(int line) { line_ = line; }

 private:
  static constexpr uint64_t kStepsOfPoll = 4096;

  std::string Steps() const { return std::to_string(options_.limits.steps) + " steps"; }

  const RenderOptions& options_;
  uint64_t steps_ = 0, next_poll_ = kStepsOfPoll, value_bytes_ = 0;
  uint32_t depth_ = 0;
  int line_ = 1;
  bool looked_around_ = false, makes_data_ = false;
  std::vector<std::function<void()>> clearers_;
};

}  // namespace trainwright::jinja
