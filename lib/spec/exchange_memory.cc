#include "lib/spec/exchange_memory.h"

#include <algorithm>

namespace trainwright {
namespace {

int64_t BytesOf(const ExchangeBuffers& buffers, size_t parts, int64_t under_way, int64_t element_bytes) {
  return std::min(under_way, static_cast<int64_t>(parts)) * (buffers.packed + buffers.received) *
         element_bytes;
}

}  // namespace

ExchangeBuffers GradientBuffers(const std::vector<PartSize>& parts, int64_t ranks, SumsOf sums_of) {
  ExchangeBuffers buffers;
  for (const PartSize& part : parts) {
    const int64_t of_all = ranks * part.most;
    buffers.received = std::max(buffers.received, of_all);
    buffers.packed = std::max(buffers.packed, sums_of == SumsOf::kAll ? of_all : part.elements);
  }
  return buffers;
}

ExchangeBuffers ValueBuffers(const std::vector<PartSize>& parts, int64_t ranks) {
  ExchangeBuffers buffers;
  for (const PartSize& part : parts) buffers.packed = std::max(buffers.packed, part.most);
  buffers.received = ranks * buffers.packed;
  return buffers;
}

int64_t GradientExchangeBytes(const std::vector<PartSize>& parts, int64_t ranks, SumsOf sums_of) {
  return BytesOf(GradientBuffers(parts, ranks, sums_of), parts.size(), kGradientPartsUnderWay, sizeof(float));
}

int64_t ValueExchangeBytes(const std::vector<PartSize>& parts, int64_t ranks, int64_t element_bytes) {
  return BytesOf(ValueBuffers(parts, ranks), parts.size(), kValuePartsUnderWay, element_bytes);
}

}  // namespace trainwright
