#include "lib/packing/shard_set_summary.h"

#include "lib/base/units.h"
#include "lib/formats/window_stride.h"

namespace trainwright {
namespace {

double Ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string Percent(double share) {
  return FormatFixed(100.0 * share, 2) + " %";
}

std::string ChunksOfTokens(const ShardSetSummary& summary) {
  const bool up_to = summary.header.mode == PackMode::kNone;
  return FormatNumberOf(summary.totals.chunks, "chunk") + " of " + (up_to ? "up to " : "") +
         std::to_string(summary.header.chunk_tokens) + " tokens";
}

nlohmann::ordered_json IdOrNull(uint32_t id) {
  return id == kNoId ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(id);
}

}  // namespace

void ShardSetSummary::AddShard(const ShardInfo& shard) {
  ++shards;
  size_bytes += shard.size_bytes;
  totals += shard.totals;
  for (const FrameEntry& frame : shard.frames) frames_bytes += frame.size_bytes;
}
double ShardSetSummary::bits_per_token() const {
  return 8.0 * Ratio(frames_bytes, totals.tokens);
}
double ShardSetSummary::padding_share() const {
  return Ratio(totals.pad_tokens, totals.tokens + totals.pad_tokens);
}
double ShardSetSummary::cut_share() const {
  return Ratio(totals.documents_cut, totals.documents);
}

nlohmann::ordered_json ToJson(const ShardSetSummary& summary) {
  const TokenizerIdentity& tokenizer = summary.header.tokenizer;
  nlohmann::ordered_json json = {
      {"records", RecordKindName(summary.header.record_kind)},
      {"chunk", summary.header.chunk_tokens},
      {"mode", PackModeName(summary.header.mode)},
      {"overflow", OverflowPolicyName(summary.header.overflow)},
      {"shards", summary.shards},
      {"chunks", summary.totals.chunks},
      {"docs", summary.totals.documents},
      {"tokens", summary.totals.tokens},
      {"pad_tokens", summary.totals.pad_tokens},
      {"docs_cut", summary.totals.documents_cut},
      {"tokens_dropped", summary.totals.tokens_dropped},
      {"source_bytes", summary.totals.source_bytes},
      {"size_bytes", summary.size_bytes},
      {"frames_bytes", summary.frames_bytes},
      {"bits_per_token", summary.bits_per_token()},
      {"vocab_size", tokenizer.vocab_size},
      {"bos_id", IdOrNull(tokenizer.bos_id)},
      {"eos_id", IdOrNull(tokenizer.eos_id)},
      {"pad_id", IdOrNull(tokenizer.pad_id)},
      {"tokenizer", tokenizer.kind},
      {"tokenizer_sha256", HexEncode(tokenizer.sha256)},
      {"content_sha256", HexEncode(summary.content_sha256)},
  };
  if (summary.header.id_codes) json["remap"] = true;
  if (const uint32_t stride = StrideOf(summary.header); stride != summary.header.chunk_tokens)
    json["stride"] = stride;
  if (summary.tokens_repeated) json["tokens_repeated"] = *summary.tokens_repeated;
  if (summary.header.record_kind == RecordKind::kSft) json["loss_tokens"] = summary.totals.loss_tokens;
  return json;
}

std::string OneLine(const ShardSetSummary& summary) {
  return FormatNumberOf(summary.totals.documents, "document") + " (" + Percent(summary.cut_share()) +
         " cut) in " + ChunksOfTokens(summary) + " (" + Percent(summary.padding_share()) + " padding), " +
         (summary.header.record_kind == RecordKind::kSft
              ? Percent(Ratio(summary.totals.loss_tokens, summary.totals.tokens)) +
                    " of the tokens predicted, "
              : "") +
         FormatNumberOf(summary.totals.tokens_dropped, "token") + " dropped, " +
         FormatFixed(summary.bits_per_token(), 2) + " bits/token";
}

std::string Describe(const ShardSetSummary& summary) {
  const ShardTotals& totals = summary.totals;
  std::string table;
  const auto row = [&](std::string label, const std::string& value) {
    label.resize(14, ' ');
    table += "  " + label + value + "\n";
  };
  row("chunks", ChunksOfTokens(summary) + ", mode " + PackModeName(summary.header.mode) + ", overflow " +
                    OverflowPolicyName(summary.header.overflow));
  row("documents", FormatGrouped(totals.documents) + ", " + FormatGrouped(totals.documents_cut) + " cut (" +
                       Percent(summary.cut_share()) + ")");
  row("tokens", FormatGrouped(totals.tokens) + ", " + FormatGrouped(totals.tokens_dropped) + " dropped");
  if (summary.tokens_repeated) {
    row("windows", "of long documents begin " + std::to_string(StrideOf(summary.header)) + " tokens apart, " +
                       FormatGrouped(*summary.tokens_repeated) + " tokens are repeats");
  }
  if (summary.header.record_kind == RecordKind::kSft) {
    row("predicted", FormatGrouped(totals.loss_tokens) + " tokens (" +
                         Percent(Ratio(totals.loss_tokens, totals.tokens)) + "): the records are sft");
  }
  row("padding", FormatGrouped(totals.pad_tokens) + " (" + Percent(summary.padding_share()) + ")");
  row("source text", FormatBytes(totals.source_bytes));
  row("size", FormatBytes(summary.size_bytes) + " in " + FormatNumberOf(summary.shards, "shard") + ", " +
                  FormatFixed(summary.bits_per_token(), 2) + " bits/token" +
                  (summary.header.id_codes ? ", ids coded by frequency" : ""));
  row("tokenizer", summary.header.tokenizer.kind + ", " + FormatGrouped(summary.header.tokenizer.vocab_size) +
                       " ids, sha256 " + HexEncode(summary.header.tokenizer.sha256));
  row("content", "sha256 " + HexEncode(summary.content_sha256));
  return table;
}

}  // namespace trainwright
