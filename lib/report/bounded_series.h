/// A series of any length in bounded memory: points are gathered into at most a fixed number of buckets of
/// equal count, each of which keeps its first, last, lowest and highest point, so that a plot no wider than
/// the buckets looks as if every point were drawn. A spike of one point stays visible among a million.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainwright {

struct PlotPoint {
  double x = 0, y = 0;
  bool operator==(const PlotPoint&) const = default;
};

class BoundedSeries {
 public:
  /// \param max_buckets even, >= 2
  explicit BoundedSeries(size_t max_buckets);

  /// \param x at least that of the point before. A point that is not finite is left out.
  void Add(double x, double y);

  bool empty() const { return buckets_.empty(); }
  uint64_t count() const { return count_; }
  size_t buckets() const { return buckets_.size(); }
  PlotPoint last() const { return buckets_.back().last; }
  /// At most four points a bucket, x rising.
  std::vector<PlotPoint> Points() const;
  /// The exponential moving average over the buckets' means, at the buckets' ends. Its window grows from one
  /// bucket at the start, where curves are steep, by an eighth of what lies after.
  /// \param span of the window at most: the buckets over which a plain mean would have the same variance
  std::vector<PlotPoint> Smoothed(double span) const;

 private:
  struct Bucket {
    PlotPoint first, last, lowest, highest;
    double sum = 0;
    uint64_t count = 0;
    void Merge(const Bucket& later);
  };

  size_t max_buckets_;
  uint64_t points_a_bucket_ = 1, count_ = 0;
  std::vector<Bucket> buckets_;
};

}  // namespace trainwright
