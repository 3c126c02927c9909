// The diagonal recurrence and its backward pass, against the recurrence as it is written, in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "tests/cuda/kernel_cases.h"

namespace trainwright::cuda {
namespace {

using testing::ElementsAre;
using testing::Pair;

using Number = std::complex<double>;
/// [rows][channels] of complex numbers.
using Table = std::vector<std::vector<Number>>;

/// Two launches' worth of chunks, one of one row, and one longer than a stretch; channels of two blocks.
constexpr int64_t kChunk = 40, kChannels = 67;
const std::vector<int64_t> kSpanRows = {100, 1, 37};
constexpr int64_t kRows = 138, kSpans = 3, kWidth = 2 * kChannels;

struct Pieces {
  std::vector<int32_t> table_c5;
  int64_t count = 0;
};

Pieces PiecesOf(const std::vector<int64_t>& span_rows) {
  Pieces pieces;
  int64_t first = 0;
  for (size_t span = 0; span < span_rows.size(); ++span) {
    const int64_t chunks = (span_rows[span] + kChunk - 1) / kChunk;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int64_t rows = std::min(kChunk, span_rows[span] - chunk * kChunk);
      for (const int64_t field : {first, rows, chunk, chunks - 1 - chunk, static_cast<int64_t>(span)}) {
        pieces.table_c5.push_back(static_cast<int32_t>(field));
      }
      first += rows;
      ++pieces.count;
    }
  }
  return pieces;
}

/// The numbers of an array [rows, 2 kChannels]: real parts of a row, then its imaginary parts.
template <typename Array>
Table TableOf(const Array& array, int64_t rows, int64_t at = 0) {
  Table table(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < kChannels; ++k) {
      const int64_t re = at + row * kWidth + k;
      table[static_cast<size_t>(row)].emplace_back(array[re], array[re + kChannels]);
    }
  }
  return table;
}

struct Scan {
  std::vector<double> log_modulus, angle;  ///< of all rows
  std::vector<double> lambda_nz;           ///< of each row
  std::vector<double> b, d_c, initial, d_last;
};

Scan RandomScan() {
  Scan scan;
  const std::vector<double> modulus = Normals(kChannels, 1), angle = Normals(kChannels, 2);
  for (size_t k = 0; k < modulus.size(); ++k) {
    scan.log_modulus.push_back(-1e-3 - 0.3 * std::fabs(modulus[k]));
    scan.angle.push_back(3 * angle[k]);
  }
  scan.lambda_nz.resize(static_cast<size_t>(kRows * kWidth));
  const std::vector<double> moduli = Normals(kRows * kChannels, 3), angles = Normals(kRows * kChannels, 4);
  for (int64_t i = 0; i < kRows * kChannels; ++i) {
    const Number lambda = std::polar(std::exp(-1e-3 - 0.3 * std::fabs(moduli[static_cast<size_t>(i)])),
                                     3 * angles[static_cast<size_t>(i)]);
    const int64_t at = i / kChannels * kWidth + i % kChannels;
    scan.lambda_nz[static_cast<size_t>(at)] = static_cast<float>(lambda.real());
    scan.lambda_nz[static_cast<size_t>(at + kChannels)] = static_cast<float>(lambda.imag());
  }
  scan.b = Normals(kRows * kWidth, 5);
  scan.d_c = Normals(kRows * kWidth, 6);
  scan.initial = Normals(kSpans * kWidth, 7);
  scan.d_last = Normals(kSpans * kWidth, 8);
  return scan;
}

/// What the recurrence gives.
struct Exact {
  Table c, last, d_b, d_lambda, d_initial;
  std::vector<Number> d_lambda_sum;
  std::vector<double> d_lambda_size;  ///< the sum of the magnitudes
};

Exact ExactOf(const Table& lambda, const Table& b, const Table& initial, const Table& d_c,
              const Table& d_last) {
  Exact exact{.c = b,
              .last = initial,
              .d_b = b,
              .d_lambda = b,
              .d_initial = initial,
              .d_lambda_sum = {},
              .d_lambda_size = {}};
  exact.d_lambda_sum.resize(static_cast<size_t>(kChannels));
  exact.d_lambda_size.resize(static_cast<size_t>(kChannels));
  size_t first = 0;
  for (size_t span = 0; span < kSpanRows.size(); ++span) {
    const size_t end = first + static_cast<size_t>(kSpanRows[span]);
    for (size_t k = 0; k < static_cast<size_t>(kChannels); ++k) {
      Number state = initial[span][k];
      for (size_t t = first; t < end; ++t) exact.c[t][k] = state = lambda[t][k] * state + b[t][k];
      exact.last[span][k] = state;
      Number carry = d_last[span][k];
      for (size_t t = end; t-- > first;) {
        const Number delta = d_c[t][k] + carry;
        exact.d_b[t][k] = delta;
        exact.d_lambda[t][k] = delta * std::conj(t > first ? exact.c[t - 1][k] : initial[span][k]);
        exact.d_lambda_sum[k] += exact.d_lambda[t][k];
        exact.d_lambda_size[k] += std::abs(exact.d_lambda[t][k]);
        carry = std::conj(lambda[t][k]) * delta;
      }
      exact.d_initial[span][k] = carry;
    }
    first = end;
  }
  return exact;
}

class ScanTest : public StorageTest {
 protected:
  void SetUp() override {
    StorageTest::SetUp();
    scan_ = RandomScan();
    pieces_ = PiecesOf(kSpanRows);
  }

  /// With memory of its own for each run, all of it on the "device".
  struct Run {
    Run(const ScanTest& test, bool selective)
        : pieces(test.pieces_.table_c5, Access::kWide),
          log_modulus(test.scan_.log_modulus, Access::kWide),
          angle(test.scan_.angle, Access::kWide),
          lambda(Floats(test.scan_.lambda_nz, test.access())),
          b(test.storage(), test.scan_.b, test.access()),
          d_c(test.storage(), test.scan_.d_c, test.access()),
          initial(Floats(test.scan_.initial, test.access())),
          d_last(Floats(test.scan_.d_last, test.access())),
          c(test.storage(), kRows * kWidth, test.access()),
          states(test.pieces_.count * kWidth, test.access()),
          last(kSpans * kWidth, test.access()),
          products(test.pieces_.count * kWidth, test.access()) {
      input = {.storage = test.storage(),
               .rows = kRows,
               .channels = kChannels,
               .chunk = kChunk,
               .pieces_c5 = pieces.data(),
               .pieces = test.pieces_.count,
               .log_modulus_k = selective ? nullptr : log_modulus.data(),
               .angle_k = selective ? nullptr : angle.data(),
               .lambda_nz = selective ? lambda.data() : nullptr,
               .b_nz = b.data()};
      EXPECT_EQ(DiagonalScan(input, initial.data(),
                             {.c_nz = c.data(),
                              .states_cz = states.data(),
                              .last_sz = last.data(),
                              .products_cz = selective ? products.data() : nullptr},
                             nullptr),
                cudaSuccess);
    }

    Memory<int32_t> pieces;
    Memory<double> log_modulus, angle;
    Memory<float> lambda;
    StoredMemory b, d_c;
    Memory<float> initial, d_last;
    StoredMemory c;
    Memory<float> states, last, products;
    DiagonalScanInput input;
  };

  Exact ExactScan(bool selective) const {
    Table lambda = TableOf(scan_.lambda_nz, kRows);
    for (auto& row : lambda) {
      for (size_t k = 0; !selective && k < row.size(); ++k) {
        row[k] = std::polar(std::exp(scan_.log_modulus[k]), scan_.angle[k]);
      }
    }
    const StoredMemory b(storage(), scan_.b, access()), d_c(storage(), scan_.d_c, access());
    return ExactOf(lambda, TableOf(b, kRows), TableOf(scan_.initial, kSpans), TableOf(d_c, kRows),
                   TableOf(scan_.d_last, kSpans));
  }
  static void ExpectTable(const Table& actual, const Table& exact, Storage storage, const std::string& what) {
    ASSERT_EQ(actual.size(), exact.size());
    for (size_t row = 0; row < exact.size(); ++row) {
      for (size_t k = 0; k < exact[row].size(); ++k) {
        const std::string place = what + " " + std::to_string(row) + ", " + std::to_string(k);
        const double scale = 2 + std::abs(exact[row][k]);
        ExpectClose(actual[row][k].real(), exact[row][k].real(), storage, scale, place);
        ExpectClose(actual[row][k].imag(), exact[row][k].imag(), storage, scale, place);
      }
    }
  }

  Scan scan_;
  Pieces pieces_;
};

class CudaDiagonalScanTest : public ScanTest {
 protected:
  void Check(bool selective) {
    const auto all = SameInEveryOrder([&] {
      const Run run(*this, selective);
      return AllValues(run.c, run.last);
    });
    const Exact exact = ExactScan(selective);
    ExpectTable(TableOf(all, kRows), exact.c, storage(), "c");
    ExpectTable(TableOf(all, kSpans, kRows * kWidth), exact.last, Storage::kFp32, "last state");
    EXPECT_THAT(
        cuda_emulation::LaunchCounts(),
        ElementsAre(Pair("CarryKernel", kRuns), Pair("EndsKernel", kRuns), Pair("RowsKernel", kRuns)));
  }
};
TRAINWRIGHT_STORAGE_CASES(CudaDiagonalScanTest);

TEST_P(CudaDiagonalScanTest, IsTheRecurrenceWithADecayOfAllRowsInThreeLaunches) {
  Check(false);
}

TEST_P(CudaDiagonalScanTest, IsTheRecurrenceWithADecayOfEachRowInThreeLaunches) {
  Check(true);
}

TEST_P(CudaDiagonalScanTest, OfNothingLaunchesNothing) {
  EXPECT_EQ(DiagonalScan({.storage = storage(), .channels = 4}, nullptr, {}, nullptr), cudaSuccess);
  EXPECT_EQ(DiagonalScan({.storage = storage(), .pieces = 2}, nullptr, {}, nullptr), cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

class CudaDiagonalScanBackwardTest : public ScanTest {
 protected:
  /// d b, d initial, d lambda.
  std::vector<double> Backward(bool selective, bool of_decay) {
    return SameInEveryOrder([&] {
      const Run run(*this, selective);
      cuda_emulation::ResetLaunchCounts();
      StoredMemory d_b(storage(), kRows * kWidth, access());
      Memory<float> d_initial(kSpans * kWidth, access()), carries(pieces_.count * kWidth, access());
      Memory<float> d_lambda_nz(selective && of_decay ? kRows * kWidth : 0, access());
      Memory<float> products(selective ? pieces_.count * kWidth : 0, access());
      Memory<float> stretches(DiagonalScanStretches(kRows, pieces_.count) * kWidth, access());
      const bool sums = of_decay && !selective;
      Memory<double> d_lambda(sums ? kWidth : 0, Access::kWide);
      Memory<double> partial(sums ? pieces_.count * kWidth : 0, Access::kWide);
      Memory<int32_t> tickets(DiagonalScanTickets(kChannels), Access::kWide);
      EXPECT_EQ(DiagonalScanBackward(run.input, run.states.data(), run.d_c.data(), run.d_last.data(),
                                     {.d_b_nz = d_b.data(),
                                      .d_lambda_z = sums ? d_lambda.data() : nullptr,
                                      .d_lambda_nz = of_decay && selective ? d_lambda_nz.data() : nullptr,
                                      .d_initial_sz = d_initial.data(),
                                      .carries_cz = carries.data(),
                                      .products_cz = selective ? products.data() : nullptr,
                                      .stretches_xz = of_decay ? stretches.data() : nullptr,
                                      .partial_cz = sums ? partial.data() : nullptr,
                                      .tickets = sums ? tickets.data() : nullptr},
                                     nullptr),
                cudaSuccess);
      EXPECT_THAT(cuda_emulation::LaunchCounts(),
                  ElementsAre(Pair("BackwardRowsKernel", 1), Pair("CarryKernel", 1), Pair("EndsKernel", 1)));
      return AllValues(d_b, d_initial, d_lambda, d_lambda_nz);
    });
  }
  void Check(const std::vector<double>& all, const Exact& exact) const {
    ExpectTable(TableOf(all, kRows), exact.d_b, storage(), "d b");
    ExpectTable(TableOf(all, kSpans, kRows * kWidth), exact.d_initial, Storage::kFp32, "d initial state");
  }
  static constexpr int64_t kAfter = (kRows + kSpans) * kWidth;
};
TRAINWRIGHT_STORAGE_CASES(CudaDiagonalScanBackwardTest);

TEST_P(CudaDiagonalScanBackwardTest, GivesTheGradientOfADecayOfAllRowsInThreeLaunches) {
  const std::vector<double> all = Backward(false, true);
  const Exact exact = ExactScan(false);
  Check(all, exact);
  ASSERT_EQ(all.size(), kAfter + kWidth);
  for (int64_t k = 0; k < kChannels; ++k) {
    const Number sum = exact.d_lambda_sum[static_cast<size_t>(k)];
    const double allowed = 1e-6 * exact.d_lambda_size[static_cast<size_t>(k)];
    EXPECT_NEAR(all[static_cast<size_t>(kAfter + k)], sum.real(), allowed);
    EXPECT_NEAR(all[static_cast<size_t>(kAfter + kChannels + k)], sum.imag(), allowed);
  }
}

TEST_P(CudaDiagonalScanBackwardTest, GivesTheGradientOfADecayOfEachRowInThreeLaunches) {
  const std::vector<double> all = Backward(true, true);
  const Exact exact = ExactScan(true);
  Check(all, exact);
  Table d_lambda = TableOf(all, kRows, kAfter);
  for (size_t row = 0; row < d_lambda.size(); ++row) {
    for (size_t k = 0; k < d_lambda[row].size(); ++k) {
      EXPECT_LE(std::abs(d_lambda[row][k] - exact.d_lambda[row][k]),
                1e-5 * (1 + std::abs(exact.d_lambda[row][k])))
          << row << ", " << k;
    }
  }
}

TEST_P(CudaDiagonalScanBackwardTest, GivesTheOtherGradientsWithoutThatOfTheDecay) {
  for (const bool selective : {false, true}) Check(Backward(selective, false), ExactScan(selective));
}

TEST_P(CudaDiagonalScanBackwardTest, OfNothingLaunchesNothing) {
  EXPECT_EQ(
      DiagonalScanBackward({.storage = storage(), .channels = 4}, nullptr, nullptr, nullptr, {}, nullptr),
      cudaSuccess);
  EXPECT_TRUE(cuda_emulation::LaunchCounts().empty());
}

}  // namespace
}  // namespace trainwright::cuda
