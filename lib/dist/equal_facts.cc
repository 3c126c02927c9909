#include "lib/dist/equal_facts.h"

#include <string>
#include <vector>

#include "lib/dist/gather.h"

namespace trainwright {

void RequireEqual(World* world, const Facts& facts, const FactsRule& rule) {
  std::vector<Facts> all;
  for (const std::string& encoded : GatherBytes(world, EncodeFacts(facts)))
    all.push_back(DecodeFacts(encoded));
  CheckFacts(all, world->rank(), rule);
}

}  // namespace trainwright
