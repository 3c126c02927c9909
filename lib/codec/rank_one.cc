#include "lib/codec/rank_one.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <span>

#include "lib/base/error.h"
#include "lib/codec/fixed_log2.h"
#include "lib/codec/parallel.h"
#include "lib/codec/plane_coder.h"
#include "lib/formats/bad_input.h"

namespace trainwright::codec {
namespace {

constexpr int kSteps = 8;          // a prediction's steps to one exponent
constexpr int kHalf = kSteps / 2;  // rounds predictions
constexpr int kMaxCentre = 2048;
constexpr size_t kPieceBytes = size_t{1} << 18;
constexpr uint64_t kMaxDeviations = uint64_t{1} << 26;
constexpr uint64_t kMinElements = 4096, kMinSide = 4;
constexpr uint64_t kParallelElements = uint64_t{1} << 20;  // fewer are one thread's
constexpr int kDefaultCode = 112;                          // what codes lie around where nothing else does
constexpr uint64_t kStripElements = 8192;                  // rows that are estimated together
// Strips of a sample: so many that they have kSampledRows, within bounds. Means of few rows fit themselves
// too well.
constexpr uint64_t kSampledRows = 64, kLeastStrips = 4, kMostStrips = 16;

/// Rows [begin, end) of a matrix.
struct Strip {
  uint64_t begin, end;
};

std::vector<Strip> StripsOf(const MatrixPart& matrix, bool all) {
  const uint64_t rows = std::max<uint64_t>(1, kStripElements / matrix.columns);
  const uint64_t strips = (matrix.rows + rows - 1) / rows;
  const uint64_t enough = std::clamp((kSampledRows + rows - 1) / rows, kLeastStrips, kMostStrips);
  const uint64_t taken = all ? strips : std::min(strips, enough);
  std::vector<Strip> result;
  for (uint64_t i = 0; i < taken; ++i) {
    const uint64_t begin = (2 * i + 1) * strips / (2 * taken) * rows;
    result.push_back({begin, std::min(matrix.rows, begin + rows)});
  }
  return result;
}

int Clamp(int64_t value, int low, int high) {
  return static_cast<int>(std::clamp<int64_t>(value, low, high));
}

/// sum / count in eighths, rounded; `otherwise` without any.
int64_t MeanInEighths(uint64_t sum, uint64_t count, int64_t otherwise) {
  return count == 0 ? otherwise : static_cast<int64_t>((sum * kSteps + count / 2) / count);
}

}  // namespace

/// Fits rows and columns of one part; its codes then lie around the mean exponent.
class RankOnePredictor::PartFit {
 public:
  PartFit(const Kernels& kernels, const TensorView& tensor, int threads, Part* part)
      : kernels_(kernels), tensor_(tensor), threads_(threads), part_(part) {}

  /// \returns whether the part pays
  bool Run(bool thorough) {
    const std::vector<Strip> all = StripsOf(part_->matrix, true);
    if (!thorough) {
      const std::vector<Strip> sample = StripsOf(part_->matrix, false);
      Fit(sample);
      if (!Gains(sample)) return false;
      if (sample.size() == all.size()) return true;
    }
    Fit(all);
    return !thorough || Gains(all);
  }

  /// Of all exponents of the last fit, in eighths.
  int64_t mean_eighths() const { return mean_eighths_; }

 private:
  struct Sums {
    explicit Sums(uint64_t columns) : column_sums(columns), column_counts(columns) {}

    ExponentSum all;
    std::vector<uint64_t> column_sums, column_counts;
  };

  /// Calls function(strip range) for equal shares of the strips, one a thread.
  template <typename Function>
  void Share(const std::vector<Strip>& strips, const Function& function) const {
    const bool is_small = part_->matrix.rows * part_->matrix.columns < kParallelElements;
    const size_t most = static_cast<size_t>(std::max(threads_, 1));
    const size_t shares = is_small ? 1 : std::min<size_t>(strips.size(), most);
    ParallelFor(shares, threads_, [&](size_t i) {
      const size_t begin = i * strips.size() / shares, end = (i + 1) * strips.size() / shares;
      function(std::span(strips).subspan(begin, end - begin));
    });
  }

  /// Reads ahead where the strips follow each other.
  ContentReader ReaderOf(std::span<const Strip> strips) const {
    const bool follow = strips.size() > 1 && strips[1].begin == strips[0].end;
    const uint64_t end = part_->matrix.first + (follow ? strips.back().end * part_->matrix.columns : 0);
    return {tensor_.bytes, end * ElementBytes(tensor_.type)};
  }

  /// The exponents of a strip.
  void ReadStrip(const Strip& strip, ContentReader* reader, std::vector<uint8_t>* exponents) const {
    const uint64_t width = ElementBytes(tensor_.type), columns = part_->matrix.columns;
    const uint64_t n = (strip.end - strip.begin) * columns;
    const uint64_t first = part_->matrix.first + strip.begin * columns;
    exponents->resize(n);
    kernels_.exponents(tensor_.type, reader->Read(first * width, n * width).data(), n, exponents->data());
  }

  void Fit(const std::vector<Strip>& strips);
  Sums SumStrips(std::span<const Strip> strips, std::vector<int64_t>* row_means) const;
  bool Gains(const std::vector<Strip>& strips) const;

  const Kernels& kernels_;
  const TensorView& tensor_;
  const int threads_;
  Part* const part_;
  int64_t mean_eighths_ = 0;
};

/// Sums of the strips, one strip after another.
RankOnePredictor::PartFit::Sums RankOnePredictor::PartFit::SumStrips(std::span<const Strip> strips,
                                                                     std::vector<int64_t>* row_means) const {
  const uint64_t columns = part_->matrix.columns;
  ContentReader reader = ReaderOf(strips);
  std::vector<uint8_t> exponents;
  std::vector<uint16_t> sums(columns), zeros(columns);
  Sums total(columns);
  uint64_t added_rows = 0;
  const auto flush = [&] {
    for (uint64_t c = 0; c < columns; ++c) {
      total.column_sums[c] += sums[c];
      total.column_counts[c] += added_rows - zeros[c];
    }
    std::fill(sums.begin(), sums.end(), 0);
    std::fill(zeros.begin(), zeros.end(), 0);
    added_rows = 0;
  };
  for (const Strip& strip : strips) {
    ReadStrip(strip, &reader, &exponents);
    for (uint64_t row = strip.begin; row < strip.end; ++row) {
      if (added_rows == kMostAddedRows) flush();
      const ExponentSum row_sum = kernels_.add_exponents(exponents.data() + (row - strip.begin) * columns,
                                                         columns, sums.data(), zeros.data());
      ++added_rows;
      (*row_means)[row] = MeanInEighths(row_sum.sum, row_sum.count, -1);
      total.all.sum += row_sum.sum;
      total.all.count += row_sum.count;
    }
  }
  flush();
  return total;
}

/// Means over rows and columns of the strips; rows outside them have the mean of all.
void RankOnePredictor::PartFit::Fit(const std::vector<Strip>& strips) {
  const uint64_t rows = part_->matrix.rows, columns = part_->matrix.columns;
  std::mutex mutex;
  std::vector<int64_t> row_means(rows, -1);
  Sums total(columns);
  Share(strips, [&](std::span<const Strip> own) {
    const Sums sums = SumStrips(own, &row_means);
    const std::lock_guard lock(mutex);
    total.all.sum += sums.all.sum;
    total.all.count += sums.all.count;
    for (uint64_t c = 0; c < columns; ++c) {
      total.column_sums[c] += sums.column_sums[c];
      total.column_counts[c] += sums.column_counts[c];
    }
  });
  const int64_t mean = MeanInEighths(total.all.sum, total.all.count, 0);
  mean_eighths_ = mean;
  part_->centre = kHalf;
  part_->rows.assign(rows, 0);
  part_->columns.resize(columns);
  for (uint64_t row = 0; row < rows; ++row) {
    const int64_t deviation = row_means[row] < 0 ? 0 : row_means[row] - mean;
    part_->rows[row] = static_cast<int16_t>(Clamp(deviation, -128, 127));
  }
  for (uint64_t c = 0; c < columns; ++c) {
    const int64_t column_mean = MeanInEighths(total.column_sums[c], total.column_counts[c], mean);
    part_->columns[c] = static_cast<int16_t>(part_->centre + Clamp(column_mean - mean, -128, 127));
  }
}

/// Whether the predictor saves more than a hundredth of the strips, its own bytes counted.
bool RankOnePredictor::PartFit::Gains(const std::vector<Strip>& strips) const {
  const uint64_t rows = part_->matrix.rows, columns = part_->matrix.columns;
  std::mutex mutex;
  uint64_t plain = 0, predicted = 0, elements = 0;
  Share(strips, [&](std::span<const Strip> own) {
    ContentReader reader = ReaderOf(own);
    std::vector<uint8_t> exponents;
    std::array<uint32_t, 256> counts;
    uint64_t own_plain = 0, own_predicted = 0, own_elements = 0;
    for (const Strip& strip : own) {
      ReadStrip(strip, &reader, &exponents);
      const size_t n = exponents.size();
      kernels_.histogram(exponents.data(), n, counts.data());
      own_plain += EntropyCost(counts.data());
      for (uint64_t row = strip.begin; row < strip.end; ++row) {
        kernels_.predict(exponents.data() + (row - strip.begin) * columns, part_->columns.data(),
                         part_->rows[row], columns);
      }
      kernels_.histogram(exponents.data(), n, counts.data());
      own_predicted += EntropyCost(counts.data());
      own_elements += n;
    }
    const std::lock_guard lock(mutex);
    plain += own_plain;
    predicted += own_predicted;
    elements += own_elements;
  });
  // Deviations take about six bits each.
  const uint64_t side = (rows + columns) * 6 * elements / (rows * columns) << kLog2FractionBits;
  return predicted + side < plain - plain / 100;
}

void RankOnePredictor::Recentre(int centre, Part* part) {
  for (int16_t& column : part->columns) column = static_cast<int16_t>(column - part->centre + centre);
  part->centre = static_cast<int16_t>(centre);
}

std::optional<RankOnePredictor> RankOnePredictor::Fit(const Kernels& kernels, const TensorView& tensor,
                                                      bool thorough, int threads) {
  if (!IsFloat(tensor.type)) return std::nullopt;
  struct Candidate {
    Part part;
    int64_t mean = 0;
    bool pays = false;
  };
  std::vector<Candidate> candidates;
  uint64_t deviations = 0;
  for (const MatrixPart& matrix : tensor.matrices) {
    if (matrix.rows < kMinSide || matrix.columns < kMinSide || matrix.rows * matrix.columns < kMinElements)
      continue;
    deviations += matrix.rows + matrix.columns;
    if (deviations > kMaxDeviations) break;
    candidates.emplace_back().part.matrix = matrix;
  }
  ParallelFor(candidates.size(), threads, [&](size_t i) {
    Candidate& candidate = candidates[i];
    PartFit fit(kernels, tensor, threads, &candidate.part);
    candidate.pays = fit.Run(thorough);
    candidate.mean = fit.mean_eighths();
  });
  RankOnePredictor predictor;
  uint64_t plain_elements = 0;
  int64_t plain_sum = 0;
  std::vector<int64_t> means;  // of the parts
  for (Candidate& candidate : candidates) {
    const uint64_t elements = candidate.part.matrix.rows * candidate.part.matrix.columns;
    if (candidate.pays) {
      means.push_back(candidate.mean);
      predictor.parts_.push_back(std::move(candidate.part));
    } else {
      plain_elements += elements;
      plain_sum += static_cast<int64_t>(elements) * candidate.mean;
    }
  }
  if (predictor.parts_.empty()) return std::nullopt;
  // Codes lie where the exponents of the other matrices are, because they share tables with them.
  const int64_t around =
      plain_elements == 0 ? kDefaultCode : plain_sum / static_cast<int64_t>(plain_elements * kSteps);
  for (size_t i = 0; i < means.size(); ++i)
    Recentre(static_cast<int>(means[i] - around * kSteps) + kHalf, &predictor.parts_[i]);
  return predictor;
}

std::vector<uint8_t> RankOnePredictor::Serialize(const Kernels& kernels, CodecLevel level) const {
  std::vector<uint8_t> side, deviations;
  AppendVarint(&side, parts_.size());
  uint64_t end = 0;
  for (const Part& part : parts_) {
    AppendVarint(&side, part.matrix.first - end);
    AppendVarint(&side, part.matrix.rows);
    AppendVarint(&side, part.matrix.columns);
    AppendInteger(&side, part.centre);
    end = part.matrix.first + part.matrix.rows * part.matrix.columns;
    for (const int16_t row : part.rows) deviations.push_back(static_cast<uint8_t>(row));
    for (const int16_t column : part.columns)
      deviations.push_back(static_cast<uint8_t>(column - part.centre));
  }
  PlaneEncoder encoder;
  std::vector<uint8_t> coded(std::min(deviations.size(), kPieceBytes));
  for (size_t at = 0; at < deviations.size(); at += kPieceBytes) {
    const ByteSpan piece = ByteSpan(deviations).subspan(at, std::min(kPieceBytes, deviations.size() - at));
    const EncodedPlane plane = encoder.Encode(kernels, piece, level, coded.data());
    side.push_back(static_cast<uint8_t>(plane.mode));
    AppendInteger<uint32_t>(&side, plane.size_bytes);
    AppendBytes(&side, ByteSpan(coded).first(plane.size_bytes));
  }
  return side;
}

RankOnePredictor RankOnePredictor::Parse(const Kernels& kernels, ByteSpan side, uint64_t elements,
                                         const std::string& object, uint64_t offset) {
  const auto refuse = [&](const std::string& why) {
    return BadInputAt(offset, object, "the predictor is corrupt: " + why);
  };
  ByteParser parser(side);
  RankOnePredictor predictor;
  const uint64_t parts = parser.ReadVarint();
  uint64_t end = 0, deviations = 0;
  for (uint64_t i = 0; i < parts; ++i) {
    Part part;
    MatrixPart& matrix = part.matrix;
    const uint64_t gap = parser.ReadVarint();
    matrix.rows = parser.ReadVarint();
    matrix.columns = parser.ReadVarint();
    part.centre = parser.Read<int16_t>();
    if (parser.failed()) throw refuse("it ends before its matrices");
    uint64_t size;
    if (gap > elements - end || matrix.rows == 0 || matrix.columns == 0 ||
        __builtin_mul_overflow(matrix.rows, matrix.columns, &size) || size > elements - end - gap) {
      throw refuse("a matrix is not inside the tensor");
    }
    if (matrix.rows > kMaxDeviations || matrix.columns > kMaxDeviations ||
        (deviations += matrix.rows + matrix.columns) > kMaxDeviations) {
      throw refuse("its matrices have too many rows and columns");
    }
    if (std::abs(part.centre) > kMaxCentre) throw refuse("a centre is out of range");
    matrix.first = end + gap;
    end = matrix.first + size;
    predictor.parts_.push_back(std::move(part));
  }
  std::vector<uint8_t> decoded;
  PlaneDecoder decoder;
  while (decoded.size() < deviations) {
    const auto mode = parser.Read<uint8_t>();
    const ByteSpan coded = parser.ReadBytes(parser.Read<uint32_t>());
    if (parser.failed() || mode > static_cast<uint8_t>(PlaneMode::kRans))
      throw refuse("a piece is not whole");
    const size_t size = std::min<uint64_t>(kPieceBytes, deviations - decoded.size());
    decoder.Open(kernels, static_cast<PlaneMode>(mode), coded, size, object, offset);
    for (size_t left = size; left > 0;) {
      const size_t n = std::min(left, kRunUnit);
      AppendBytes(&decoded, {decoder.Read(n), n});
      left -= n;
    }
    decoder.Close();
  }
  if (parser.remaining() != 0) throw refuse("bytes are left over");
  const uint8_t* next = decoded.data();
  for (Part& part : predictor.parts_) {
    part.rows.resize(part.matrix.rows);
    part.columns.resize(part.matrix.columns);
    for (int16_t& row : part.rows) row = static_cast<int8_t>(*next++);
    for (int16_t& column : part.columns)
      column = static_cast<int16_t>(part.centre + static_cast<int8_t>(*next++));
  }
  return predictor;
}

void RankOnePredictor::ForRows(RowKernel kernel, uint64_t first, size_t n, uint8_t* exponents) const {
  const uint64_t end = first + n;
  const auto past = std::upper_bound(parts_.begin(), parts_.end(), first,
                                     [](uint64_t e, const Part& part) { return e < part.matrix.first; });
  for (auto part = past == parts_.begin() ? past : past - 1; part != parts_.end(); ++part) {
    const MatrixPart& matrix = part->matrix;
    if (matrix.first >= end) break;
    const uint64_t matrix_end = matrix.first + matrix.rows * matrix.columns;
    for (uint64_t e = std::max(first, matrix.first); e < std::min(end, matrix_end);) {
      const uint64_t row = (e - matrix.first) / matrix.columns;
      const uint64_t column = (e - matrix.first) % matrix.columns;
      const uint64_t size = std::min(std::min(end, matrix_end) - e, matrix.columns - column);
      kernel(exponents + (e - first), part->columns.data() + column, part->rows[row], size);
      e += size;
    }
  }
}

}  // namespace trainwright::codec
