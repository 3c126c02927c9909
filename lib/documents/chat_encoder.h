/// Conversations to token ids, with what is predicted known exactly: every literal of the template and every
/// turn is cut into tokens by itself and laid end to end, so that no token stands for text of two of them.
///
/// Literals are tokenised once, at construction; special tokens of the tokenizer that a literal spells out
/// become their ids. What turns say is text whatever it spells: a special token in it is cut like any other
/// text. A mark that the tokenizer puts at the beginning of a text (SentencePiece's dummy prefix) is put
/// before the first text of a conversation and before the first text after {bos}, nowhere else; by a template
/// in Jinja, where its folder asks for it (ChatTemplate::start_marks).
///
/// A template in Jinja (jinja_chat.h) is rendered instead, and cut into tokens at once between the bounds of
/// the answers, so that an answer begins with the same token after training's prompt as after inference's.
///
/// Immutable after construction and thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/documents/chat_record.h"
#include "lib/documents/chat_template.h"
#include "lib/documents/document_output.h"
#include "lib/documents/jinja_chats.h"
#include "lib/documents/spelled_specials.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

struct EncodedChat {
  std::vector<uint32_t> ids;
  std::vector<LossRun> runs;       ///< neighbours differ in `loss`
  uint64_t tokenizer_calls = 0;    ///< for what the turns say
  uint64_t tokens_after_text = 0;  ///< of EncodeText: what the template writes after the text
};

struct ChatEncoderOptions {
  bool add_bos = false;         ///< put BOS before a conversation that does not begin with it
  bool last_turn_only = false;  ///< only the last answer is predicted
  bool prompts_only = false;    ///< EncodePrompt alone is asked: prompts may begin answers as they will
};

class ChatEncoder {
 public:
  /// \param tokenizer outlives the encoder
  /// \throws Error{kUsage} when the template asks for a BOS or EOS that the tokenizer lacks
  ChatEncoder(ChatTemplate chat_template, const Tokenizer* tokenizer, ChatEncoderOptions options = {});

  /// \returns why the conversation does not fit the template, or nullopt
  std::optional<DocumentProblem> Encode(const ChatRecord& record, EncodedChat* chat) const;
  /// The ids after which the model answers: what Encode gives before the answer's first token. The last turn
  /// of `record` must be the user's.
  std::optional<DocumentProblem> EncodePrompt(const ChatRecord& record, std::vector<uint32_t>* ids) const;
  /// A text of a contrastive record: `runs` are its instruction and what is pooled, or the latter alone. The
  /// instruction loses tabs, newlines, spaces and colons at its ends, unless the template keeps it. Text
  /// without a token has no pooled run, unless its instruction is pooled.
  void EncodeText(std::string_view instruction, std::string_view text, EncodedChat* chat) const;
  /// What ends an answer in training: the ids between {content} and ], for generation to stop at. May be
  /// empty.
  /// \param with_tools of a conversation with tools, for which a model may have a template of its own
  const std::vector<uint32_t>& answer_end(bool with_tools = false) const {
    return with_tools && jinja_ ? answer_end_with_tools_ : answer_end_;
  }

  const ChatTemplate& chat_template() const { return template_; }
  /// How many literals there are, counting twice those that may be at the beginning of a text and
  /// elsewhere where that makes a difference; and how often one was tokenised: the same number, however many
  /// conversations.
  size_t literals() const { return literals_; }
  size_t literal_tokenizations() const { return literal_tokenizations_; }
  /// Literals that look like special tokens and are not among the tokenizer's: text to the model.
  const std::vector<std::string>& unknown_marks() const { return unknown_marks_; }

 private:
  /// The ids of a literal, at the beginning of a text and elsewhere.
  struct LiteralIds {
    std::vector<uint32_t> at_start, elsewhere;
  };
  /// What a part of the template is written with; what it refers to is not copied.
  struct Said {
    ChatRole role = ChatRole::kUser;
    std::string_view content = {}, input = {};  ///< as of ChatTurn
    std::optional<bool> spaced = {};            ///< with a space before it; none: as the template says
  };
  struct Writer;

  std::vector<uint32_t> EncodeLiteral(std::string_view text, bool at_start);
  void SetUpJinja();
  std::optional<DocumentProblem> EncodeJinja(const ChatRecord& record, EncodedChat* chat) const;
  void WriteRendered(const RenderedChat& rendered, EncodedChat* chat) const;
  void WriteText(std::string_view text, Writer* writer) const;
  /// What spells a special token is text like any other.
  void WriteUnmatched(std::string_view text, Writer* writer) const;
  void WriteMarked(std::string_view text, Writer* writer) const;
  void TokenizeLiterals();
  void Write(TemplatePart part, const Said& said, bool loss, Writer* writer) const;
  void WriteContent(std::string_view text, bool spaced, Writer* writer) const;
  void AddBos(EncodedChat* chat) const;
  /// All turns; of the last one, when it is the user's, and `prompt`, also the beginning of the answer.
  std::optional<DocumentProblem> WriteTurns(const ChatRecord& record, bool prompt, EncodedChat* chat) const;

  ChatTemplate template_;
  const Tokenizer* tokenizer_;
  ChatEncoderOptions options_;
  SpelledSpecials forbidden_{{}};  // in what turns say: the tokenizer would take them for special tokens
  std::array<std::vector<LiteralIds>, kTemplatePartCount> literal_ids_;  // by part and item
  std::optional<JinjaChats> jinja_;
  std::vector<SpecialToken> matched_, unmatched_;  // special tokens that the tokenizer knows in text, or not
  std::vector<uint32_t> answer_end_, answer_end_with_tools_;
  size_t literals_ = 0, literal_tokenizations_ = 0;
  std::vector<std::string> unknown_marks_;
};

}  // namespace trainwright
