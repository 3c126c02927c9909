/// The whole of `pretokenize --decode`: token streams -> text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/formats/token_stream.h"
#include "lib/report/progress.h"

namespace trainwright {

struct DecodeJobOptions {
  std::vector<std::string> inputs = {"-"};  ///< token streams, plain or compressed; "-" is standard input
  std::string output = "-";
  /// {"doc":0,"text":"..."} a document instead of its text and a newline; of sft records with
  /// "segments":[{"loss":false,"tokens":12,"text":"..."},...]; of contrastive ones
  /// {"doc":0,"query":[I,T],"pos":[[I,T],...],"neg":[...]}, where I is what comes before the text T,
  /// instruction and template
  bool as_jsonl = false;
  uint64_t limit = 0;  ///< stop after this many documents; 0: none
};

/// Writes the text of every document, each by the tokenizer that its stream carries. BOS and EOS stand for no
/// text. Bytes that are not UTF-8 are kept in text and become U+FFFD in JSON, which cannot hold them. Memory:
/// the longest document.
/// \returns what was written
/// \throws Error{kBadInput} with the byte offset on a damaged stream; Error{kIo}
TokenStreamTotals RunDecode(const DecodeJobOptions& options, ProgressMode progress);

}  // namespace trainwright
