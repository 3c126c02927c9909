/// A conversation of `generate --chat`: a line of standard input is what the user says, a sample what the
/// assistant answers.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/base/checksum.h"
#include "lib/documents/chat_record.h"
#include "lib/io/byte_source.h"

namespace trainwright {

/// Not thread-safe.
class ChatSession {
 public:
  /// \param system what the system turn says; empty: none
  /// \param source of lines
  /// \param invites whether a mark on standard error asks for each line, as on a terminal
  ChatSession(const std::string& system, std::unique_ptr<ByteSource> source, bool invites);

  /// Adds what the user says next; empty lines say nothing.
  /// \returns whether there was a line
  /// \throws Error{kBadInput} naming a line above 1 MiB; what the source throws
  bool AskNext();
  /// Adds the answer to what was asked last; of a blank one neither is kept, since no template takes it.
  void Answer(const std::string& text);
  /// Ends with the user's turn once asked, with the assistant's once answered.
  const ChatRecord& conversation() const { return conversation_; }
  /// The turns as {"role", "content"}.
  nlohmann::ordered_json messages() const;
  /// {"path": null, "sha256"} of what the user said.
  nlohmann::ordered_json identity() const;

 private:
  std::optional<std::string> ReadLine();

  std::unique_ptr<ByteSource> source_;
  bool invites_;
  std::string rest_;  // read and not yet taken
  bool ended_ = false;
  uint64_t line_ = 0;
  std::string said_;  // lines of the user
  ChatRecord conversation_;
};

}  // namespace trainwright
