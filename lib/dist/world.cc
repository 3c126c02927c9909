#include "lib/dist/world.h"

namespace trainwright {

void SoloWorld::Reduce(std::vector<int64_t>* /*counts*/) {}

std::vector<int64_t> SoloWorld::Agree(const std::vector<int64_t>& answers) {
  return answers;
}

World* Solo() {
  static SoloWorld solo;
  return &solo;
}

}  // namespace trainwright
