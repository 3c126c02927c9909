#include "lib/packing/ordered_bit_set.h"

#include <gtest/gtest.h>

#include <set>

#include "lib/base/rng.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(OrderedBitSetTest, AgreesWithStdSetUnderRandomOperations) {
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  for (const size_t size : {1u, 2u, 63u, 64u, 65u, 4096u, 4097u, 300000u}) {
    const Rng rng(test::TestSeed(), "ordered_bit_set", size);
    OrderedBitSet bits(size);
    std::set<size_t> reference;
    for (uint64_t step = 0; step < 4000; ++step) {
      const size_t value = rng.Bits(3 * step) % size;
      if (rng.Bits(3 * step + 1) % 2 == 0) {
        bits.Insert(value);
        reference.insert(value);
      } else {
        bits.Erase(value);
        reference.erase(value);
      }
      const size_t query = rng.Bits(3 * step + 2) % (size + 2);
      const auto expected = reference.lower_bound(query);
      ASSERT_EQ(bits.NextAtLeast(query), expected == reference.end() ? OrderedBitSet::kNone : *expected)
          << "size " << size << ", step " << step << ", query " << query;
    }
  }
}

}  // namespace
}  // namespace trainwright
