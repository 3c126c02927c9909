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
  void Write(const std::string& text, const nlohmann::ordered_json& segments, uint64_t document) {
    if (as_jsonl_) {
      nlohmann::ordered_json line = {{"doc", document}, {"text", text}};
      if (!segments.empty()) line["segments"] = segments;
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

void AddToRuns(const DocumentPiece& piece, std::vector<LossRun>* runs) {
  if (runs->empty() || runs->back().loss != piece.loss) runs->push_back({.loss = piece.loss});
  runs->back().tokens += piece.tokens.size();
}

/// The text of each run: what it adds to the text before it, since a token's text can depend on that.
nlohmann::ordered_json SegmentsOf(std::span<const uint32_t> ids, const std::vector<LossRun>& runs,
                                  const Tokenizer& tokenizer) {
  nlohmann::ordered_json segments = nlohmann::ordered_json::array();
  std::string before;
  size_t end = 0;
  for (const LossRun& run : runs) {
    end += run.tokens;
    const std::string whole = tokenizer.Decode(ids.first(end));
    const bool grows = whole.starts_with(before);
    segments.push_back({{"loss", run.loss},
                        {"tokens", run.tokens},
                        {"text", grows ? whole.substr(before.size())
                                       : tokenizer.Decode(ids.subspan(end - run.tokens, run.tokens))}});
    before = whole;
  }
  return segments;
}

}  // namespace

TokenStreamTotals RunDecode(const DecodeJobOptions& options, ProgressMode progress_mode) {
  const auto sink = OpenSink(options.output, false, true);
  TextOutput output(sink.get(), options.as_jsonl);
  Progress progress(progress_mode, "decode", options.limit, "documents");
  TokenStreamTotals totals;
  const auto at_limit = [&] { return options.limit > 0 && totals.documents == options.limit; };
  std::vector<uint32_t> ids;
  std::vector<LossRun> runs;
  for (const std::string& path : options.inputs) {
    if (at_limit()) break;
    TokenStreamReader reader(DecompressIfNeeded(OpenSource(path)));
    const auto tokenizer = TokenizerFromIdentity(reader.header().tokenizer);
    const bool has_segments = options.as_jsonl && reader.header().record_kind == RecordKind::kSft;
    DocumentPiece piece;
    while (!at_limit() && reader.Next(&piece)) {
      ThrowIfStopped();
      ids.insert(ids.end(), piece.tokens.begin(), piece.tokens.end());
      if (has_segments) AddToRuns(piece, &runs);
      totals.tokens += piece.tokens.size();
      totals.source_bytes += piece.source_bytes;
      if (!piece.ends) continue;
      output.Write(tokenizer->Decode(ids), SegmentsOf(ids, runs, *tokenizer), totals.documents);
      ids.clear();
      runs.clear();
      ++totals.documents;
      progress.Update(totals.documents);
    }
  }
  output.Flush();
  sink->Commit();
  return totals;
}

}  // namespace trainwright
