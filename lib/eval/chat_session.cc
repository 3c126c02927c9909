#include "lib/eval/chat_session.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr size_t kLongestLineBytes = size_t{1} << 20;

}  // namespace

ChatSession::ChatSession(const std::string& system, std::unique_ptr<ByteSource> source, bool invites)
    : source_(std::move(source)), invites_(invites) {
  if (!system.empty())
    conversation_.turns.push_back({.role = ChatRole::kSystem, .content = system, .input = {}});
}

std::optional<std::string> ChatSession::ReadLine() {
  for (;;) {
    if (const size_t end = rest_.find('\n'); end != std::string::npos) {
      std::string line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      ++line_;
      return line;
    }
    if (rest_.size() > kLongestLineBytes) {
      throw Error(ErrorCode::kBadInput, source_->name(), "has a line of more than 1 MiB",
                  "line " + std::to_string(line_ + 1));
    }
    if (ended_) return rest_.empty() ? std::nullopt : std::optional(std::exchange(rest_, {}));
    std::vector<uint8_t> bytes(4096);
    bytes.resize(source_->Read(bytes.data(), bytes.size()));
    ended_ = bytes.empty();
    rest_ += AsText(bytes);
  }
}

bool ChatSession::AskNext() {
  for (;;) {
    if (invites_) std::fputs("> ", stderr);
    std::optional<std::string> line = ReadLine();
    if (!line) return false;
    if (line->ends_with('\r')) line->pop_back();
    if (IsBlank(*line)) continue;
    said_ += *line + "\n";
    conversation_.turns.push_back({.role = ChatRole::kUser, .content = *std::move(line), .input = {}});
    return true;
  }
}

void ChatSession::Answer(const std::string& text) {
  if (IsBlank(text)) {
    conversation_.turns.pop_back();
    return;
  }
  conversation_.turns.push_back({.role = ChatRole::kAssistant, .content = text, .input = {}});
}

nlohmann::ordered_json ChatSession::messages() const {
  auto messages = nlohmann::ordered_json::array();
  for (const ChatTurn& turn : conversation_.turns) {
    messages.push_back({{"role", NameOf(turn.role)}, {"content", turn.content}});
  }
  return messages;
}

nlohmann::ordered_json ChatSession::identity() const {
  return {{"path", nullptr}, {"sha256", HexEncode(Sha256Of(AsBytes(said_)))}};
}

}  // namespace trainwright
