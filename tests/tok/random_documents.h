/// The documents of tokenizer_json_documents.py, in C++.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace trainwright::test {

/// SplitMix64.
class DocumentRandom {
 public:
  DocumentRandom(uint64_t seed, uint64_t index)
      : state_(seed * 0x9E3779B97F4A7C15u + index * 0xD1B54A32D192ED03u) {}
  uint32_t Below(uint32_t bound) {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return static_cast<uint32_t>(((z ^ z >> 31) >> 11) % bound);
  }

 private:
  uint64_t state_;
};

inline uint32_t RandomCodePoint(DocumentRandom* random) {
  uint32_t c = 0;
  switch (const uint32_t plane = random->Below(8)) {
    case 0:
      return random->Below(0x80);
    case 1:
      return random->Below(0x800);
    case 2:
      return 0x300 + random->Below(0x70);
    case 3:
      return 0x1100 + random->Below(0x100);
    case 4:
      return 0x2000 + random->Below(0x200);
    default:
      c = random->Below(plane < 7 ? 0x10000 : 0x110000);
  }
  return c >= 0xD800 && c <= 0xDFFF ? 0x20 : c;
}

inline void AppendUtf8(uint32_t c, std::string* out) {
  const auto add = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (c < 0x80) return add(c);
  if (c >= 0x10000) add(0xF0 | c >> 18);
  if (c >= 0x800) add(c >= 0x10000 ? 0x80 | (c >> 12 & 0x3F) : 0xE0 | c >> 12);
  add(c >= 0x800 ? 0x80 | (c >> 6 & 0x3F) : 0xC0 | c >> 6);
  add(0x80 | (c & 0x3F));
}

inline std::string RandomDocument(uint64_t seed, uint64_t index, const std::vector<std::string>& texts) {
  DocumentRandom random(seed, index);
  std::string out;
  const auto text = [&] { return texts[random.Below(static_cast<uint32_t>(texts.size()))]; };
  const auto append_many = [&](uint32_t count, uint32_t first, uint32_t kinds) {
    for (uint32_t i = 0; i < count; ++i) out.push_back(static_cast<char>(first + random.Below(kinds)));
  };
  for (uint32_t parts = random.Below(20); parts > 0; --parts) {
    const uint32_t kind = random.Below(10);
    if (kind < 4) {
      out += text();
    } else if (kind == 4) {
      append_many(1 + random.Below(9), 'a', 26);
    } else if (kind == 5) {
      out.append(1 + random.Below(4), ' ');
      out.append(random.Below(3), '\n');
    } else if (kind == 6) {
      append_many(1 + random.Below(6), 33, 94);
    } else if (kind == 7) {
      out.push_back(' ');
      append_many(1 + random.Below(6), 'a', 26);
    } else if (kind == 8) {
      for (uint32_t count = 1 + random.Below(5); count > 0; --count)
        AppendUtf8(RandomCodePoint(&random), &out);
    } else if (random.Below(16) == 0) {
      const std::string part = text();
      for (uint32_t count = 1 + random.Below(200); count > 0; --count) out += part;
    } else {
      append_many(1 + random.Below(5), '0', 10);
    }
  }
  return out;
}

/// Those whose ids the goldens hold.
inline std::vector<std::string> RandomDocuments(const nlohmann::json& goldens,
                                                const std::vector<std::string>& texts) {
  std::vector<std::string> documents;
  for (uint64_t i = 0; i < goldens["documents"].get<uint64_t>(); ++i) {
    documents.push_back(RandomDocument(goldens["seed"], i, texts));
  }
  return documents;
}

/// FNV-1a 64.
class Fnv {
 public:
  void Add(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001B3u; }
  void AddId(uint32_t id) {
    for (int shift = 0; shift < 32; shift += 8) Add(static_cast<uint8_t>(id >> shift));
  }
  /// A document's, and where it ends.
  void AddDocument(const std::vector<uint32_t>& ids) {
    for (const uint32_t id : ids) AddId(id);
    AddId(UINT32_MAX);
  }
  /// 16 digits, as goldens have them.
  std::string hex() const {
    char text[17];
    std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value_));
    return text;
  }

 private:
  uint64_t value_ = 0xCBF29CE484222325u;
};

}  // namespace trainwright::test
