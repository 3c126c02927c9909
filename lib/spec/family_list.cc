#include "lib/spec/family_list.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {

FamilyList::FamilyList(std::vector<const FamilyDescription*> families) : families_(std::move(families)) {
  for (const FamilyDescription* family : families_) TRAINWRIGHT_CHECK(Find(family->model_type()) == family);
}

const FamilyDescription* FamilyList::Find(const std::string& model_type) const {
  const auto found = std::find_if(families_.begin(), families_.end(), [&](const FamilyDescription* family) {
    return model_type == family->model_type();
  });
  return found == families_.end() ? nullptr : *found;
}

std::string FamilyList::Names() const {
  std::string names;
  for (size_t i = 0; i < families_.size(); ++i) {
    const bool last = i + 1 == families_.size();
    names += (i == 0 ? "" : last ? " and " : ", ") + std::string(families_[i]->model_type());
  }
  return names;
}

std::vector<ModelPreset> FamilyList::Presets() const {
  std::vector<ModelPreset> presets;
  for (const FamilyDescription* family : families_) {
    for (ModelPreset& preset : family->Presets()) presets.push_back(std::move(preset));
  }
  return presets;
}

std::vector<std::string> FamilyList::PresetNames() const {
  std::vector<std::string> names;
  for (const ModelPreset& preset : Presets()) names.push_back(preset.config.preset);
  return names;
}

ModelConfig FamilyList::PresetConfig(const std::string& name, int64_t vocab_size) const {
  std::string known;
  for (ModelPreset& preset : Presets()) {
    known += (known.empty() ? "" : ", ") + preset.config.preset;
    if (name != preset.config.preset) continue;
    preset.config.vocab_size = vocab_size;
    return std::move(preset.config);
  }
  throw Error(ErrorCode::kUsage, "--model", "unknown preset '" + name + "'", "",
              "use one of " + known + ", or the path of a config.json");
}

std::string FamilyList::DefaultPreset(bool gpu) const {
  for (const ModelPreset& preset : Presets()) {
    if (gpu ? preset.default_on_gpu : preset.default_on_cpu) return preset.config.preset;
  }
  throw Error(ErrorCode::kUsage, "--model", "has no default here", "", "name the path of a config.json");
}

std::string FamilyList::DescribePresets() const {
  const auto closed = [](const std::string& note) { return note.empty() ? "" : " (" + note + ")"; };
  std::string text, note;
  for (const ModelPreset& preset : Presets()) {
    if (!text.empty()) text += preset.note == note ? ", " : closed(note) + "; ";
    text += preset.config.preset;
    note = preset.note;
  }
  return text + closed(note);
}

}  // namespace trainwright
