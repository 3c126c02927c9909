/// The command line of `pack`.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/cli/tool.h"
#include "lib/formats/shard.h"
#include "lib/packing/foreign_documents.h"

namespace trainwright {

struct PackOptions {
  std::vector<std::string> inputs;  ///< empty: standard input
  std::string output = "-";
  bool skip_corrupt = false;
  bool force = false;
  uint32_t chunk = 32768;
  PackMode mode = PackMode::kBestFit;
  std::optional<OverflowPolicy> overflow;  ///< nullopt: by the kind of records
  uint64_t keep_answer = 20;
  uint32_t stride = 0;  ///< 0: windows of long documents do not overlap
  uint64_t window = uint64_t{1} << 24;
  int level = 3;
  bool remap = false;
  bool append = false;
  int threads = 0;  ///< 0: one a CPU
  std::string shard_size = "256MiB";
  bool info = false, verify = false, cat = false;
  bool json = false;
  bool repair = false;
  bool export_nanogpt = false;
  std::optional<ForeignFormat> from;  ///< nullopt: by content
  std::string tokenizer;
  uint32_t vocab = 0;  ///< 0: not given
  std::string eot;     ///< an id, "none" or nothing
};

const ToolInfo& PackInfo();
void DefinePackOptions(CLI::App& app, PackOptions* options);

}  // namespace trainwright
