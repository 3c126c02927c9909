#include "lib/memory/agreed_batch.h"

namespace trainwright {

BatchPoint AgreeOnBatch(World* world, const BatchSearch& own) {
  int64_t found = 0;
  if (!own.points.empty()) found = (own.chosen ? *own.chosen : own.points.back()).batch;
  const int64_t agreed = -world->Agree({-found})[0];
  for (const BatchPoint& point : own.points) {
    if (point.batch == agreed) return point;
  }
  return {.batch = agreed};
}

}  // namespace trainwright
