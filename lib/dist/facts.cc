#include "lib/dist/facts.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "lib/base/error.h"
#include "lib/dist/fault.h"

namespace trainwright {
namespace {

void Append(const std::string& text, std::string* encoded) {
  const uint64_t size_bytes = text.size();
  encoded->append(reinterpret_cast<const char*>(&size_bytes), sizeof size_bytes);
  *encoded += text;
}

std::string Take(const std::string& encoded, size_t* position) {
  uint64_t size_bytes = 0;
  if (encoded.size() - *position >= sizeof size_bytes) {
    std::memcpy(&size_bytes, encoded.data() + *position, sizeof size_bytes);
  }
  *position = std::min(encoded.size(), *position + sizeof size_bytes);
  const std::string text = encoded.substr(*position, size_bytes);
  *position += text.size();
  return text;
}

std::string ValueOf(const Facts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? "none" : found->second;
}

/// The first name whose values differ.
std::optional<std::string> FirstDifference(const Facts& facts, const Facts& other) {
  Facts names = facts;
  names.insert(other.begin(), other.end());
  for (const auto& [name, value] : names) {
    if (ValueOf(facts, name) != ValueOf(other, name)) return name;
  }
  return std::nullopt;
}

}  // namespace

std::string EncodeFacts(const Facts& facts) {
  std::string encoded;
  for (const auto& [name, value] : facts) {
    Append(name, &encoded);
    Append(value, &encoded);
  }
  return encoded;
}

Facts DecodeFacts(const std::string& encoded) {
  Facts facts;
  for (size_t position = 0; position < encoded.size();) {
    const std::string name = Take(encoded, &position);
    facts[name] = Take(encoded, &position);
  }
  return facts;
}

void CheckFacts(const std::vector<Facts>& facts, int64_t self, const FactsRule& rule) {
  const auto check = [&](int64_t rank, ErrorCode code) {
    const std::optional<std::string> name = FirstDifference(facts[0], facts[rank]);
    if (!name) return;
    throw Error(code, rank == self ? RankName(rank) + " (this one)" : RankName(rank),
                *name + " is " + ValueOf(facts[rank], *name) + ", in rank 0 " + ValueOf(facts[0], *name), "",
                rule.hint);
  };
  check(self, rule.code);
  for (size_t rank = 1; rank < facts.size(); ++rank) check(static_cast<int64_t>(rank), ErrorCode::kIo);
}

}  // namespace trainwright
