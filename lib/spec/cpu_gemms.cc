#include "lib/spec/cpu_gemms.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr double kLeastBf16Gain = 1.1;

constexpr std::pair<std::string_view, CpuGemms::Fp32> kFp32Names[] = {{"blocks", CpuGemms::Fp32::kBlocks},
                                                                      {"library", CpuGemms::Fp32::kLibrary}};
constexpr std::pair<std::string_view, CpuGemms::Bf16> kBf16Names[] = {
    {"instructions", CpuGemms::Bf16::kInstructions},
    {"widened", CpuGemms::Bf16::kWidened},
    {"emulated", CpuGemms::Bf16::kEmulated}};

template <typename Names, typename Kind>
std::string NameOf(const Names& names, Kind kind) {
  for (const auto& [name, named] : names) {
    if (named == kind) return std::string(name);
  }
  return "";
}

/// \returns whether there is one of that name
template <typename Names, typename Kind>
bool Find(const Names& names, std::string_view name, Kind* kind) {
  for (const auto& [known, named] : names) {
    if (known != name) continue;
    *kind = named;
    return true;
  }
  return false;
}

}  // namespace

std::string CpuGemmsName(const CpuGemms& gemms) {
  return "fp32=" + NameOf(kFp32Names, gemms.fp32) + ",bf16=" + NameOf(kBf16Names, gemms.bf16);
}

bool IsBf16Worthwhile(const CpuGemms& gemms, const std::optional<double>& gain) {
  if (gemms.bf16 == CpuGemms::Bf16::kEmulated) return false;
  return gain ? *gain >= kLeastBf16Gain : gemms.bf16 == CpuGemms::Bf16::kInstructions;
}

CpuGemms ParseCpuGemms(const std::string& text, const std::string& flag, CpuGemms gemms) {
  bool has_fp32 = false, has_bf16 = false;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = std::string_view(text).substr(begin, end - begin);
    const std::string_view kind = item.substr(0, item.find('='));
    const std::string_view name = kind.size() < item.size() ? item.substr(kind.size() + 1) : "";
    bool& has = kind == "fp32" ? has_fp32 : has_bf16;
    const bool known = kind == "fp32"   ? Find(kFp32Names, name, &gemms.fp32)
                       : kind == "bf16" ? Find(kBf16Names, name, &gemms.bf16)
                                        : false;
    if (!known || has) {
      throw Error(ErrorCode::kUsage, flag,
                  known ? "says twice how GEMMs of " + std::string(kind) + " are computed"
                        : "'" + std::string(item) + "' is no kind of kernels",
                  "",
                  "use auto, usual, or a list of fp32=blocks or library, and bf16=instructions, widened or "
                  "emulated");
    }
    has = true;
    begin = end + 1;
  }
  return gemms;
}

}  // namespace trainwright
