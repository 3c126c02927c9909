/// The guides whose recipes train has as presets and whose claims bench measures.
#pragma once

#include <string>
#include <string_view>

namespace trainwright {

struct Guide {
  std::string_view name;  ///< of bench --claims; train's presets begin with it
  std::string_view what;
};

inline constexpr Guide kGuides[] = {
    {"grit", "GRIT of GRITLM: one model that learns to embed and to generate"},
    {"refocused", "ReFocused-AI: pretraining of GPT-NeoX models"},
    {"rft", "rejection fine-tuning on those of a model's answers that pass"},
    {"lora", "a trainer of LoRA adapters for chat models in 4 bits"},
    {"ten", "Temporal Eigenstate Networks: recurrent models of long texts"}};

/// A line for each, as a man page shows it.
inline std::string DescribeGuides() {
  constexpr size_t kWidth = 11;
  std::string lines;
  for (const Guide& guide : kGuides) {
    const std::string name(guide.name);
    lines += "  " + name + std::string(kWidth - name.size(), ' ') + std::string(guide.what) + "\n";
  }
  return lines;
}

}  // namespace trainwright
