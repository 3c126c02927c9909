#include "lib/documents/decode_job.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/signals.h"
#include "lib/documents/document_output.h"
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
      WriteLine(line);
    } else {
      writer_.Write(text);
      writer_.Write("\n");
    }
  }
  void WriteLine(const nlohmann::ordered_json& line) {
    writer_.Write(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    writer_.Write("\n");
  }
  void Flush() { writer_.Flush(); }

 private:
  TextWriter writer_;
  const bool as_jsonl_;
};

void AddToRuns(const DocumentPiece& piece, std::vector<LossRun>* runs) {
  if (runs->empty() || runs->back().loss != piece.loss || piece.begins_text)
    runs->push_back({.loss = piece.loss, .begins_text = piece.begins_text, .role = piece.role});
  runs->back().tokens += piece.tokens.size();
}

/// The texts of a document's runs, one after another: what each adds to the text before it, since a token's
/// text can depend on that.
class RunTexts {
 public:
  /// \param text that all ids decode to
  /// All outlive this.
  RunTexts(std::span<const uint32_t> ids, const std::string& text, const Tokenizer& tokenizer)
      : ids_(ids), text_(text), tokenizer_(tokenizer) {}

  /// The text of the run of so many tokens behind those before.
  std::string Next(size_t tokens) {
    const size_t context = std::min(end_, kContextIds);
    end_ += tokens;
    // What few ids decode to is what all do, where it stands in the whole text: that a run costs the decoding
    // of all before it would make a document of many quadratic.
    const Added near = AddedBy(ids_.subspan(end_ - tokens - context, context + tokens), tokens);
    if (near.grows && near.bytes_before > 0 && ComesNext(near.text)) {
      begin_byte_ += near.text.size();
      return near.text;
    }
    const Added added = AddedBy(ids_.first(end_), tokens);
    begin_byte_ = added.bytes;
    return added.text;
  }

 private:
  struct Added {
    std::string text;
    bool grows = false;  ///< `text` is what follows the text of the ids before; else it is decoded by itself
    size_t bytes_before = 0, bytes = 0;  ///< without the last ids, with them
  };

  /// Of the last ids of some.
  Added AddedBy(std::span<const uint32_t> ids, size_t tokens) const {
    const std::string before = tokenizer_.Decode(ids.first(ids.size() - tokens));
    const std::string whole = tokenizer_.Decode(ids);
    const bool grows = whole.starts_with(before);
    return {.text = grows ? whole.substr(before.size()) : tokenizer_.Decode(ids.last(tokens)),
            .grows = grows,
            .bytes_before = before.size(),
            .bytes = whole.size()};
  }

  bool ComesNext(std::string_view text) const {
    if (begin_byte_ > text_.size() || !std::string_view(text_).substr(begin_byte_).starts_with(text)) {
      return false;
    }
    return end_ < ids_.size() || begin_byte_ + text.size() == text_.size();
  }

  static constexpr size_t kContextIds = 32;  // what a token's text can depend on, and more

  const std::span<const uint32_t> ids_;
  const std::string& text_;
  const Tokenizer& tokenizer_;
  size_t end_ = 0;         // ids whose texts were given
  size_t begin_byte_ = 0;  // where in text_ the next one is to begin
};

nlohmann::ordered_json SegmentsOf(std::span<const uint32_t> ids, const std::string& text,
                                  const std::vector<LossRun>& runs, const Tokenizer& tokenizer) {
  nlohmann::ordered_json segments = nlohmann::ordered_json::array();
  RunTexts texts(ids, text, tokenizer);
  for (const LossRun& run : runs) {
    segments.push_back({{"loss", run.loss}, {"tokens", run.tokens}, {"text", texts.Next(run.tokens)}});
  }
  return segments;
}

/// A contrastive record: its texts as [what stands before it, text], or a line each.
void WriteRecord(std::span<const uint32_t> ids, std::span<const LossRun> runs, const Tokenizer& tokenizer,
                 uint64_t document, bool as_jsonl, TextOutput* output) {
  nlohmann::ordered_json line = {{"doc", document},
                                 {"query", nullptr},
                                 {"pos", nlohmann::ordered_json::array()},
                                 {"neg", nlohmann::ordered_json::array()}};
  while (!runs.empty()) {
    const size_t count = runs.front().loss ? 1 : 2;
    const uint64_t instruction = count == 2 ? runs.front().tokens : 0;
    const uint64_t tokens = instruction + runs[count - 1].tokens;
    const std::string whole = tokenizer.Decode(ids.first(tokens));
    const std::string before = tokenizer.Decode(ids.first(instruction));
    const TextRole role = runs.front().role;
    if (!as_jsonl) {
      output->Write(whole, nullptr, document);
    } else {
      const std::string text = whole.starts_with(before)
                                   ? whole.substr(before.size())
                                   : tokenizer.Decode(ids.subspan(instruction, tokens - instruction));
      const nlohmann::ordered_json pair = {before, text};
      if (role == TextRole::kQuery) {
        line["query"] = pair;
      } else {
        line[TextRoleName(role)].push_back(pair);
      }
    }
    ids = ids.subspan(tokens);
    runs = runs.subspan(count);
  }
  if (as_jsonl) output->WriteLine(line);
}

}  // namespace

TokenStreamTotals RunDecode(const DecodeJobOptions& options, ProgressMode progress_mode) {
  RefuseToReplaceInputs(options.output, options.inputs);
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
    const bool contrastive = reader.header().record_kind == RecordKind::kContrastive;
    const bool has_segments =
        contrastive || (options.as_jsonl && reader.header().record_kind == RecordKind::kSft);
    DocumentPiece piece;
    while (!at_limit() && reader.Next(&piece)) {
      ThrowIfStopped();
      ids.insert(ids.end(), piece.tokens.begin(), piece.tokens.end());
      if (has_segments) AddToRuns(piece, &runs);
      totals.tokens += piece.tokens.size();
      totals.source_bytes += piece.source_bytes;
      if (!piece.ends) continue;
      if (contrastive) {
        WriteRecord(ids, runs, *tokenizer, totals.documents, options.as_jsonl, &output);
      } else {
        const std::string text = tokenizer->Decode(ids);
        output.Write(text, SegmentsOf(ids, text, runs, *tokenizer), totals.documents);
      }
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
