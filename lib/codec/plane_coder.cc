#include "lib/codec/plane_coder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/base/error.h"
#include "lib/codec/fixed_log2.h"
#include "lib/codec/rans_table.h"
#include "lib/codec/symbol_counts.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/zstd_frame.h"

namespace trainwright::codec {
namespace {

constexpr size_t kStateBytes = kRansLanes * sizeof(uint32_t);
constexpr size_t kMaxPlaneBytes = size_t{1} << 20;
constexpr uint64_t kBit = uint64_t{1} << kLog2FractionBits;

/// What a level looks at, and what it asks for.
struct Effort {
  size_t units;               ///< table changes are considered every so many units
  size_t one_in;              ///< of so many symbols, one is counted
  uint32_t worth_thousandth;  ///< a plane is coded when that is thought to save so many thousandths of it
  int zstd_level;             ///< for planes that zstd is chosen for
  bool try_zstd;              ///< on every plane, not only where repetitions are seen
  size_t pieces_to_doubt;     ///< of Repeats64, which have to have a quarter of what is enough
};
constexpr Effort EffortOf(CodecLevel level) {
  switch (level) {
    case CodecLevel::kFast:
      return {16, 16, 20, 1, false, 1};
    case CodecLevel::kDefault:
      return {8, 4, 10, 3, false, 2};
    default:
      return {2, 1, 1, 19, true, 2};
  }
}

/// Pieces of a plane, spread over it, tell whether coding it can be worth a pass over all of it.
constexpr size_t kProbes = 16, kProbeBytes = 512;

bool MayShrink(const Kernels& kernels, ByteSpan plane, uint32_t worth_thousandth) {
  if (plane.size() < 4 * kProbes * kProbeBytes) return true;
  std::array<uint8_t, kProbes * kProbeBytes> probes;
  for (size_t probe = 0; probe < kProbes; ++probe) {
    std::memcpy(probes.data() + probe * kProbeBytes,
                plane.data() + probe * (plane.size() - kProbeBytes) / (kProbes - 1), kProbeBytes);
  }
  SymbolCounts counts;
  kernels.histogram(probes.data(), probes.size(), counts.data());
  const uint64_t bits = probes.size() * 8 * kBit;
  return EntropyCost(counts.data()) < bits - bits / 1000 * worth_thousandth;
}

/// How many 8-byte strings of a piece occurred before in it, of those looked at.
struct Repeats {
  size_t seen = 0, looked = 0;
};
void AddRepeats(ByteSpan piece, Repeats* repeats) {
  constexpr size_t kMost = 4096;
  TRAINWRIGHT_CHECK(piece.size() <= kMost);
  std::array<uint16_t, kMost> last{};
  for (size_t i = 0; i + 8 <= piece.size(); i += 2) {
    uint64_t word, other;
    std::memcpy(&word, piece.data() + i, 8);
    uint16_t& slot = last[word * 0x9E3779B97F4A7C15u >> 52];
    std::memcpy(&other, piece.data() + slot, 8);
    repeats->seen += i > 0 && other == word ? 1 : 0;
    slot = static_cast<uint16_t>(i);
    ++repeats->looked;
  }
}

/// Whether `enough` of 64 strings of a few pieces occurred before in their piece: what zstd lives on. One or
/// two of the pieces will do where hardly any did.
bool Repeats64(ByteSpan plane, size_t enough, size_t pieces_to_doubt) {
  constexpr size_t kPiece = 4096, kPieces = 4;
  if (plane.size() < 64) return false;
  Repeats repeats;
  size_t pieces = 0;
  for (const size_t piece : {0, 2, 1, 3}) {
    const size_t size = std::min(kPiece, plane.size());
    AddRepeats(plane.subspan(piece * (plane.size() - size) / (kPieces - 1), size), &repeats);
    if (++pieces == pieces_to_doubt && 4 * 64 * repeats.seen < enough * repeats.looked) return false;
  }
  return 64 * repeats.seen / repeats.looked >= enough;
}

/// Counts of consecutive pieces of a plane, and the price of one table for each.
struct Run {
  size_t units;
  size_t one_in;  ///< of whose symbols one was counted
  SymbolCounts counts;
  uint64_t cost;  // entropy and table, in units of 2^-16 bits
};

uint64_t CostOfTable(const SymbolCounts& counts, size_t one_in) {
  // A table takes about 9 bits for each symbol that occurs. One of a sample fits it too well and the rest
  // too badly, each by about 1 / (2 ln 2) bits a symbol of the table for every symbol of the plane behind
  // one of the sample.
  const uint64_t symbol_bits = 9 + (one_in > 1 ? 3 * one_in / 2 : 0);
  uint64_t table_bits = 16;
  for (const uint32_t count : counts) table_bits += count != 0 ? symbol_bits : 0;
  return EntropyCost(counts.data()) + table_bits * kBit;
}

SymbolCounts Sum(const SymbolCounts& a, const SymbolCounts& b) {
  SymbolCounts sum;
  for (int s = 0; s < 256; ++s) sum[s] = a[s] + b[s];
  return sum;
}

/// Cuts the plane into runs that share a table: neighbours are joined while that saves the most.
std::vector<Run> PlanRuns(const Kernels& kernels, ByteSpan plane, size_t units, size_t one_in) {
  const size_t all_units = (plane.size() + kRunUnit - 1) / kRunUnit;
  std::vector<Run> runs;
  for (size_t unit = 0; unit < all_units; unit += units) {
    const size_t begin = unit * kRunUnit, end = std::min(plane.size(), (unit + units) * kRunUnit);
    Run& run = runs.emplace_back();
    run.units = std::min(units, all_units - unit);
    run.one_in = CountsSample(end - begin, one_in) ? one_in : 1;
    run.counts = CountSymbols(kernels, plane.subspan(begin, end - begin), one_in);
    run.cost = CostOfTable(run.counts, run.one_in);
  }
  std::vector<uint64_t> joined(runs.size());  // cost of run i with run i + 1
  const auto price = [&](size_t i) {
    joined[i] =
        CostOfTable(Sum(runs[i].counts, runs[i + 1].counts), std::max(runs[i].one_in, runs[i + 1].one_in));
  };
  for (size_t i = 0; i + 1 < runs.size(); ++i) price(i);
  while (runs.size() > 1) {
    size_t best = runs.size();
    int64_t saved = -1;
    for (size_t i = 0; i + 1 < runs.size(); ++i) {
      const auto saves = static_cast<int64_t>(runs[i].cost + runs[i + 1].cost - joined[i]);
      if (saves > saved) {
        saved = saves;
        best = i;
      }
    }
    if (best == runs.size()) break;
    runs[best].units += runs[best + 1].units;
    runs[best].one_in = std::max(runs[best].one_in, runs[best + 1].one_in);
    runs[best].counts = Sum(runs[best].counts, runs[best + 1].counts);
    runs[best].cost = joined[best];
    runs.erase(runs.begin() + static_cast<ptrdiff_t>(best) + 1);
    joined.erase(joined.begin() + static_cast<ptrdiff_t>(best));
    if (best + 1 < runs.size()) price(best);
    if (best > 0) price(best - 1);
  }
  return runs;
}

uint64_t CostOf(const std::vector<Run>& runs) {
  uint64_t cost = kStateBytes / 2 * 8 * kBit;
  for (const Run& run : runs) cost += run.cost;
  return cost;
}

bool IsConst(ByteSpan plane) {
  return plane.size() == 1 || std::memcmp(plane.data(), plane.data() + 1, plane.size() - 1) == 0;
}

}  // namespace

struct PlaneEncoder::Scratch {
  // A symbol takes 12 bits at most, so its word 16.
  std::vector<uint8_t> words = std::vector<uint8_t>(2 * kMaxPlaneBytes + 64);
  std::vector<uint8_t> head;
  RansEncodeTable table;
};

PlaneEncoder::PlaneEncoder() : scratch_(std::make_unique<Scratch>()) {}
PlaneEncoder::~PlaneEncoder() = default;

EncodedPlane PlaneEncoder::Encode(const Kernels& kernels, ByteSpan plane, CodecLevel level, uint8_t* out) {
  TRAINWRIGHT_CHECK(!plane.empty() && plane.size() <= kMaxPlaneBytes);
  const Effort effort = EffortOf(level);
  const auto raw = [&] {
    std::memcpy(out, plane.data(), plane.size());
    return EncodedPlane{PlaneMode::kRaw, static_cast<uint32_t>(plane.size())};
  };
  if (IsConst(plane)) {
    out[0] = plane[0];
    return {PlaneMode::kConst, 1};
  }
  const size_t most = plane.size() - plane.size() * effort.worth_thousandth / 1000;  // bytes, to be worth it
  size_t rans_bytes = SIZE_MAX;
  std::vector<Run> runs;
  if (plane.size() >= kRansLanes && MayShrink(kernels, plane, effort.worth_thousandth)) {
    runs = PlanRuns(kernels, plane, effort.units, effort.one_in);
    rans_bytes = CostOf(runs) / kBit / 8;
  }
  // Of what rANS shrinks well, skewed symbols repeat too, by chance.
  const size_t enough_repeats = rans_bytes < plane.size() / 8 * 7 ? 16 : 2;
  const size_t to_beat = std::min(most, rans_bytes);
  // A high level takes a hundred times as long as level 1, and is worth it where that finds something.
  const auto near_at_level_1 = [&] {
    const size_t size = CompressZstdFrame(plane, 1).size();
    return size < to_beat + to_beat / 16 && size < plane.size() - plane.size() / 32;
  };
  if (effort.try_zstd ? near_at_level_1() : Repeats64(plane, enough_repeats, effort.pieces_to_doubt)) {
    const std::vector<uint8_t> frame = CompressZstdFrame(plane, effort.zstd_level);
    if (frame.size() < to_beat) {
      std::memcpy(out, frame.data(), frame.size());
      return {PlaneMode::kZstd, static_cast<uint32_t>(frame.size())};
    }
  }
  if (rans_bytes >= most) return raw();

  std::vector<uint8_t>& head = scratch_->head;
  head.assign(1, static_cast<uint8_t>(runs.size() - 1));
  for (size_t i = 0; i + 1 < runs.size(); ++i) head.push_back(static_cast<uint8_t>(runs[i].units - 1));
  std::array<uint32_t, kRansLanes> states;
  states.fill(kRansLow);
  uint8_t* const words_end = scratch_->words.data() + scratch_->words.size();
  uint8_t* words = words_end;
  std::vector<RansFrequencies> tables;
  for (const Run& run : runs) {
    tables.push_back(NormalizeCounts(run.counts.data()));
    AppendFrequencies(tables.back(), &head);
  }
  size_t end = plane.size() / kRansLanes * kRansLanes;
  for (size_t i = runs.size(), units = (plane.size() + kRunUnit - 1) / kRunUnit; i-- > 0;) {
    units -= runs[i].units;
    const size_t begin = units * kRunUnit;
    if (begin >= end) continue;  // a last run of less than a group
    BuildEncodeTable(tables[i], &scratch_->table);
    words = kernels.rans_encode(plane.data() + begin, (end - begin) / kRansLanes, scratch_->table,
                                states.data(), words);
    end = begin;
  }
  const size_t words_bytes = static_cast<size_t>(words_end - words), tail = plane.size() % kRansLanes;
  const size_t size = head.size() + kStateBytes + words_bytes + tail;
  if (size >= plane.size()) return raw();
  std::memcpy(out, head.data(), head.size());
  out += head.size();
  std::memcpy(out, states.data(), kStateBytes);
  out += kStateBytes;
  std::memcpy(out, words, words_bytes);
  std::memcpy(out + words_bytes, plane.data() + plane.size() - tail, tail);
  return {PlaneMode::kRans, static_cast<uint32_t>(size)};
}

uint64_t EstimatePlaneBits(const Kernels& kernels, ByteSpan plane) {
  SymbolCounts counts;
  kernels.histogram(plane.data(), plane.size(), counts.data());
  return CostOfTable(counts, 1) / kBit;
}

struct PlaneDecoder::State {
  const Kernels* kernels = nullptr;
  PlaneMode mode = PlaneMode::kRaw;
  ByteSpan coded;
  size_t size = 0, position = 0;  // of the decoded plane
  std::string object;
  uint64_t offset = 0;

  std::vector<uint8_t> content;  // of a zstd frame
  std::vector<uint8_t> buffer = std::vector<uint8_t>(kRunUnit);

  std::vector<std::pair<size_t, RansFrequencies>> runs;  // end of the run in the plane, table
  size_t run = 0;
  const uint8_t *words = nullptr, *words_end = nullptr;
  std::array<uint32_t, kRansLanes> states;
  RansDecodeTable table;

  [[noreturn]] void Refuse(const std::string& why) const {
    throw BadInputAt(offset, object, "a plane is corrupt: " + why);
  }
  void OpenRans();
  void ReadRans(size_t n);
};

PlaneDecoder::PlaneDecoder() : state_(std::make_unique<State>()) {}
PlaneDecoder::~PlaneDecoder() = default;

void PlaneDecoder::Open(const Kernels& kernels, PlaneMode mode, ByteSpan coded, size_t size,
                        const std::string& object, uint64_t offset) {
  State& s = *state_;
  s.kernels = &kernels;
  s.mode = mode;
  s.coded = coded;
  s.size = size;
  s.position = 0;
  s.object = object;
  s.offset = offset;
  switch (mode) {
    case PlaneMode::kRaw:
      if (coded.size() != size) s.Refuse("its size is not that of the block");
      break;
    case PlaneMode::kConst:
      if (coded.size() != 1) s.Refuse("its value is not one byte");
      std::memset(s.buffer.data(), coded[0], s.buffer.size());
      break;
    case PlaneMode::kZstd:
      s.content = DecompressZstdFrame(coded, size, object, offset);
      if (s.content.size() != size) s.Refuse("its frame has another size than the block");
      break;
    case PlaneMode::kRans:
      s.OpenRans();
      break;
  }
}

void PlaneDecoder::State::OpenRans() {
  ByteParser parser(coded);
  const size_t count = size_t{parser.Read<uint8_t>()} + 1;
  const ByteSpan lengths = parser.ReadBytes(count - 1);
  if (parser.failed()) Refuse("it ends before its tables");
  runs.resize(count);
  size_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    if (end >= size) Refuse("it has more tables than symbols");
    end = i + 1 < count ? end + (size_t{lengths[i]} + 1) * kRunUnit : size;
    runs[i].first = end;
    if (!ReadFrequencies(&parser, &runs[i].second)) Refuse("a table is not one of rANS");
  }
  const ByteSpan stored = parser.ReadBytes(kStateBytes);
  if (parser.failed() || parser.remaining() < size % kRansLanes) Refuse("it ends before its symbols");
  std::memcpy(states.data(), stored.data(), kStateBytes);
  for (const uint32_t state : states)
    if (state < kRansLow) Refuse("a state is too small");
  words = coded.data() + parser.position();
  words_end = coded.data() + coded.size() - size % kRansLanes;
  run = 0;
  BuildDecodeTable(runs[0].second, kernels->decodes_by_slot, &table);
}

void PlaneDecoder::State::ReadRans(size_t n) {
  if (position >= runs[run].first) {
    ++run;
    BuildDecodeTable(runs[run].second, kernels->decodes_by_slot, &table);
  }
  const size_t groups = n / kRansLanes, tail = n % kRansLanes;
  if (!kernels->rans_decode(&words, words_end, groups, table, states.data(), buffer.data()))
    Refuse("it ends before its symbols");
  std::memcpy(buffer.data() + n - tail, words_end, tail);
}

const uint8_t* PlaneDecoder::Read(size_t n) {
  State& s = *state_;
  TRAINWRIGHT_CHECK(n <= kRunUnit && n <= s.size - s.position);
  const size_t at = s.position;
  if (s.mode == PlaneMode::kRans) s.ReadRans(n);
  s.position += n;
  switch (s.mode) {
    case PlaneMode::kRaw:
      return s.coded.data() + at;
    case PlaneMode::kZstd:
      return s.content.data() + at;
    default:
      return s.buffer.data();
  }
}

uint8_t* PlaneDecoder::ReadWritable(size_t n) {
  const uint8_t* bytes = Read(n);
  State& s = *state_;
  if (s.mode == PlaneMode::kRans) return s.buffer.data();
  if (s.mode == PlaneMode::kConst) {
    std::memset(s.buffer.data(), s.coded[0], n);
  } else {
    std::memcpy(s.buffer.data(), bytes, n);
  }
  return s.buffer.data();
}

void PlaneDecoder::Close() {
  State& s = *state_;
  TRAINWRIGHT_CHECK(s.position == s.size);
  if (s.mode != PlaneMode::kRans) return;
  if (s.words != s.words_end) s.Refuse("bytes are left over");
  for (const uint32_t state : s.states)
    if (state != kRansLow) s.Refuse("it does not end in the state it must");
}

}  // namespace trainwright::codec
