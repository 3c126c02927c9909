#include "lib/nn/parameters/gradient_buffer.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr auto kElementBytes = static_cast<int64_t>(sizeof(float));

}  // namespace

void GradientBuffer::SetLayout(std::vector<Segment> segments, const at::TensorOptions& options) {
  TRAINWRIGHT_CHECK(!allocated());
  int64_t end = 0;
  for (const Segment& segment : segments) {
    TRAINWRIGHT_CHECK(segment.begin == end && segment.end > segment.begin);
    end = segment.end;
  }
  segments_ = std::move(segments);
  options_ = options;
}

void GradientBuffer::Offload(std::unique_ptr<OffloadStore> store) {
  TRAINWRIGHT_CHECK(!allocated() && store != nullptr);
  store_ = std::move(store);
}

void GradientBuffer::Allocate() {
  if (!allocated()) buffer_ = at::zeros({memory_bytes() / kElementBytes}, options_.dtype(at::kFloat));
}

at::Tensor& GradientBuffer::Whole() {
  TRAINWRIGHT_CHECK(store_ == nullptr);
  Allocate();
  return buffer_;
}

at::Tensor GradientBuffer::View(int64_t offset, int64_t size) {
  if (store_ == nullptr) return Whole().narrow(0, offset, size);
  const auto after =
      std::upper_bound(segments_.begin(), segments_.end(), offset,
                       [](int64_t place, const Segment& segment) { return place < segment.begin; });
  TRAINWRIGHT_CHECK(after != segments_.begin());
  const Segment& segment = *std::prev(after);
  TRAINWRIGHT_CHECK(offset + size <= segment.end);
  BringIn(static_cast<size_t>(std::prev(after) - segments_.begin()));
  return buffer_.narrow(0, offset - segment.begin, size);
}

void GradientBuffer::BringIn(size_t index) {
  Allocate();
  if (in_window_ == index) return;
  PutAway();
  const Segment& segment = segments_[index];
  at::Tensor window = WindowOf(segment);
  if (segment.written) {
    store_->Read(segment.begin * kElementBytes, window);
  } else {
    window.zero_();
  }
  in_window_ = index;
}

void GradientBuffer::PutAway() {
  if (!in_window_) return;
  Segment& segment = segments_[*in_window_];
  store_->Write(segment.begin * kElementBytes, WindowOf(segment));
  segment.written = true;
  in_window_.reset();
}

void GradientBuffer::Zero() {
  if (store_ == nullptr) {
    Whole().zero_();
    return;
  }
  in_window_.reset();
  for (Segment& segment : segments_) segment.written = false;
}

void GradientBuffer::ForEachPart(const std::function<void(int64_t, at::Tensor&)>& visit) {
  if (store_ == nullptr) return visit(0, Whole());
  PutAway();
  for (size_t i = 0; i < segments_.size(); ++i) {
    BringIn(i);
    at::Tensor window = WindowOf(segments_[i]);
    in_window_.reset();  // what the visitor changes is not stored
    visit(segments_[i].begin, window);
  }
}

int64_t GradientBuffer::size_bytes() const {
  return num_elements() * kElementBytes;
}

int64_t GradientBuffer::memory_bytes() const {
  if (store_ == nullptr) return size_bytes();
  int64_t largest = 0;
  for (const Segment& segment : segments_) largest = std::max(largest, segment.end - segment.begin);
  return largest * kElementBytes;
}

}  // namespace trainwright
