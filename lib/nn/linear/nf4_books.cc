#include "lib/nn/linear/nf4_books.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace trainwright {
namespace {

constexpr std::array<float, 16> kCodeBook = {-1.0f,
                                             -0.6961928009986877f,
                                             -0.5250730514526367f,
                                             -0.39491748809814453f,
                                             -0.28444138169288635f,
                                             -0.18477343022823334f,
                                             -0.09105003625154495f,
                                             0.0f,
                                             0.07958029955625534f,
                                             0.16093020141124725f,
                                             0.24611230194568634f,
                                             0.33791524171829224f,
                                             0.44070982933044434f,
                                             0.5626170039176941f,
                                             0.7229568362236023f,
                                             1.0f};

/// Sign, 0 to 6 zeros that choose a power of ten, and a fraction of as many bits as are left, whose values
/// are the middles of equal parts of [0.1, 1]; besides 0 and 1.
std::array<float, 256> MakeDynamicMap() {
  std::array<float, 256> map{};
  size_t size = 0;
  for (int exponent = 0; exponent < 7; ++exponent) {
    const int parts = 1 << exponent;
    for (int part = 0; part < parts; ++part) {
      const float step = (1.0f - 0.1f) / static_cast<float>(parts);
      const auto boundary = [&](int i) {  // counted from the nearer end, as torch.linspace does
        return i < (parts + 1) / 2 ? 0.1f + step * static_cast<float>(i)
                                   : 1.0f - step * static_cast<float>(parts - i);
      };
      const float middle = (boundary(part) + boundary(part + 1)) / 2.0f;
      const float value = static_cast<float>(std::pow(10.0, exponent - 6)) * middle;
      map[size++] = value;
      map[size++] = -value;
    }
  }
  map[size++] = 0.0f;
  map[size++] = 1.0f;
  std::sort(map.begin(), map.end());
  return map;
}

}  // namespace

std::span<const float, 16> Nf4CodeBook() {
  return kCodeBook;
}

std::span<const float, 256> DynamicMap() {
  static const std::array<float, 256> map = MakeDynamicMap();
  return map;
}

Nf4Books BothNf4Books() {
  Nf4Books books;
  std::copy(Nf4CodeBook().begin(), Nf4CodeBook().end(), books.code_book);
  std::copy(DynamicMap().begin(), DynamicMap().end(), books.dynamic_map);
  return books;
}

}  // namespace trainwright
