/// A product through the seam of lib/nn/cuda/epilogue_product.h with memory of its own, and what is right by
/// slow formulas in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "lib/nn/cuda/epilogue_product.h"
#include "tests/cuda/cuda_memory.h"

namespace trainwright {

namespace test {
/// Grows with each call by eight. Not of trainwright::cuda, as ProductWorkspace.
inline int64_t GrowingGap() {
  static int64_t gap = 512;
  return gap += 8;
}
}  // namespace test

namespace cuda {

struct ProductShape {
  int64_t rows = 24, columns = 16, depth = 40;
  bool a_transposed = false, b_transposed = false;
  int64_t gap = 0;  ///< elements between one line and the next, of every matrix
};

/// With lines as far apart as those of no earlier product: an implementation may keep its algorithms for the
/// whole process.
inline ProductShape UnseenShape() {
  return {.gap = test::GrowingGap()};
}

inline double TanhOfGelu(double x) {
  return std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
}
inline double Gelu(double x) {
  return x * (1 + TanhOfGelu(x)) / 2;
}
/// By differences: the derivative that implementations have is a formula of its own.
inline double GeluSlope(double x) {
  return (Gelu(x + 1e-5) - Gelu(x - 1e-5)) / 2e-5;
}

class ProductCase {
 public:
  ProductCase(Storage operands, Storage out_type, Access access, const ProductShape& shape)
      : shape_(shape),
        operands_(operands),
        out_type_(out_type),
        a_stride_((shape.a_transposed ? shape.rows : shape.depth) + shape.gap),
        b_stride_((shape.b_transposed ? shape.depth : shape.columns) + shape.gap),
        out_stride_(shape.columns + shape.gap),
        a_(operands, Normals((shape.a_transposed ? shape.depth : shape.rows) * a_stride_, 1), access),
        b_(operands, Normals((shape.b_transposed ? shape.columns : shape.depth) * b_stride_, 2), access),
        bias_(out_type, Normals(shape.columns, 3), access),
        pre_(out_type, Normals(shape.rows * out_stride_, 4), access),
        out_(out_type, shape.rows * out_stride_, access),
        gradient_(shape.rows, access),
        pre_before_(pre_.values()),
        out_before_(out_.values()) {}

  /// With what the epilogue takes. Its out is NaN where FillOut has not filled it.
  EpilogueProduct Product(Epilogue epilogue) {
    const bool gelu = epilogue == Epilogue::kGelu;
    return {.rows = shape_.rows,
            .columns = shape_.columns,
            .depth = shape_.depth,
            .operand_type = operands_,
            .out_type = out_type_,
            .a = {a_.data(), a_stride_, shape_.a_transposed},
            .b = {b_.data(), b_stride_, shape_.b_transposed},
            .out = out_.data(),
            .out_stride = out_stride_,
            .epilogue = epilogue,
            .bias = gelu || epilogue == Epilogue::kBias ? bias_.data() : nullptr,
            .bias_gradient = epilogue == Epilogue::kBiasGradient ? gradient_.data() : nullptr,
            .pre_activation = gelu || epilogue == Epilogue::kGeluGradient ? pre_.data() : nullptr};
  }
  void FillOut() {
    const std::vector<double> values = Normals(out_.size(), 5);
    for (int64_t i = 0; i < out_.size(); ++i) out_.Set(i, values[static_cast<size_t>(i)]);
    out_before_ = out_.values();
  }

  double Sum(int64_t row, int64_t column) const {
    double sum = 0;
    for (int64_t k = 0; k < shape_.depth; ++k) sum += a(row, k) * b(k, column);
    return sum;
  }
  double bias(int64_t column) const { return bias_[column]; }
  double pre_before(int64_t row, int64_t column) const { return pre_before_[Place(row, column)]; }
  double out_before(int64_t row, int64_t column) const { return out_before_[Place(row, column)]; }

  /// \param expected of a row and a column
  template <typename Expected>
  void ExpectOut(const Expected& expected) const {
    ExpectMatrix("out", out_, out_before_, expected);
  }
  template <typename Expected>
  void ExpectPreActivation(const Expected& expected) const {
    ExpectMatrix("pre-activation", pre_, pre_before_, expected);
  }
  void ExpectNothingWritten() const {
    const auto same = [](double before, double after) {
      return before == after || (std::isnan(before) && std::isnan(after));
    };
    for (int64_t i = 0; i < out_.size(); ++i) {
      EXPECT_TRUE(same(out_before_[static_cast<size_t>(i)], out_[i])) << "out " << i;
      EXPECT_TRUE(same(pre_before_[static_cast<size_t>(i)], pre_[i])) << "pre-activation " << i;
    }
  }
  void ExpectBiasGradient() const {
    for (int64_t row = 0; row < shape_.rows; ++row) {
      double sum = 0;
      for (int64_t k = 0; k < shape_.depth; ++k) sum += a(row, k);
      ExpectClose(gradient_[row], sum, Storage::kFp32, 8, "bias gradient " + std::to_string(row));
    }
  }

 private:
  double a(int64_t row, int64_t k) const {
    return a_[shape_.a_transposed ? k * a_stride_ + row : row * a_stride_ + k];
  }
  double b(int64_t k, int64_t column) const {
    return b_[shape_.b_transposed ? column * b_stride_ + k : k * b_stride_ + column];
  }
  size_t Place(int64_t row, int64_t column) const { return static_cast<size_t>(row * out_stride_ + column); }
  /// What lies between the lines is as it was.
  template <typename Expected>
  void ExpectMatrix(const std::string& name, const StoredMemory& matrix, const std::vector<double>& before,
                    const Expected& expected) const {
    for (int64_t i = 0; i < matrix.size(); ++i) {
      const int64_t row = i / out_stride_, column = i % out_stride_;
      const std::string what = name + " " + std::to_string(row) + ", " + std::to_string(column);
      const double old = before[static_cast<size_t>(i)];
      if (column < shape_.columns) {
        ExpectClose(matrix[i], expected(row, column), out_type_, 8, what);
      } else {
        EXPECT_TRUE(matrix[i] == old || (std::isnan(matrix[i]) && std::isnan(old))) << what;
      }
    }
  }

  const ProductShape shape_;
  const Storage operands_, out_type_;
  const int64_t a_stride_, b_stride_, out_stride_;
  const StoredMemory a_, b_, bias_;
  StoredMemory pre_, out_;
  Memory<float> gradient_;
  const std::vector<double> pre_before_;
  std::vector<double> out_before_;
};

}  // namespace cuda
}  // namespace trainwright
