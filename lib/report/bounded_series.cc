#include "lib/report/bounded_series.h"

#include <algorithm>
#include <cmath>

namespace trainwright {

BoundedSeries::BoundedSeries(size_t max_buckets) : max_buckets_(max_buckets) {}

void BoundedSeries::Bucket::Merge(const Bucket& later) {
  last = later.last;
  if (later.lowest.y < lowest.y) lowest = later.lowest;
  if (later.highest.y > highest.y) highest = later.highest;
  sum += later.sum;
  count += later.count;
}

void BoundedSeries::Add(double x, double y) {
  if (!std::isfinite(x) || !std::isfinite(y)) return;
  const PlotPoint point = {x, y};
  const Bucket bucket = {point, point, point, point, y, 1};
  ++count_;
  if (!buckets_.empty() && buckets_.back().count < points_a_bucket_) {
    buckets_.back().Merge(bucket);
    return;
  }
  if (buckets_.size() == max_buckets_) {
    for (size_t i = 0; i < max_buckets_ / 2; ++i) {
      buckets_[i] = buckets_[2 * i];
      buckets_[i].Merge(buckets_[2 * i + 1]);
    }
    buckets_.resize(max_buckets_ / 2);
    points_a_bucket_ *= 2;
  }
  buckets_.push_back(bucket);
}

std::vector<PlotPoint> BoundedSeries::Points() const {
  std::vector<PlotPoint> points;
  for (const Bucket& bucket : buckets_) {
    const bool low_first = bucket.lowest.x <= bucket.highest.x;
    for (const PlotPoint& point : {bucket.first, low_first ? bucket.lowest : bucket.highest,
                                   low_first ? bucket.highest : bucket.lowest, bucket.last}) {
      if (points.empty() || !(points.back() == point)) points.push_back(point);
    }
  }
  return points;
}

std::vector<PlotPoint> BoundedSeries::Smoothed(double span) const {
  std::vector<PlotPoint> points;
  double average = 0;
  for (const Bucket& bucket : buckets_) {
    const double window = std::min(span, 1 + static_cast<double>(points.size()) / 8);
    average += 2 / (window + 1) * (bucket.sum / static_cast<double>(bucket.count) - average);
    points.push_back({bucket.last.x, average});
  }
  return points;
}

}  // namespace trainwright
