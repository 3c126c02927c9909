#include "lib/jinja/tojson.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lib/jinja/text.h"

namespace trainwright::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Machine& machine, const JsonLayout& layout) : machine_(machine), layout_(layout) {}

  std::string Run(const Value& value) {
    Write(value, 1);
    machine_.Charge(out_.size());
    return std::move(out_);
  }

 private:
  // Before so much more is written.
  void Count(size_t more) {
    if (out_.size() + more < counted_ + 65536) return;
    machine_.Charge(out_.size() + more - counted_);
    counted_ = out_.size() + more;
  }

  void Write(const Value& value, size_t level) {
    machine_.Step();
    if (value.is_string()) machine_.WorkOnBytes(value.text().size());
    Count(0);
    switch (value.kind()) {
      case Kind::kNone:
        out_ += "null";
        return;
      case Kind::kBool:
        out_ += value.boolean() ? "true" : "false";
        return;
      case Kind::kInt:
        out_ += std::to_string(value.integer());
        return;
      case Kind::kFloat:
        out_ += NumberText(value.number());
        return;
      case Kind::kString:
        WriteText(value.text());
        return;
      case Kind::kList:
      case Kind::kTuple:
        WriteList(value.items(), level);
        return;
      case Kind::kDict:
        WriteDict(value.dict(), level);
        return;
      default:
        throw Problem(std::string("an object of type ") + value.TypeName() + " is not JSON serializable");
    }
  }

  static std::string NumberText(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return FloatText(value);
  }

  void Break(size_t level) {
    if (!layout_.indented) return;
    Count(level * layout_.indent.size());
    out_ += '\n';
    for (size_t i = 0; i < level; ++i) out_ += layout_.indent;
  }

  void WriteList(const std::vector<Value>& items, size_t level) {
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += layout_.between_items;
      Break(level);
      Write(items[i], level + 1);
    }
    if (!items.empty()) Break(level - 1);
    out_ += ']';
  }

  void WriteDict(const Dict& dict, size_t level) {
    std::vector<const Dict::Item*> items;
    for (const Dict::Item& item : dict.items()) items.push_back(&item);
    if (layout_.sorted) {
      std::stable_sort(items.begin(), items.end(), [](const Dict::Item* a, const Dict::Item* b) {
        return Compare(a->first, b->first, "<") < 0;
      });
    }
    out_ += '{';
    bool first = true;
    for (const Dict::Item* item : items) {
      if (!first) out_ += layout_.between_items;
      first = false;
      Break(level);
      WriteKey(item->first);
      out_ += layout_.after_key;
      Write(item->second, level + 1);
    }
    if (!first) Break(level - 1);
    out_ += '}';
  }

  void WriteKey(const Value& key) {
    switch (key.kind()) {
      case Kind::kString:
        WriteText(key.text());
        return;
      case Kind::kNone:
      case Kind::kBool:
      case Kind::kInt:
      case Kind::kFloat:
        out_ += '"';
        Write(key, 0);
        out_ += '"';
        return;
      default:
        throw Problem(std::string("keys must be str, int, float, bool or None, not ") + key.TypeName());
    }
  }

  void WriteText(const std::string& text) {
    out_ += '"';
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const auto point = static_cast<uint32_t>(NextPoint(text, &at));
      static constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
      const size_t letter = point < 0x80 ? kEscaped.find(static_cast<char>(point)) : std::string_view::npos;
      if (letter != std::string_view::npos) {
        out_ += '\\';
        out_ += kLetters[letter];
      } else if (point < 0x20 || (layout_.ascii && point > 0x7e)) {
        WriteCode(point);
      } else {
        out_.append(text, begin, at - begin);
      }
    }
    out_ += '"';
  }

  void WriteCode(uint32_t point) {
    char buffer[16];
    if (point < 0x10000) {
      std::snprintf(buffer, sizeof buffer, "\\u%04x", point);  // NOLINT
    } else {
      const uint32_t rest = point - 0x10000;
      std::snprintf(buffer, sizeof buffer, "\\u%04x\\u%04x", 0xd800 + (rest >> 10),
                    0xdc00 + (rest & 0x3ff));  // NOLINT
    }
    out_ += buffer;
  }

  Machine& machine_;
  const JsonLayout& layout_;
  std::string out_;
  size_t counted_ = 0;
};

}  // namespace

std::string ToJson(Machine& machine, const Value& value, const JsonLayout& layout) {
  return JsonWriter(machine, layout).Run(value);
}

}  // namespace trainwright::jinja
