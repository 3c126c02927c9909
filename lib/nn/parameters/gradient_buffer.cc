#include "lib/nn/parameters/gradient_buffer.h"

#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr auto kElementBytes = static_cast<int64_t>(sizeof(float));

}  // namespace

void GradientBuffer::SetLayout(std::vector<Segment> segments, const at::TensorOptions& options,
                               std::vector<Matrix> matrices) {
  TRAINWRIGHT_CHECK(!allocated());
  int64_t end = 0;
  for (const Segment& segment : segments) {
    TRAINWRIGHT_CHECK(segment.begin == end && segment.end > segment.begin);
    end = segment.end;
    largest_segment_ = std::max(largest_segment_, segment.end - segment.begin);
  }
  segments_ = std::move(segments);
  options_ = options;
  if (!options.device().is_cpu()) matrices_ = std::move(matrices);
}

void GradientBuffer::Offload(std::unique_ptr<OffloadStore> store) {
  TRAINWRIGHT_CHECK(!allocated() && store != nullptr && !given_away_);
  store_ = std::move(store);
}

void GradientBuffer::GiveAway() {
  TRAINWRIGHT_CHECK(!allocated() && store_ == nullptr);
  given_away_ = true;
  taken_.resize(segments_.size());
}

void GradientBuffer::Allocate() {
  if (allocated()) return;
  buffer_ = at::zeros({memory_bytes() / kElementBytes}, options_.dtype(at::kFloat));
  if (matrices_.empty() || !is_whole()) return;
  int64_t end = 0;
  const auto add = [&](int64_t next) {
    if (next > end) rest_.push_back(buffer_.narrow(0, end, next - end));
  };
  for (const Matrix& matrix : matrices_) {
    add(matrix.begin);
    end = matrix.end();
  }
  add(num_elements());
}

at::Tensor& GradientBuffer::Whole() {
  TRAINWRIGHT_CHECK(is_whole());
  Allocate();
  ZeroUnwritten(0, num_elements());
  return buffer_;
}

template <typename Function>
void GradientBuffer::ForUnwritten(int64_t begin, int64_t end, const Function& function) {
  auto matrix = std::partition_point(matrices_.begin(), matrices_.end(),
                                     [&](const Matrix& candidate) { return candidate.end() <= begin; });
  for (; matrix != matrices_.end() && matrix->begin < end; ++matrix) {
    if (matrix->unwritten) function(*matrix);
  }
}

void GradientBuffer::ZeroUnwritten(int64_t begin, int64_t end) {
  ForUnwritten(begin, end, [&](Matrix& matrix) {
    buffer_.narrow(0, matrix.begin, matrix.size).zero_();
    matrix.unwritten = false;
  });
}

bool GradientBuffer::TakeUnwritten(int64_t offset, int64_t size) {
  int64_t covered = 0;
  ForUnwritten(offset, offset + size, [&](const Matrix& matrix) {
    if (matrix.begin >= offset && matrix.end() <= offset + size) covered += matrix.size;
  });
  if (covered != size || !is_whole()) return false;
  ForUnwritten(offset, offset + size, [](Matrix& matrix) { matrix.unwritten = false; });
  return true;
}

std::vector<bool> GradientBuffer::Unwritten() const {
  std::vector<bool> unwritten;
  for (const Matrix& matrix : matrices_) unwritten.push_back(matrix.unwritten);
  return unwritten;
}

void GradientBuffer::set_unwritten(const std::vector<bool>& unwritten) {
  TRAINWRIGHT_CHECK(unwritten.size() == matrices_.size());
  for (size_t i = 0; i < unwritten.size(); ++i) matrices_[i].unwritten = unwritten[i];
}

size_t GradientBuffer::SegmentOf(int64_t offset) const {
  const auto after =
      std::upper_bound(segments_.begin(), segments_.end(), offset,
                       [](int64_t place, const Segment& segment) { return place < segment.begin; });
  TRAINWRIGHT_CHECK(after != segments_.begin());
  return static_cast<size_t>(std::prev(after) - segments_.begin());
}

at::Tensor GradientBuffer::View(int64_t offset, int64_t size) {
  if (is_whole()) {
    Allocate();
    ZeroUnwritten(offset, offset + size);
    return buffer_.narrow(0, offset, size);
  }
  const size_t index = SegmentOf(offset);
  const Segment& segment = segments_[index];
  TRAINWRIGHT_CHECK(offset + size <= segment.end);
  if (given_away_) return Take(index).narrow(0, offset - segment.begin, size);
  BringIn(index);
  return WindowOf(segment, window_).narrow(0, offset - segment.begin, size);
}

at::Tensor& GradientBuffer::Take(size_t segment) {
  at::Tensor& memory = taken_[segment];
  if (memory.defined()) return memory;
  const int64_t size = segments_[segment].end - segments_[segment].begin;
  auto best = free_.end();  // the smallest that is large enough
  for (auto free = free_.begin(); free != free_.end(); ++free) {
    if (free->numel() >= size && (best == free_.end() || free->numel() < best->numel())) best = free;
  }
  if (best != free_.end()) {
    memory = *best;
    free_.erase(best);
    memory.narrow(0, 0, size).zero_();
  } else {
    memory = at::zeros({size}, options_.dtype(at::kFloat));
    taken_bytes_ += size * kElementBytes;
  }
  return memory;
}

void GradientBuffer::Release(size_t segment) {
  TRAINWRIGHT_CHECK(given_away_);
  at::Tensor& memory = taken_[segment];
  if (memory.defined()) free_.push_back(std::exchange(memory, at::Tensor()));
}

void GradientBuffer::CopyTo(int64_t begin, at::Tensor out) {
  TRAINWRIGHT_CHECK(store_ == nullptr);
  if (!given_away_) {
    out.copy_(View(begin, out.numel()));
    return;
  }
  const int64_t end = begin + out.numel();
  for (int64_t at = begin; at < end;) {
    const size_t index = SegmentOf(at);
    const Segment& segment = segments_[index];
    const int64_t size = std::min(end, segment.end) - at;
    at::Tensor part = out.narrow(0, at - begin, size);
    if (taken_[index].defined()) {
      part.copy_(taken_[index].narrow(0, at - segment.begin, size));
    } else {
      part.zero_();
    }
    at += size;
  }
}

at::Tensor GradientBuffer::WindowOf(const Segment& segment, int64_t window) {
  return buffer_.narrow(0, window * largest_segment_, segment.end - segment.begin);
}

void GradientBuffer::BringIn(size_t index) {
  Allocate();
  if (in_window_ == index) return;
  PutAway();
  window_ = (window_ + 1) % store_->lanes();
  store_->Await(window_);
  const Segment& segment = segments_[index];
  if (in_next_window_ != index) {
    at::Tensor window = WindowOf(segment, window_);
    if (segment.written) {
      store_->Read(segment.begin * kElementBytes, window, window_);
      store_->Await(window_);
    } else {
      window.zero_();
    }
  }
  in_window_ = index;
  ReadAhead(index, last_in_window_ && *last_in_window_ > index);
  last_in_window_ = index;
}

void GradientBuffer::ReadAhead(size_t index, bool descending) {
  in_next_window_.reset();
  if (store_->lanes() < 2 || (descending ? index == 0 : index + 1 == segments_.size())) return;
  const size_t next = descending ? index - 1 : index + 1;
  if (!segments_[next].written) return;
  const int64_t window = (window_ + 1) % store_->lanes();
  store_->Read(segments_[next].begin * kElementBytes, WindowOf(segments_[next], window), window);
  in_next_window_ = next;
}

void GradientBuffer::PutAway() {
  if (!in_window_) return;
  Segment& segment = segments_[*in_window_];
  store_->Write(segment.begin * kElementBytes, WindowOf(segment, window_), window_);
  segment.written = true;
  in_window_.reset();
}

void GradientBuffer::Zero() {
  if (is_whole()) {
    Allocate();
    for (Matrix& matrix : matrices_) matrix.unwritten = true;
    if (matrices_.empty()) {
      buffer_.zero_();
    } else if (!rest_.empty()) {
      at::_foreach_zero_(rest_);
    }
    return;
  }
  for (size_t i = 0; i < taken_.size(); ++i) Release(i);
  in_window_.reset();
  in_next_window_.reset();
  last_in_window_.reset();
  for (Segment& segment : segments_) segment.written = false;
}

void GradientBuffer::ForEachPart(const std::function<void(int64_t, at::Tensor&)>& visit) {
  if (is_whole()) return visit(0, Whole());
  TRAINWRIGHT_CHECK(!given_away_);
  PutAway();
  for (size_t i = 0; i < segments_.size(); ++i) {
    BringIn(i);
    at::Tensor window = WindowOf(segments_[i], window_);
    in_window_.reset();  // what the visitor changes is not stored
    visit(segments_[i].begin, window);
  }
}

int64_t GradientBuffer::size_bytes() const {
  return num_elements() * kElementBytes;
}

int64_t GradientBuffer::memory_bytes() const {
  if (is_whole()) return size_bytes();
  const int64_t largest_bytes = largest_segment_ * kElementBytes;
  return given_away_ ? std::max(taken_bytes_, largest_bytes) : store_->lanes() * largest_bytes;
}

}  // namespace trainwright
