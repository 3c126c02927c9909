#include "lib/data/decode_job.h"

#include <nlohmann/json.hpp>

#include "lib/base/signals.h"
#include "lib/data/document_output.h"
#include "lib/io/byte_sink.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {
namespace {

class TextOutput {
 public:
  TextOutput(ByteSink* sink, bool as_jsonl) : writer_(sink), as_jsonl_(as_jsonl) {}
  void Write(const std::string& text, uint64_t document) {
    if (as_jsonl_) {
      const nlohmann::ordered_json line = {{"doc", document}, {"text", text}};
      writer_.Write(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    } else {
      writer_.Write(text);
    }
    writer_.Write("\n");
  }
  void Flush() { writer_.Flush(); }

 private:
  TextWriter writer_;
  const bool as_jsonl_;
};

}  // namespace

TokenStreamTotals RunDecode(const DecodeJobOptions& options, ProgressMode progress_mode) {
  const auto sink = OpenSink(options.output, false, true);
  TextOutput output(sink.get(), options.as_jsonl);
  Progress progress(progress_mode, "decode", options.limit, "documents");
  TokenStreamTotals totals;
  const auto at_limit = [&] { return options.limit > 0 && totals.documents == options.limit; };
  std::vector<uint32_t> ids;
  for (const std::string& path : options.inputs) {
    if (at_limit()) break;
    TokenStreamReader reader(DecompressIfNeeded(OpenSource(path)));
    const auto tokenizer = TokenizerFromIdentity(reader.header().tokenizer);
    DocumentPiece piece;
    while (!at_limit() && reader.Next(&piece)) {
      ThrowIfStopped();
      ids.insert(ids.end(), piece.tokens.begin(), piece.tokens.end());
      totals.tokens += piece.tokens.size();
      totals.source_bytes += piece.source_bytes;
      if (!piece.ends) continue;
      output.Write(tokenizer->Decode(ids), totals.documents);
      ids.clear();
      ++totals.documents;
      progress.Update(totals.documents);
    }
  }
  output.Flush();
  sink->Commit();
  return totals;
}

}  // namespace trainwright
