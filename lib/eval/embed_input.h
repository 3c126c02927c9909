/// The texts that `embed` reads: lines, or JSON lines with instruction, role, title and id.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/documents/contrastive_example.h"
#include "lib/documents/record_reader.h"

namespace trainwright {

/// What texts have that say nothing else.
struct EmbedDefaults {
  std::string instruction;
  TextRole role = TextRole::kPositive;
};

struct EmbedText {
  std::optional<std::string> id;
  InstructedText text;
  JsonPlace place;
};

/// Reads texts one after the other; gzip and zstd content is decompressed. Not thread-safe.
///
/// Every line is a text, an empty one too. A JSON line is {"text"} and perhaps "title", which comes before
/// the text, "instruction", "role" (query or passage) and "_id" or "id".
class EmbedInput {
 public:
  /// \param path "-" is standard input
  /// \param format "auto", "lines" or "jsonl"
  /// \throws Error{kUsage, kIo}
  EmbedInput(const std::string& path, const std::string& format, EmbedDefaults defaults);

  /// \returns false after the last
  /// \throws Error{kBadInput} naming the line: no such text, not UTF-8, an id where the first text has none
  ///     or the other way round; Error{kIo, kInterrupted, kTerminated}
  [[nodiscard]] bool Next(EmbedText* text);
  uint64_t texts() const { return texts_; }
  /// How many of them have the id of one before them. Takes time by their number, and 8 bytes for each.
  uint64_t CountRepeatedIds() const;
  /// Of the records so far, a newline after each, in hexadecimal.
  std::string consumed_sha256() const { return HexEncode(consumed_.Digest()); }
  /// {"path", "sha256"} of the bytes read, as they are stored; whole once Next returned false.
  nlohmann::ordered_json identity() const;
  /// Progress, in bytes as they are stored; the total is 0 where nobody knows.
  uint64_t bytes_read() const { return reader_.stored_bytes_read(); }
  uint64_t bytes_total() const { return reader_.stored_bytes_total(); }

 private:
  void WarnOfJson(std::string_view record) const;
  void ReadObject(std::string_view record, EmbedText* text) const;

  std::string path_;
  InputFormat format_;
  bool is_guessed_;  // the format
  EmbedDefaults defaults_;
  RecordReader reader_;
  uint64_t texts_ = 0;
  bool has_ids_ = false;             // of the first text
  std::vector<uint64_t> id_hashes_;  // of 64 bits: a false alarm takes billions of texts
  Sha256 consumed_;
};

}  // namespace trainwright
