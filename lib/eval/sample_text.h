/// The text of a sample while its ids come: each id is decoded twice, with the few before it, however many
/// there were, so that a sample costs time linear in its length.
///
/// What the text of an id is can depend on ids after it: a character of several byte tokens is U+FFFD until
/// its last one is there, and with the ByteFallback of a tokenizer.json file a whole run of byte tokens is,
/// unless all of it is UTF-8. Until that is decided the text is open; what is settled never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tok/tokenizer.h"

namespace trainwright {

/// Not thread-safe.
class SampleText {
 public:
  /// \param tokenizer outlives this
  /// \param prompt ids that the sample goes on from; may be empty
  SampleText(const Tokenizer* tokenizer, std::span<const uint32_t> prompt);

  /// \throws Error{kBadInput} on an id that is not in the vocabulary
  void Add(uint32_t id);

  /// A prefix of the text that all ids, also those yet to come, are decoded to.
  const std::string& settled() const { return settled_; }
  /// What follows should the run of byte tokens end here and be UTF-8; empty within a character.
  std::string_view open() const;
  /// Ids whose text is open.
  size_t open_ids() const { return pending_ends_.size(); }

  /// How many of the first ids have no text after the first `size` bytes of what is settled or open.
  size_t IdsWithin(size_t size) const;

 private:
  /// The end of the prompt, as far as the text of the sample's first ids can depend on it.
  void BeginBehind(std::span<const uint32_t> prompt);
  void AddByte(uint32_t id, char byte);
  void AddByteOfRun(uint32_t id, char byte);
  /// Decodes the first `count` of the pending ids for good.
  void Settle(size_t count);
  void ForgetPending(size_t count);

  const Tokenizer* tokenizer_;
  std::vector<uint32_t> context_;     // ids before the pending ones, with which those are decoded
  std::string context_text_;          // what these are decoded to
  std::vector<uint32_t> pending_;     // not settled; without those that have no text
  std::string run_;                   // bytes of the pending ids, all of which are byte tokens
  std::vector<size_t> pending_ends_;  // of all ids not settled: how many bytes of run_ there are up to them
  size_t valid_ = 0;                  // bytes of run_ in whole characters, where a run is decoded as a whole
  bool is_spoilt_ = false;            // the run that is going on is not UTF-8
  std::string settled_;
  std::vector<size_t> text_ends_;  // of each id that is settled, in bytes
};

}  // namespace trainwright
