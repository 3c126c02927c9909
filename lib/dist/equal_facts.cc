#include "lib/dist/equal_facts.h"

#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/dist/gather.h"

namespace trainwright {
namespace {

using Facts = std::map<std::string, std::string>;

constexpr char kEnd = '\0';  // of a name and of a value

std::string Encode(const Facts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += name + kEnd + value + kEnd;
  return text;
}

Facts Decode(std::string_view text) {
  const auto next = [&] {
    const size_t size = text.find(kEnd);
    TRAINWRIGHT_CHECK(size != std::string_view::npos);
    const std::string word(text.substr(0, size));
    text.remove_prefix(size + 1);
    return word;
  };
  Facts facts;
  while (!text.empty()) {
    const std::string name = next();
    facts[name] = next();
  }
  return facts;
}

struct Difference {
  std::string name, expected, found;
};

/// The first one; nullopt: there is none.
std::optional<Difference> DifferenceOf(const Facts& expected, const Facts& found) {
  const auto value_of = [](const Facts& facts, const std::string& name) {
    const auto fact = facts.find(name);
    return fact == facts.end() ? "none" : fact->second;
  };
  Facts both = expected;
  both.insert(found.begin(), found.end());
  for (const auto& fact : both) {
    const std::string& name = fact.first;
    const std::string one = value_of(expected, name), other = value_of(found, name);
    if (one != other) return Difference{.name = name, .expected = one, .found = other};
  }
  return std::nullopt;
}

}  // namespace

void RequireEqual(World* world, const std::map<std::string, std::string>& facts) {
  const std::vector<std::string> all = GatherBytes(world, Encode(facts));
  const Facts expected = Decode(all[0]);
  constexpr char kHint[] = "start all ranks with the same command line, build, files and kind of machine";
  if (const auto difference = DifferenceOf(expected, facts)) {
    throw Error(ErrorCode::kUsage, difference->name,
                "is " + difference->found + " on rank " + std::to_string(world->rank()) + " and " +
                    difference->expected + " on rank 0",
                "", kHint);
  }
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const auto difference = DifferenceOf(expected, Decode(all[rank]));
    if (!difference) continue;
    throw Error(ErrorCode::kIo, "rank " + std::to_string(rank),
                "has another " + difference->name + " than rank 0: " + difference->found + " and not " +
                    difference->expected,
                "", kHint);
  }
}

}  // namespace trainwright
