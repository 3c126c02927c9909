#include "tests/support/fake_cublaslt/matmul_compute.h"

#include <cmath>
#include <cstring>
#include <numbers>

namespace trainwright::fake_cublaslt {
namespace {

/// A matrix whose columns are contiguous, anywhere in memory.
class Columns {
 public:
  Columns(int type, const void* data, int64_t leading)
      : format_(*FormatOf(type)),
        bytes_(BytesOf(format_)),
        data_(const_cast<unsigned char*>(static_cast<const unsigned char*>(data))),
        leading_(leading) {}

  double Read(int64_t row, int64_t column) const {
    uint32_t code = 0;
    std::memcpy(&code, At(row, column), static_cast<size_t>(bytes_));
    return Decode(format_, code);
  }
  void Write(int64_t row, int64_t column, double value) const {
    const uint32_t code = Encode(format_, value);
    std::memcpy(At(row, column), &code, static_cast<size_t>(bytes_));
  }

 private:
  unsigned char* At(int64_t row, int64_t column) const { return data_ + (row + column * leading_) * bytes_; }

  const NumberFormat format_;
  const int bytes_;
  unsigned char* const data_;
  const int64_t leading_;
};

double RoundTo(const NumberFormat& format, double value) {
  return Decode(format, Encode(format, value));
}

/// An element of op(A) or op(B) as the multipliers see it.
class Operand {
 public:
  Operand(const MatmulProblem& problem, const MatrixLayout& layout, int32_t operation, const void* data)
      : columns_(layout.type, data, layout.leading),
        transposed_(operation == CUBLAS_OP_T),
        tf32_(problem.description->compute_type == CUBLAS_COMPUTE_32F_FAST_TF32) {}
  double operator()(int64_t row, int64_t column) const {
    const double value = transposed_ ? columns_.Read(column, row) : columns_.Read(row, column);
    return tf32_ ? RoundTo(kTf32, value) : value;
  }

 private:
  const Columns columns_;
  const bool transposed_, tf32_;
};

/// The share of the logistic function in x / (1 + exp(-2 u)), which is the GELU with a tanh.
double GeluShare(double x) {
  return 1 / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
double Gelu(double x) {
  return x * GeluShare(x);
}
double GeluSlope(double x) {
  const double share = GeluShare(x), inner = 2 * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
  return share + x * share * (1 - share) * inner;
}

double ScaleAt(const void* scale) {
  return scale == nullptr ? 1 : *static_cast<const float*>(scale);
}

bool Splits(Algorithm algorithm) {
  return algorithm == Algorithm::kInPlace || algorithm == Algorithm::kOutputType ||
         algorithm == Algorithm::kSplit;
}

/// The sum over the depth, in the two parts of an algorithm that splits it.
/// \param workspace where the parts meet, if not in the output
double SumOf(const MatmulProblem& problem, const Operand& a, const Operand& b, int64_t row, int64_t column,
             Algorithm algorithm, void* workspace) {
  double parts[2] = {0, 0};
  for (int64_t i = 0; i < problem.k; ++i) parts[2 * i / problem.k] += a(row, i) * b(i, column);
  if (!Splits(algorithm)) return parts[0] + parts[1];
  const NumberFormat& format = algorithm == Algorithm::kSplit ? kFp32 : *FormatOf(problem.d->type);
  for (double& part : parts) part = RoundTo(format, part);
  if (algorithm == Algorithm::kInPlace) return parts[0] + parts[1];
  float* const slot = static_cast<float*>(workspace) + 2 * (row + column * problem.m);
  slot[0] = static_cast<float>(parts[0]);
  slot[1] = static_cast<float>(parts[1]);
  return static_cast<double>(slot[0]) + slot[1];
}

/// Into the bias: over the depth, for each row of D (of op(A)) or each column (of op(B)).
void SumOperands(const MatmulProblem& problem, const EpilogueParts& parts, const Operand& a,
                 const Operand& b) {
  const Columns bias(problem.d->type, problem.description->bias, 0);
  for (int64_t i = 0; i < (parts.sums_a ? problem.m : problem.n); ++i) {
    double sum = 0;
    for (int64_t depth = 0; depth < problem.k; ++depth) sum += parts.sums_a ? a(i, depth) : b(depth, i);
    bias.Write(i, 0, sum);
  }
}

}  // namespace

uint64_t WorkspaceBytes(Algorithm algorithm, const MatmulProblem& problem) {
  switch (algorithm) {
    case Algorithm::kInPlace:
      return 1024;  // for the counters
    case Algorithm::kHungry:
      return uint64_t{64} << 20;
    case Algorithm::kOutputType:
    case Algorithm::kSplit:
      return static_cast<uint64_t>(problem.m * problem.n) * 2 * sizeof(float);
    case Algorithm::kAligned:
    case Algorithm::kSimple:
      break;
  }
  return 0;
}

void Compute(const MatmulProblem& problem, const MatmulMemory& memory, Algorithm algorithm) {
  const MatmulDescription& description = *problem.description;
  const EpilogueParts parts = *PartsOf(description.epilogue);
  const Operand a(problem, *problem.a, description.transpose_a, memory.a),
      b(problem, *problem.b, description.transpose_b, memory.b);
  const Columns c(problem.c->type, memory.c, problem.c->leading),
      d(problem.d->type, memory.d, problem.d->leading),
      aux(problem.d->type, description.aux, description.aux_leading),
      bias(problem.fp8() && problem.d->type == CUDA_R_32F ? CUDA_R_16BF : problem.d->type, description.bias,
           0);
  const double alpha = memory.alpha * ScaleAt(description.a_scale) * ScaleAt(description.b_scale);
  for (int64_t column = 0; column < problem.n; ++column) {
    for (int64_t row = 0; row < problem.m; ++row) {
      double value = alpha * SumOf(problem, a, b, row, column, algorithm, memory.workspace);
      // Without it what is in C is not read: it may be no number.
      if (memory.beta != 0) value += memory.beta * c.Read(row, column);
      if (parts.adds_bias) value += bias.Read(row, 0);
      if (parts.writes_aux) aux.Write(row, column, value);
      if (parts.gelu) value = Gelu(value);
      if (parts.gelu_gradient) value *= GeluSlope(aux.Read(row, column));
      d.Write(row, column, value);
    }
  }
  if (parts.sums_a || parts.sums_b) SumOperands(problem, parts, a, b);
}

}  // namespace trainwright::fake_cublaslt
