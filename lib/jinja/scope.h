/// The names of a part of a template, and those of what it is in.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lib/jinja/value.h"

namespace trainwright::jinja {

class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> outer) : outer_(std::move(outer)) {}

  void Set(int id, Value value) {
    for (auto& [other, held] : values_) {
      if (other == id) {
        held = std::move(value);
        return;
      }
    }
    values_.emplace_back(id, std::move(value));
  }
  const Value* Find(int id) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer_.get()) {
      for (const auto& [other, held] : scope->values_) {
        if (other == id) return &held;
      }
    }
    return nullptr;
  }
  void Clear() { values_.clear(); }

 private:
  std::shared_ptr<Scope> outer_;
  std::vector<std::pair<int, Value>> values_;
};

}  // namespace trainwright::jinja
