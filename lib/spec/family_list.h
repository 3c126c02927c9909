/// The model families that a program knows, without what computes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/spec/family.h"

namespace trainwright {

class FamilyList {
 public:
  /// \param families outlive this and all configs; no two of one model_type
  explicit FamilyList(std::vector<const FamilyDescription*> families);

  const std::vector<const FamilyDescription*>& all() const { return families_; }
  /// Null when unknown.
  const FamilyDescription* Find(const std::string& model_type) const;
  /// For messages: "llama, mistral and gpt2".
  std::string Names() const;

  /// By family, each one's smallest first.
  std::vector<std::string> PresetNames() const;
  /// \throws Error{kUsage} listing the presets
  ModelConfig PresetConfig(const std::string& name, int64_t vocab_size) const;
  /// That of who names no model.
  /// \throws Error{kUsage} where no family has one
  std::string DefaultPreset(bool gpu) const;
  /// For help: "llama-1m, llama-5m (parameters besides embeddings); nanogpt-10m (6 layers)".
  std::string DescribePresets() const;

 private:
  std::vector<ModelPreset> Presets() const;
  std::vector<const FamilyDescription*> families_;
};

}  // namespace trainwright
