#include "lib/probe/cpu_gemm_cache.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/version.h"
#include "lib/device/determinism.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/machine/host_info.h"
#include "lib/probe/kernel_sources.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kSchema[] = "trainwright.kernels/1";
constexpr size_t kMostBytes = size_t{1} << 20, kMostMachines = 64;

/// The entries of a file; none of one that is not there or is no such file.
Json ReadMachines(const std::string& path) {
  try {
    const std::vector<uint8_t> text = ReadWholeFile(path, kMostBytes);
    Json json = Json::parse(AsText(text));
    if (json.at("schema") == kSchema && json.at("machines").is_array()) return json.at("machines");
  } catch (const Error&) {
  } catch (const nlohmann::json::exception&) {
  }
  return Json::array();
}

Json EncodeMachine(const CpuGemmMachine& machine) {
  return {{"cpu", machine.cpu},
          {"capability", machine.capability},
          {"threads", machine.threads},
          {"build", machine.build},
          {"torch", machine.torch}};
}

bool IsOf(const Json& entry, const CpuGemmMachine& machine) {
  if (!entry.is_object()) return false;
  const Json wanted = EncodeMachine(machine);
  for (const auto& [key, value] : wanted.items()) {
    if (!entry.contains(key) || entry.at(key) != value) return false;
  }
  return true;
}

}  // namespace

CpuGemmMachine ThisCpuGemmMachine(int threads) {
  return {.cpu = ReadHostInfo().cpu_model.value_or(""),
          .capability = CpuCapability(),
          .threads = threads,
          .build = TRAINWRIGHT_BUILD " kernels " + std::string(kKernelSources),
          .torch = TorchBuild()};
}

std::string CpuGemmCachePath() {
  const auto folder_of = [](const char* variable) {
    const char* const value = std::getenv(variable);
    return std::string(value != nullptr && value[0] == '/' ? value : "");
  };
  if (const std::string cache = folder_of("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/trainwright/kernels.json";
  const std::string home = folder_of("HOME");
  return home.empty() ? "" : home + "/.cache/trainwright/kernels.json";
}

std::optional<MeasuredCpuGemms> FindCpuGemms(const std::string& path, const CpuGemmMachine& machine) {
  if (path.empty()) return std::nullopt;
  for (const Json& entry : ReadMachines(path)) {
    if (!IsOf(entry, machine)) continue;
    try {
      MeasuredCpuGemms measured;
      measured.gemms = ParseCpuGemms(entry.at("kernels").get<std::string>(), path, {});
      measured.rates = entry.at("flops_per_s").get<CpuGemmRates>();
      measured.measured = entry.at("measured").get<std::string>();
      return measured;
    } catch (const Error&) {
    } catch (const nlohmann::json::exception&) {
    }
  }
  return std::nullopt;
}

void StoreCpuGemms(const std::string& path, const CpuGemmMachine& machine, const MeasuredCpuGemms& measured) {
  Json entries = Json::array();
  for (const Json& entry : ReadMachines(path)) {
    if (!IsOf(entry, machine)) entries.push_back(entry);
  }
  while (entries.size() >= kMostMachines) entries.erase(entries.begin());
  Json entry = EncodeMachine(machine);
  entry["kernels"] = CpuGemmsName(measured.gemms);
  entry["flops_per_s"] = measured.rates;
  entry["measured"] = measured.measured;
  entries.push_back(entry);
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) {
    throw Error(ErrorCode::kIo, fs::path(path).parent_path().string(),
                "the folder cannot be made: " + error.message());
  }
  const Json file = {{"schema", kSchema}, {"machines", entries}};
  WriteFileAtomically(path, AsBytes(file.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"));
}

}  // namespace trainwright
