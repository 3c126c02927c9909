#include "lib/documents/chat_encoder.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

/// As the GRIT recipe cleans instructions, so that the template alone says what stands behind them.
std::string_view CleanInstruction(std::string_view instruction) {
  constexpr std::string_view kEnds = "\t\n :";
  instruction.remove_prefix(std::min(instruction.find_first_not_of(kEnds), instruction.size()));
  return instruction.substr(0, instruction.find_last_not_of(kEnds) + 1);
}

/// The special token of the tokenizer that `text` begins with, the longest; nullptr when there is none.
const SpecialToken* SpecialAt(std::string_view text, const std::vector<SpecialToken>& specials) {
  const SpecialToken* longest = nullptr;
  for (const SpecialToken& special : specials) {
    if (text.starts_with(special.text) &&
        (longest == nullptr || special.text.size() > longest->text.size())) {
      longest = &special;
    }
  }
  return longest;
}

/// Whether a piece of a literal is meant as a special token: "<|im_start|>" and its like.
size_t MarkSizeAt(std::string_view text) {
  if (!text.starts_with("<|")) return 0;
  const size_t end = text.find("|>");
  return end == std::string_view::npos || text.substr(0, end).find_first_of(" \n") != std::string_view::npos
             ? 0
             : end + 2;
}

/// The special token that the ids end with, if that is what the text ends with; else null.
const SpecialToken* SpecialBehind(std::string_view text, const std::vector<uint32_t>& ids,
                                  const std::vector<SpecialToken>& specials) {
  if (ids.empty()) return nullptr;
  const auto found = std::find_if(specials.begin(), specials.end(), [&](const SpecialToken& special) {
    return special.id == ids.back() && text.ends_with(special.text);
  });
  return found == specials.end() ? nullptr : &*found;
}

/// Appends the ids of text that comes behind a special token. What that does to it, a mark that it brings or
/// space that it takes, the tokenizer does if it sees both.
/// \returns false where the tokenizer makes another token of the two
bool EncodeBehind(const Tokenizer& tokenizer, const SpecialToken& special, std::string_view text,
                  std::vector<uint32_t>* ids) {
  std::vector<uint32_t> both;
  tokenizer.EncodeContinued(special.text + std::string(text), &both);
  if (both.empty() || both[0] != special.id) return false;
  ids->insert(ids->end(), both.begin() + 1, both.end());
  return true;
}

/// \throws Error{kUsage} where the template asks for an id that the tokenizer lacks
void RequireIdsOf(const ChatTemplate& chat_template, const TokenizerIdentity& identity) {
  const auto require = [&](uint32_t id, const std::string& slot) {
    if (id != kNoId) return;
    throw Error(ErrorCode::kUsage, "template " + chat_template.name,
                "has " + slot + ", and the tokenizer has no such id", "",
                "use a template without it, or write the mark as text in a template file");
  };
  for (const std::vector<TemplateItem>& items : chat_template.parts) {
    for (const TemplateItem& item : items) {
      if (item.kind == TemplateItem::Kind::kBos) require(identity.bos_id, "{bos}");
      if (item.kind == TemplateItem::Kind::kEos) require(identity.eos_id, "{eos}");
    }
  }
}

std::optional<DocumentProblem> CheckTurnsToLearn(const ChatRecord& record, bool last_turn_only) {
  if (auto problem = CheckTurns(record)) return problem;
  return CheckLearnt(record, last_turn_only);
}

/// Counts words where they are learnt: answers in the runs of theirs, all others in the first.
void CountSourceBytes(const ChatRecord& record, bool last_turn_only, std::vector<LossRun>* runs) {
  uint64_t answers = 0, others = 0;
  for (const ChatTurn& turn : record.turns) {
    const bool learnt = turn.role == ChatRole::kAssistant && turn.learnt &&
                        (!last_turn_only || &turn == &record.turns.back());
    (learnt ? answers : others) += turn.content.size() + turn.input.size();
  }
  for (const bool loss : {false, true}) {
    const auto run =
        std::find_if(runs->begin(), runs->end(), [&](const LossRun& each) { return each.loss == loss; });
    if (run != runs->end()) run->source_bytes = loss ? answers : others;
  }
}

}  // namespace

/// Ids and runs in the making.
struct ChatEncoder::Writer {
  EncodedChat* chat;
  bool at_start = true;                  // whether the next text begins a text
  const SpecialToken* behind = nullptr;  // that the text before ended with; null: no matter
  size_t content_end = 0;                // ids up to the last {content}

  void Append(const std::vector<uint32_t>& ids, bool loss) {
    chat->ids.insert(chat->ids.end(), ids.begin(), ids.end());
    AddToRun(ids.size(), 0, loss);
  }
  void AddToRun(uint64_t tokens, uint64_t source_bytes, bool loss) {
    if (tokens == 0 && source_bytes == 0) return;
    if (chat->runs.empty() || chat->runs.back().loss != loss) chat->runs.push_back({.loss = loss});
    chat->runs.back().tokens += tokens;
    chat->runs.back().source_bytes += source_bytes;
  }
};

ChatEncoder::ChatEncoder(ChatTemplate chat_template, const Tokenizer* tokenizer, ChatEncoderOptions options)
    : template_(std::move(chat_template)), tokenizer_(tokenizer), options_(options) {
  RequireIdsOf(template_, tokenizer_->identity());
  if (options_.add_bos && tokenizer_->identity().bos_id == kNoId) {
    throw Error(ErrorCode::kUsage, "--bos", "the tokenizer has no such id");
  }
  std::vector<std::string> forbidden;
  for (const SpecialToken& special : tokenizer_->special_tokens()) {
    if (special.matched_in_text && !special.is_word) forbidden.push_back(special.text);
  }
  forbidden_ = SpelledSpecials(std::move(forbidden));
  if (template_.is_jinja) {
    SetUpJinja();
    return;
  }
  TokenizeLiterals();

  bool after_content = false;
  const auto& assistant = template_.part(TemplatePart::kAssistant);
  for (size_t i = 0; i < assistant.size(); ++i) {
    const TemplateItem& item = assistant[i];
    if (item.kind == TemplateItem::Kind::kContent || item.kind == TemplateItem::Kind::kSpacedContent) {
      after_content = true;
    } else if (after_content && item.loss) {
      const std::vector<uint32_t>& ids =
          literal_ids_[static_cast<size_t>(TemplatePart::kAssistant)][i].elsewhere;
      answer_end_.insert(answer_end_.end(), ids.begin(), ids.end());
    }
  }
}

std::vector<uint32_t> ChatEncoder::EncodeLiteral(std::string_view text, bool at_start) {
  ++literal_tokenizations_;
  const std::vector<SpecialToken>& specials = tokenizer_->special_tokens();
  std::vector<uint32_t> ids;
  size_t begin = 0;
  const auto flush = [&](size_t end) {
    if (end == begin) return;
    const std::string_view part = text.substr(begin, end - begin);
    at_start ? tokenizer_->Encode(part, &ids) : tokenizer_->EncodeContinued(part, &ids);
    at_start = false;
  };
  for (size_t at = 0; at < text.size();) {
    const SpecialToken* special = SpecialAt(text.substr(at), specials);
    if (special == nullptr) {
      const size_t mark_bytes = MarkSizeAt(text.substr(at));
      const std::string mark(text.substr(at, mark_bytes));
      if (mark_bytes > 0 &&
          std::find(unknown_marks_.begin(), unknown_marks_.end(), mark) == unknown_marks_.end()) {
        unknown_marks_.push_back(mark);
      }
      at += std::max<size_t>(mark_bytes, 1);
      continue;
    }
    flush(at);
    ids.push_back(special->id);
    at_start = false;
    at += special->text.size();
    begin = at;
  }
  flush(text.size());
  return ids;
}

void ChatEncoder::TokenizeLiterals() {
  const TokenizerIdentity& identity = tokenizer_->identity();
  for (size_t part = 0; part < kTemplatePartCount; ++part) {
    const std::vector<TemplateItem>& items = template_.parts[part];
    std::vector<LiteralIds>& all = literal_ids_[part];
    all.resize(items.size());
    const bool may_begin = static_cast<TemplatePart>(part) != TemplatePart::kAssistant &&
                           static_cast<TemplatePart>(part) != TemplatePart::kInput &&
                           static_cast<TemplatePart>(part) != TemplatePart::kUserAfterSystem;
    bool begins = may_begin;  // whether the item may be the first of a text
    bool only_begins = false;
    for (size_t i = 0; i < items.size(); ++i) {
      switch (items[i].kind) {
        case TemplateItem::Kind::kBos:
          all[i].at_start = all[i].elsewhere = {identity.bos_id};
          begins = only_begins = true;
          break;
        case TemplateItem::Kind::kEos:
          all[i].at_start = all[i].elsewhere = {identity.eos_id};
          break;
        case TemplateItem::Kind::kLiteral:
          if (!only_begins || !tokenizer_->marks_start()) {
            ++literals_;
            all[i].elsewhere = EncodeLiteral(items[i].literal, false);
          }
          if (!tokenizer_->marks_start()) {
            all[i].at_start = all[i].elsewhere;
          } else if (begins) {
            ++literals_;
            all[i].at_start = EncodeLiteral(items[i].literal, true);
          }
          begins = only_begins = false;
          break;
        default:
          begins = only_begins = false;
      }
    }
  }
}

void ChatEncoder::WriteText(std::string_view text, Writer* writer) const {
  if (text.empty()) return;
  std::vector<uint32_t>* ids = &writer->chat->ids;
  ++writer->chat->tokenizer_calls;
  const SpecialToken* const behind = std::exchange(writer->behind, nullptr);
  if (std::exchange(writer->at_start, false)) return tokenizer_->Encode(text, ids);
  if (behind == nullptr || !EncodeBehind(*tokenizer_, *behind, text, ids)) {
    tokenizer_->EncodeContinued(text, ids);
  }
}

void ChatEncoder::WriteUnmatched(std::string_view text, Writer* writer) const {
  if (text.empty()) return;
  tokenizer_->EncodeUnmatched(text, /*continued=*/!writer->at_start, &writer->chat->ids);
  ++writer->chat->tokenizer_calls;
  writer->at_start = false;
  writer->behind = nullptr;
}

void ChatEncoder::WriteContent(std::string_view text, bool spaced, Writer* writer) const {
  std::string with_space;
  if (spaced) text = with_space.append(" ").append(text);
  if (text.empty()) return;
  size_t begin = 0;
  for (const SpecialCut& cut : forbidden_.CutsOf(text, {{0, text.size()}})) {
    WriteText(text.substr(begin, cut.at - cut.unmatched - begin), writer);
    WriteUnmatched(text.substr(cut.at - cut.unmatched, cut.unmatched), writer);
    begin = cut.at;
  }
  WriteText(text.substr(begin), writer);
}

void ChatEncoder::Write(TemplatePart part, const Said& said, bool loss, Writer* writer) const {
  const std::vector<TemplateItem>& items = template_.part(part);
  for (size_t i = 0; i < items.size(); ++i) {
    const TemplateItem& item = items[i];
    const bool item_loss = item.loss && loss;
    switch (item.kind) {
      case TemplateItem::Kind::kBos:
      case TemplateItem::Kind::kEos:
      case TemplateItem::Kind::kLiteral: {
        const LiteralIds& ids = literal_ids_[static_cast<size_t>(part)][i];
        writer->Append(writer->at_start && !ids.at_start.empty() ? ids.at_start : ids.elsewhere, item_loss);
        writer->at_start = item.kind == TemplateItem::Kind::kBos ||
                           (item.kind == TemplateItem::Kind::kEos && writer->at_start);
        break;
      }
      case TemplateItem::Kind::kContent:
      case TemplateItem::Kind::kSpacedContent: {
        std::string_view text = part == TemplatePart::kInput ? said.input : said.content;
        const bool of_turn = part != TemplatePart::kInstruction && part != TemplatePart::kText;
        if (of_turn && template_.trim[static_cast<size_t>(said.role)]) text = Trimmed(text);
        const size_t before = writer->chat->ids.size();
        WriteContent(text, said.spaced.value_or(item.kind == TemplateItem::Kind::kSpacedContent), writer);
        writer->content_end = writer->chat->ids.size();
        writer->AddToRun(writer->content_end - before, text.size(), item_loss);
        if (part != TemplatePart::kInput && !said.input.empty())
          Write(TemplatePart::kInput, said, false, writer);
        break;
      }
    }
  }
}

std::optional<DocumentProblem> ChatEncoder::WriteTurns(const ChatRecord& record, bool prompt,
                                                       EncodedChat* chat) const {
  chat->ids.clear();
  chat->runs.clear();
  chat->tokenizer_calls = 0;
  const std::vector<ChatTurn>& turns = record.turns;
  const bool has_system = turns[0].role == ChatRole::kSystem;
  if (has_system && !template_.has_system()) {
    return DocumentProblem{SkipReason::kBadTurns,
                           "has a system turn, for which the template " + template_.name + " has no place",
                           {},
                           "a member \"system\" beside the turns is one, too"};
  }
  Writer writer{chat};
  Write(TemplatePart::kBegin, {}, false, &writer);
  if (!has_system) {
    const bool input = !turns[0].input.empty();
    Write(input ? TemplatePart::kNoSystemWithInput : TemplatePart::kNoSystem, {}, false, &writer);
  }
  for (size_t i = 0; i < turns.size(); ++i) {
    const bool loss = turns[i].learnt && (!options_.last_turn_only || i + 1 == turns.size());
    const Said said = {.role = turns[i].role, .content = turns[i].content, .input = turns[i].input};
    switch (turns[i].role) {
      case ChatRole::kSystem:
        Write(TemplatePart::kSystem, said, false, &writer);
        break;
      case ChatRole::kUser:
        if (i > 1) Write(TemplatePart::kBetween, {}, false, &writer);
        Write(i == 1 && has_system ? TemplatePart::kUserAfterSystem : TemplatePart::kUser, said, false,
              &writer);
        break;
      case ChatRole::kAssistant:
        Write(TemplatePart::kAssistant, said, loss, &writer);
        break;
      case ChatRole::kOther:
        TRAINWRIGHT_CHECK(false);  // CheckTurns refused it
    }
  }
  if (prompt) {
    const std::vector<TemplateItem>& assistant = template_.part(TemplatePart::kAssistant);
    for (size_t i = 0; !assistant[i].loss; ++i) {
      const LiteralIds& ids = literal_ids_[static_cast<size_t>(TemplatePart::kAssistant)][i];
      writer.Append(writer.at_start && !ids.at_start.empty() ? ids.at_start : ids.elsewhere, false);
      writer.at_start = assistant[i].kind == TemplateItem::Kind::kBos;
    }
  }
  AddBos(chat);
  return std::nullopt;
}

void ChatEncoder::AddBos(EncodedChat* chat) const {
  const uint32_t bos = tokenizer_->identity().bos_id;
  if (!options_.add_bos || (!chat->ids.empty() && chat->ids[0] == bos)) return;
  chat->ids.insert(chat->ids.begin(), bos);
  if (chat->runs.empty() || chat->runs[0].loss) chat->runs.insert(chat->runs.begin(), {.loss = false});
  ++chat->runs[0].tokens;
}

void ChatEncoder::EncodeText(std::string_view instruction, std::string_view text, EncodedChat* chat) const {
  chat->ids.clear();
  chat->runs.clear();
  chat->tokenizer_calls = 0;
  Writer writer{chat};
  Write(TemplatePart::kBegin, {}, false, &writer);
  const bool keeps = template_.keeps_instruction;
  Said before = {.content = keeps ? instruction : CleanInstruction(instruction)}, said = {.content = text};
  const bool is_plain = before.content.empty();
  if (keeps && !is_plain && template_.JoinsInstruction()) {
    said.spaced = before.content.ends_with(' ') && !text.empty();
    if (*said.spaced) before.content.remove_suffix(1);
  }
  Write(is_plain ? TemplatePart::kNoInstruction : TemplatePart::kInstruction, before, true, &writer);
  Write(TemplatePart::kText, said, true, &writer);
  chat->tokens_after_text = chat->ids.size() - writer.content_end;
  AddBos(chat);
}

void ChatEncoder::SetUpJinja() {
  jinja_.emplace(template_, *tokenizer_, options_.prompts_only);
  for (const SpecialToken& special : tokenizer_->special_tokens()) {
    if (!special.text.empty()) (special.matched_in_text ? matched_ : unmatched_).push_back(special);
  }
  for (const bool with_tools : {false, true}) {
    EncodedChat end;
    Writer writer{&end, false};
    WriteMarked(jinja_->answer_end(with_tools), &writer);
    (with_tools ? answer_end_with_tools_ : answer_end_) = std::move(end.ids);
  }
}

void ChatEncoder::WriteMarked(std::string_view text, Writer* writer) const {
  const uint32_t bos = tokenizer_->identity().bos_id;
  size_t begin = 0;
  for (size_t at = 0; at < text.size() && !unmatched_.empty();) {
    const SpecialToken* special = SpecialAt(text.substr(at), unmatched_);
    if (special == nullptr) {
      ++at;
      continue;
    }
    WriteText(text.substr(begin, at - begin), writer);
    writer->chat->ids.push_back(special->id);
    writer->at_start = template_.MarksBehind(special->id == bos);
    writer->behind = nullptr;
    begin = at += special->text.size();
  }
  WriteText(text.substr(begin), writer);
}

void ChatEncoder::WriteRendered(const RenderedChat& rendered, EncodedChat* chat) const {
  chat->ids.clear();
  chat->runs.clear();
  chat->tokenizer_calls = 0;
  Writer writer{chat, template_.start_marks != StartMarks::kNone};
  const std::string_view text = rendered.text;
  auto cut = rendered.cuts.begin();
  size_t at = 0;
  const auto write_to = [&](size_t end, bool loss) {
    const size_t before = chat->ids.size();
    for (; cut != rendered.cuts.end() && cut->at <= end; ++cut) {
      const size_t unmatched = std::max<size_t>(at, cut->at - cut->unmatched);
      WriteMarked(text.substr(at, unmatched - at), &writer);
      WriteUnmatched(text.substr(unmatched, cut->at - unmatched), &writer);
      at = cut->at;
    }
    const std::string_view rest = text.substr(at, end - at);
    WriteMarked(rest, &writer);
    if (!rest.empty()) writer.behind = SpecialBehind(rest, chat->ids, matched_);
    at = end;
    writer.AddToRun(chat->ids.size() - before, 0, loss);
  };
  for (const jinja::Span& answer : rendered.answers) {
    write_to(answer.begin, false);
    write_to(answer.end, true);
  }
  write_to(text.size(), false);
}

std::optional<DocumentProblem> ChatEncoder::EncodeJinja(const ChatRecord& record, EncodedChat* chat) const {
  RenderedChat rendered;
  if (auto problem = jinja_->Render(record, options_.last_turn_only, &rendered)) return problem;
  WriteRendered(rendered, chat);
  AddBos(chat);
  CountSourceBytes(record, options_.last_turn_only, &chat->runs);
  return std::nullopt;
}

std::optional<DocumentProblem> ChatEncoder::Encode(const ChatRecord& record, EncodedChat* chat) const {
  if (jinja_) return EncodeJinja(record, chat);
  if (auto problem = CheckTurnsToLearn(record, options_.last_turn_only)) return problem;
  return WriteTurns(record, /*prompt=*/false, chat);
}

std::optional<DocumentProblem> ChatEncoder::EncodePrompt(const ChatRecord& record,
                                                         std::vector<uint32_t>* ids) const {
  if (jinja_) {
    RenderedChat rendered;
    EncodedChat chat;
    if (auto problem = jinja_->RenderPrompt(record, &rendered)) return problem;
    WriteRendered(rendered, &chat);
    AddBos(&chat);
    *ids = std::move(chat.ids);
    return std::nullopt;
  }
  ChatRecord answered = record;
  answered.turns.push_back({.role = ChatRole::kAssistant, .content = "?"});
  if (auto problem = CheckTurns(answered)) return problem;
  EncodedChat chat;
  if (auto problem = WriteTurns(record, /*prompt=*/true, &chat)) return problem;
  *ids = std::move(chat.ids);
  return std::nullopt;
}

}  // namespace trainwright
