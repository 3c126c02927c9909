#include "lib/run/recipe_references.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

using nlohmann::json;

constexpr int kMostReferences = 16;   // one behind the other
constexpr size_t kMostBytes = 4096;   // of a text with its references resolved
constexpr int kMostResolved = 10000;  // of a file: each may be resolved anew for each that refers to it

class References {
 public:
  References(YamlText* yaml, const std::string& path) : yaml_(yaml), path_(path) {}

  void ResolveIn(json* value, const std::string& way) {
    if (value->is_structured()) {
      const std::string prefix = way.empty() ? "" : way + ".";
      const auto items = value->items();
      for (const auto& item : items) ResolveIn(&item.value(), prefix + item.key());
      return;
    }
    if (!value->is_string()) return;
    YamlPlace& place = yaml_->places[way];
    if (place.text.find("${") == std::string::npos) return;
    const std::string text = place.text;
    json resolved = Resolved(text, way, &place.text);
    *value = std::move(resolved);
  }

  /// What is referred to, so far.
  const std::set<std::string>& names() const { return names_; }

 private:
  Error Refusal(const std::string& way, const std::string& problem) const {
    const auto place = yaml_->places.find(way);
    const int line = place == yaml_->places.end() ? 0 : place->second.line;
    return Error(
        ErrorCode::kUsage, path_, "key '" + way + "' " + problem,
        line == 0 ? "" : "line " + std::to_string(line),
        "references of the form ${key} and ${section.key} to single values of the file are resolved");
  }

  /// \param way whose text it is, for messages
  /// \param written gets the text as if the value stood there itself
  json Resolved(const std::string& text, const std::string& way, std::string* written, int depth = 0) {
    if (depth > kMostReferences) throw Refusal(way, "refers to itself");
    std::string joined;
    for (size_t begin = 0; begin < text.size();) {
      const size_t open = text.find("${", begin);
      joined += text.substr(begin, open == std::string::npos ? open : open - begin);
      if (open == std::string::npos) break;
      const size_t close = text.find('}', open);
      if (close == std::string::npos) throw Refusal(way, "has a reference without an end");
      const std::string name = text.substr(open + 2, close - open - 2);
      std::string part;
      const json value = ValueOf(name, way, &part, depth);
      if (open == 0 && close + 1 == text.size()) {
        *written = part;
        return value;
      }
      joined += part;
      if (joined.size() > kMostBytes) throw Refusal(way, "becomes too long");
      begin = close + 1;
    }
    *written = joined;
    return joined;
  }

  json ValueOf(const std::string& name, const std::string& way, std::string* written, int depth) {
    if (++resolved_ > kMostResolved) throw Refusal(way, "is one of too many references");
    const json* value = &yaml_->root;
    for (size_t begin = 0; value != nullptr && begin <= name.size();) {
      const size_t end = std::min(name.find('.', begin), name.size());
      const std::string part = name.substr(begin, end - begin);
      value = value->is_object() && value->contains(part) ? &value->at(part) : nullptr;
      begin = end + 1;
    }
    if (value == nullptr || value->is_structured()) {
      throw Refusal(way, "refers to ${" + name.substr(0, 60) + "}, which is no single value of this file");
    }
    names_.insert(name);
    const auto place = yaml_->places.find(name);
    const std::string text = place == yaml_->places.end() ? "" : place->second.text;
    if (value->is_string() && text.find("${") != std::string::npos)
      return Resolved(text, way, written, depth + 1);
    *written = text;
    return *value;
  }

  YamlText* const yaml_;
  const std::string& path_;
  int resolved_ = 0;
  std::set<std::string> names_;
};

}  // namespace

std::set<std::string> ResolveReferences(YamlText* yaml, const std::string& path) {
  References references(yaml, path);
  references.ResolveIn(&yaml->root, "");
  return references.names();
}

}  // namespace trainwright
