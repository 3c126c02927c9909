/// The command line of `pretokenize`.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/cli/tool.h"

namespace trainwright {

struct PretokenizeOptions {
  std::vector<std::string> inputs;  ///< empty: standard input, unless there is a list
  std::string files_from, slice, lines;
  std::string output = "-";
  bool force = false;
  std::string to = "tokens";
  std::string tokenizer = "bytes";
  bool names_tokenizer = false;  // else it is the default
  std::string records = "lm";
  std::string chat_template;  ///< empty: that of the records
  std::string prompt_key, response_key;
  std::string loss_turns = "all";
  uint64_t query_max_tokens = 0, passage_max_tokens = 0;
  uint64_t max_chars = 0, max_record_tokens = 0;
  bool bos = false, eos = false, no_eos = false;
  uint64_t verify = 0;
  std::string format = "auto";
  std::vector<std::string> keys;  ///< empty: "text"
  std::string max_document = "1GiB";
  uint64_t limit = 0;
  std::string on_error = "fail";
  std::string invalid_utf8 = "error";
  std::string holdout = "0";
  std::string holdout_output;
  int threads = 0;  ///< 0: one a CPU
  bool decode = false;
};

const ToolInfo& PretokenizeInfo();
void DefinePretokenizeOptions(CLI::App& app, PretokenizeOptions* options);

}  // namespace trainwright
