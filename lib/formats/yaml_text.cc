#include "lib/formats/yaml_text.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/truth_word.h"

namespace trainwright {
namespace {

using nlohmann::json;

constexpr size_t kMostLevels = 32;
constexpr char kWriteOut[] = "plain YAML is read: write what it stands for in its place";

int LineOf(const YAML::Mark& mark) {
  return mark.line + 1;
}

template <typename Number>
std::optional<Number> NumberOf(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  Number number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

json TypedScalar(const std::string& text) {
  if (text.empty()) return text;
  if (const auto truth = TruthWord(text)) return *truth;
  if (text.find_first_not_of("0123456789+-.eE") == std::string::npos) {
    if (const auto whole = NumberOf<int64_t>(text)) return *whole;
    if (const auto number = NumberOf<double>(text)) return *number;
  }
  return text;
}

/// Builds the tree from the parser's events, which unlike its own nodes tell of anchors, aliases and tags.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& path) : path_(path) {}

  YamlText Take() { return std::move(result_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) Note("holds a second document", LineOf(mark), "make a file of each");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Check("?", anchor, mark);
    Add(json(), "", mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Note("holds an alias (*name)", LineOf(mark), kWriteOut);
    Add(json(), "", mark);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Check(tag, anchor, mark);
    Add(tag == "?" ? TypedScalar(value) : json(value), value, mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Check(tag, anchor, mark);
    Open(json::array(), mark);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Check(tag, anchor, mark);
    Open(json::object(), mark);
  }
  void OnMapEnd() override { Close(); }

 private:
  /// A mapping or list that is not closed yet.
  struct Level {
    json value;
    std::string way;   // to it, with a dot behind; empty for the root
    std::string name;  // that it has in the level around it
    bool has_key = false;
    std::string key;
    int key_line = 0;
  };

  void Note(const std::string& problem, int line, const std::string& hint) {
    if (!result_.problem.empty()) return;
    result_.problem = problem;
    result_.problem_line = line;
    result_.problem_hint = hint;
  }

  void Check(const std::string& tag, YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (anchor != 0) Note("holds an anchor (&name)", LineOf(mark), kWriteOut);
    if (!tag.empty() && tag != "?" && tag != "!") Note("holds a tag (!name)", LineOf(mark), kWriteOut);
  }

  bool IsKeyNext() const {
    return !levels_.empty() && levels_.back().value.is_object() && !levels_.back().has_key;
  }

  /// The place of the value that comes next, by its name.
  std::string NextName(const YAML::Mark& mark) {
    Level& level = levels_.back();
    const bool is_list = level.value.is_array();
    const std::string name = is_list ? std::to_string(level.value.size()) : level.key;
    const int line = is_list ? LineOf(mark) : level.key_line;
    YamlPlace& place = result_.places[level.way + name];
    if (!is_list && level.value.contains(name)) {
      Note("key '" + level.way + name + "' is given twice", line,
           "line " + std::to_string(place.line) + " has it, too: leave one of the two out");
    }
    place.line = line;
    return name;
  }

  void Put(const std::string& name, json value) {
    Level& level = levels_.back();
    if (level.value.is_array()) {
      level.value.push_back(std::move(value));
    } else {
      level.value[name] = std::move(value);
      level.has_key = false;
    }
  }

  void Add(json value, const std::string& text, const YAML::Mark& mark) {
    if (documents_ > 1) return;
    if (levels_.empty()) {
      result_.root = std::move(value);
    } else if (IsKeyNext()) {
      Level& level = levels_.back();
      if (text == "<<") Note("holds a merge key (<<)", LineOf(mark), kWriteOut);
      level.key = text;
      level.has_key = true;
      level.key_line = LineOf(mark);
    } else {
      const std::string name = NextName(mark);
      result_.places[levels_.back().way + name].text = text;
      Put(name, std::move(value));
    }
  }

  void Open(json empty, const YAML::Mark& mark) {
    if (documents_ > 1) return;
    if (levels_.size() == kMostLevels)
      throw Error(ErrorCode::kBadInput, path_, "is nested too deeply",
                  "line " + std::to_string(LineOf(mark)));
    if (IsKeyNext())
      throw Error(ErrorCode::kBadInput, path_, "a key is not a name", "line " + std::to_string(LineOf(mark)));
    Level level;
    level.value = std::move(empty);
    if (!levels_.empty()) {
      level.name = NextName(mark);
      level.way = levels_.back().way + level.name + ".";
    }
    levels_.push_back(std::move(level));
  }

  void Close() {
    if (documents_ > 1) return;
    Level level = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.empty()) {
      result_.root = std::move(level.value);
    } else {
      Put(level.name, std::move(level.value));
    }
  }

  const std::string& path_;
  YamlText result_;
  std::vector<Level> levels_;
  int documents_ = 0;
};

void RequireUtf8(const json& root, const std::string& path) {
  try {
    root.dump();
  } catch (const json::exception&) {
    throw Error(ErrorCode::kBadInput, path, "is not UTF-8");
  }
}

}  // namespace

YamlText ParseYaml(std::string_view text, const std::string& path) {
  TreeBuilder builder(path);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw Error(ErrorCode::kBadInput, path, "is not YAML: " + error.msg,
                error.mark.is_null() ? "" : "line " + std::to_string(error.mark.line + 1));
  }
  YamlText result = builder.Take();
  RequireUtf8(result.root, path);
  return result;
}

}  // namespace trainwright
