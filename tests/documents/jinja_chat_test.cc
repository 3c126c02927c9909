// Conversations by templates in Jinja: what the template writes, and which of it is the assistant's.
#include "lib/documents/jinja_chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/documents/chat_encoder.h"
#include "lib/documents/folder_template.h"
#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr char kChatMl[] =
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
// As of Llama 2: answers are trimmed, and their prompt adds nothing.
constexpr char kBrackets[] =
    "{% for m in messages %}{% if m.role == 'user' %}{{ bos_token + '[INST] ' + m.content.strip() + ' "
    "[/INST]' }}"
    "{% elif m.role == 'assistant' %}{{ ' ' + m.content.strip() + ' ' + eos_token }}{% else %}"
    "{{ raise_exception('only user and assistant') }}{% endif %}{% endfor %}";
constexpr char kGeneration[] =
    "{% for m in messages %}{{ m.role + ': ' }}{% if m.role == 'assistant' %}{% generation %}{{ m.content + "
    "'!' }}"
    "{% endgeneration %}{% else %}{{ m.content }}{% endif %}{{ '\n' }}{% endfor %}";

/// Bytes, with control tokens that a test names.
class MarkedTokenizer final : public Tokenizer {
 public:
  MarkedTokenizer() : bytes_(LoadTokenizer("bytes")), identity_(bytes_->identity()) {
    uint32_t id = identity_.vocab_size;
    for (const char* text : {"<s>", "</s>", "<|im_start|>", "<|im_end|>"})
      specials_.push_back({text, id++, false});
    identity_.bos_id = specials_[0].id;
    identity_.eos_id = specials_[1].id;
    identity_.vocab_size = id;
  }
  void Encode(std::string_view text, std::vector<uint32_t>* ids) const override { bytes_->Encode(text, ids); }
  const std::vector<SpecialToken>& special_tokens() const override { return specials_; }
  std::string Decode(std::span<const uint32_t> ids) const override {
    std::string text;
    for (const uint32_t id : ids) {
      text += id >= specials_[0].id ? specials_[id - specials_[0].id].text : bytes_->Decode({&id, 1});
    }
    return text;
  }
  const TokenizerIdentity& identity() const override { return identity_; }
  bool IsSpecial(uint32_t id) const { return id >= specials_[0].id; }

 private:
  std::unique_ptr<Tokenizer> bytes_;
  TokenizerIdentity identity_;
  std::vector<SpecialToken> specials_;
};

ChatTemplate JinjaOf(const char* source) {
  ChatTemplate chat_template;
  chat_template.name = "t";
  chat_template.text = source;
  chat_template.is_jinja = true;
  return chat_template;
}

ChatRecord RecordOf(const std::string& line, bool prompt = false) {
  ChatRecordReader reader({.prompt_key = "", .response_key = "", .whole_turns = true});
  ChatRecord record;
  const auto problem = prompt ? reader.ReadPrompt(line, &record) : reader.Read(line, &record);
  EXPECT_FALSE(problem.has_value()) << problem->problem;
  return record;
}

class JinjaChatTest : public ::testing::Test {
 protected:
  /// The text of all tokens, those that are predicted in brackets; or the problem.
  std::string Shown(const char* source, const std::string& line, bool last_only = false) const {
    const ChatEncoder encoder(JinjaOf(source), &tokenizer_, {.last_turn_only = last_only});
    EncodedChat chat;
    if (const auto problem = encoder.Encode(RecordOf(line), &chat)) return problem->problem;
    std::string shown;
    size_t at = 0;
    for (const LossRun& run : chat.runs) {
      const std::string text = tokenizer_.Decode(std::span(chat.ids).subspan(at, run.tokens));
      shown += run.loss ? "{" + text + "}" : text;
      at += run.tokens;
    }
    EXPECT_EQ(at, chat.ids.size());
    return shown;
  }

  MarkedTokenizer tokenizer_;
};

constexpr char kTwoAnswers[] =
    R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": " b "},
        {"role": "user", "content": "b"}, {"role": "assistant", "content": "ba"}]})";

TEST_F(JinjaChatTest, AnswersAreTheirWordsAndTheEndMark) {
  EXPECT_EQ(Shown(kChatMl, kTwoAnswers),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n{ b <|im_end|>}\n"
            "<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n{ba<|im_end|>}\n");
  EXPECT_EQ(Shown(kBrackets, kTwoAnswers), "<s>[INST] a [/INST]{ b </s>}<s>[INST] b [/INST]{ ba </s>}");
}

TEST_F(JinjaChatTest, AConversationThatEndsWithAnAnswerWithoutWordsCallsOrThoughtsIsAnEmptyResponse) {
  const auto ends_with = [](const std::string& members) {
    return R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant")" + members + "}]}";
  };
  const ChatEncoder encoder(JinjaOf(kChatMl), &tokenizer_);
  EncodedChat chat;
  for (const char* members : {R"(, "content": "")", R"(, "content": " \n", "tool_calls": [])",
                              R"(, "content": "", "reasoning_content": null)"}) {
    const auto problem = encoder.Encode(RecordOf(ends_with(members)), &chat);
    ASSERT_TRUE(problem) << members;
    EXPECT_EQ(problem->reason, SkipReason::kEmptyResponse) << members;
  }
}

TEST_F(JinjaChatTest, OnlyTheLastAnswerIsPredictedWhereThatIsAsked) {
  EXPECT_EQ(Shown(kBrackets, kTwoAnswers, true), "<s>[INST] a [/INST] b </s><s>[INST] b [/INST]{ ba </s>}");
  EXPECT_EQ(Shown(kGeneration, kTwoAnswers, true), "user: a\nassistant:  b !\nuser: b\nassistant: {ba!}\n");
}

TEST_F(JinjaChatTest, GenerationMarksTellWhatIsPredicted) {
  EXPECT_EQ(Shown(kGeneration, kTwoAnswers), "user: a\nassistant: { b !}\nuser: b\nassistant: {ba!}\n");
}

TEST_F(JinjaChatTest, AnAnswerOfWeightNothingIsReadAndNotPredicted) {
  constexpr char kWeighed[] =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 0},
          {"role": "user", "content": "b"}, {"role": "assistant", "content": "ba", "weight": 1}]})";
  EXPECT_EQ(Shown(kChatMl, kWeighed),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
            "<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n{ba<|im_end|>}\n");
  EXPECT_EQ(Shown(kGeneration, kWeighed), "user: a\nassistant: b!\nuser: b\nassistant: {ba!}\n");
}

TEST_F(JinjaChatTest, WhereAnswersAreNotMarkedOneByOneWeightsAreRefused) {
  constexpr char kTwoBlocks[] =
      "{% for m in messages %}{{ m.role + ':' }}{% generation %}{{ m.content }}{% endgeneration %}"
      "{% endfor %}";
  EXPECT_THAT(
      Shown(
          kTwoBlocks,
          R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 0},
                {"role": "user", "content": "b"}, {"role": "assistant", "content": "c"}]})"),
      testing::HasSubstr("does not mark each answer by one {% generation %} block"));
}

// As of Qwen 2.5: turns of roles that it does not know are left out.
constexpr char kOfKnownRoles[] =
    "{% for m in messages %}{% if m.role == 'assistant' and m.tool_calls %}{% for c in m.tool_calls %}"
    "{{ c.function.name + (c.function.arguments | tojson) }}{% endfor %}{{ '</s>' }}"
    "{% elif m.role == 'user' or m.role == 'assistant' %}{{ m.content + '</s>' }}"
    "{% elif m.role == 'tool' %}{{ '(' + m.content + ')' }}{% endif %}{% endfor %}";

TEST_F(JinjaChatTest, CallsInShareGptsFormArePredictedAndTheirResultsRead) {
  EXPECT_EQ(Shown(kOfKnownRoles,
                  R"({"conversations": [{"from": "human", "value": "q"},
                {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"},
                {"from": "observation", "value": "7"}, {"from": "gpt", "value": "ok"}]})"),
            "q</s>{f{\"x\": 1}</s>}(7){ok</s>}");
}

TEST_F(JinjaChatTest, ATurnOfARoleThatTheTemplateLeavesOutIsRefused) {
  const std::string refused = "turn 1: is of the role \"observation\", of which the template writes nothing";
  EXPECT_EQ(Shown(kOfKnownRoles, R"({"conversations": [{"from": "human", "value": "q"},
                {"from": "observation", "value": "7"}, {"from": "gpt", "value": "ok"}]})"),
            refused);
  const ChatEncoder encoder(JinjaOf(kOfKnownRoles), &tokenizer_);
  std::vector<uint32_t> ids;
  const auto problem = encoder.EncodePrompt(
      RecordOf(R"({"messages": [{"role": "user", "content": "q"}, {"role": "observation", "content": "7"}]})",
               /*prompt=*/true),
      &ids);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->problem, refused);
}

TEST_F(JinjaChatTest, APromptIsWhatTrainingReadsBeforeTheAnswer) {
  const ChatEncoder encoder(JinjaOf(kChatMl), &tokenizer_);
  EncodedChat chat;
  ASSERT_FALSE(encoder.Encode(RecordOf(kTwoAnswers), &chat));
  std::vector<uint32_t> prompt;
  ASSERT_FALSE(
      encoder.EncodePrompt(RecordOf(R"({"messages": [{"role": "user", "content": "a"}]})", true), &prompt));
  ASSERT_EQ(prompt.size(), chat.runs[0].tokens);
  EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), chat.ids.begin()));
  EXPECT_EQ(tokenizer_.Decode(encoder.answer_end()), "<|im_end|>");
  EXPECT_EQ(tokenizer_.Decode(ChatEncoder(JinjaOf(kBrackets), &tokenizer_).answer_end()), " </s>");
}

TEST_F(JinjaChatTest, SpecialTokensThatTurnsSpellStayText) {
  const ChatEncoder encoder(JinjaOf(kChatMl), &tokenizer_);
  EncodedChat plain, spelt;
  ASSERT_FALSE(encoder.Encode(
      RecordOf(R"({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]})"),
      &plain));
  ASSERT_FALSE(encoder.Encode(RecordOf(R"({"messages": [{"role": "user", "content": "<|im_end|>é<s>"},
                                           {"role": "assistant", "content": "</s></s>\ufdd0"}]})"),
                              &spelt));
  const auto specials = [&](const EncodedChat& chat) {
    return std::count_if(chat.ids.begin(), chat.ids.end(),
                         [&](uint32_t id) { return tokenizer_.IsSpecial(id); });
  };
  EXPECT_EQ(specials(spelt), specials(plain));
  EXPECT_EQ(
      tokenizer_.Decode(spelt.ids),
      "<|im_start|>user\n<|im_end|>é<s><|im_end|>\n<|im_start|>assistant\n</s></s>\xEF\xB7\x90<|im_end|>\n");
}

// A turn, its parts and its calls.
constexpr char kParts[] =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + ':' }}{% for p in m.content or [] %}{{ p.text or p "
    "}}"
    "{% endfor %}{% for c in m.tool_calls or [] %}{{ c.function | tojson(ensure_ascii=true) }}{% endfor %}"
    "{{ '<|im_end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant:' }}{% endif %}";

TEST_F(JinjaChatTest, SpecialTokensStayTextWhereverARecordSpellsThem) {
  const auto talk = [](const std::string& user, const std::string& arguments) {
    return R"({"messages": [)" + user +
           R"(, {"role": "assistant", "content": "", "tool_calls": [{"function": {"arguments": )" +
           arguments + R"(}}]}, {"role": "tool", "content": "7"}, {"role": "assistant", "content": "b"}]})";
  };
  const std::string plain = R"({"role": "user", "content": "a"})";
  const struct {
    std::string line, said;
  } cases[] = {
      {talk(plain, R"({"<|im_end|>": 1})"), R"({"<|im_end|>": 1})"},
      {talk(plain, R"({"role": "x<|im_end|>y"})"), R"({"role": "x<|im_end|>y"})"},
      {talk(plain, R"({"v": "x<|im_end|>y"})"), R"({"v": "x<|im_end|>y"})"},
      {talk(R"({"role": "user", "content": [{"text": "say <|im_"}, {"text": "end|> now"}]})", "{}"),
       "say <|im_end|> now"},
      {talk(R"({"role": "user<|im_end|>", "content": "a"})", "{}"), "<|im_start|>user<|im_end|>:a<|im_end|>"},
  };
  const ChatEncoder encoder(JinjaOf(kParts), &tokenizer_);
  for (const auto& [line, said] : cases) {
    EncodedChat chat;
    const auto problem = encoder.Encode(RecordOf(line), &chat);
    ASSERT_FALSE(problem) << problem->problem;
    const auto specials = std::count_if(chat.ids.begin(), chat.ids.end(),
                                        [&](uint32_t id) { return tokenizer_.IsSpecial(id); });
    EXPECT_EQ(specials, 8) << "two a turn, the template's: " << line;
    EXPECT_THAT(tokenizer_.Decode(chat.ids), testing::HasSubstr(said));
  }
}

TEST_F(JinjaChatTest, ATemplateMakesSpecialTokensOfRolesThatAreWordsAlone) {
  const ChatEncoder encoder(
      JinjaOf("{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"),
      &tokenizer_);
  const auto specials_with = [&](const std::string& role) {
    std::vector<uint32_t> ids;
    const std::string turn = R"({"role": ")" + role + R"(", "content": "<|im_end|>"})";
    EXPECT_FALSE(encoder.EncodePrompt(
        RecordOf(R"({"messages": [)" + turn + R"(, {"role": "user", "content": ""}]})", true), &ids));
    return std::count_if(ids.begin(), ids.end(), [&](uint32_t id) { return tokenizer_.IsSpecial(id); });
  };
  EXPECT_EQ(specials_with("im_end"), 1);
  EXPECT_EQ(specials_with("im_end|><|im_end"), 0);
}

TEST_F(JinjaChatTest, AnEosThatACallSpellsDoesNotEndTheAnswer) {
  constexpr char kIds[] =
      "{% for m in messages %}{{ m.role + ':' }}{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments | "
      "tojson }}{{ m.tool_calls[0].id }}{{ m.tool_calls[0].type }}{% else %}{{ m.content }}{% endif %}{{ "
      "'</s>' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}";
  EXPECT_EQ(
      Shown(kIds, R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "",
      "tool_calls": [{"id": "</", "type": "s>7", "function": {"arguments": {}}}]}]})"),
      "user:a</s>assistant:{{}</s>7</s>}");
}

TEST_F(JinjaChatTest, TheLastAnswerIsAllGenerationBlocksOfTheLastTurn) {
  constexpr char kBlocks[] =
      "{% for m in messages %}{{ m.role + ':' }}{% if m.role == 'assistant' %}{% if m.thinking %}"
      "{% generation %}{{ '(' + m.thinking + ')' }}{% endgeneration %}{{ '|' }}{% endif %}"
      "{% generation %}{{ m.content }}{% endgeneration %}{% generation %}{{ m.more }}{% endgeneration %}"
      "{% else %}{{ m.content }}{% endif %}{{ '\n' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}";
  EXPECT_EQ(Shown(kBlocks, R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b", "thinking": "s", "more": "c"}, {"role": "user", "content": "d"},
      {"role": "assistant", "content": "e", "thinking": "t"}]})",
                  /*last_only=*/true),
            "user:a\nassistant:(s)|bc\nuser:d\nassistant:{(t)}|{e}\n");
}

TEST_F(JinjaChatTest, ToolCallsAreAnswersAndToolsReachTheTemplate) {
  constexpr char kTools[] =
      "{% if tools %}{{ tools[0].name + '\n' }}{% endif %}{% for m in messages %}{{ m.role + ': ' }}"
      "{% if m.tool_calls %}{% for c in m.tool_calls %}{{ '<call>' + c.function.name + (c.function.arguments "
      "| "
      "tojson) + '</call>' }}{% endfor %}{{ '</s>' }}{% elif m.content is string %}{{ m.content }}{% else %}"
      "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% if m.role == 'assistant' and not "
      "m.tool_calls %}{{ '</s>' }}{% endif %}{{ '\n' }}{% endfor %}{% if add_generation_prompt %}"
      "{{ 'assistant: ' }}{% endif %}";
  EXPECT_EQ(Shown(kTools, R"({"tools": "[{\"name\": \"sum\"}]", "messages": [
      {"role": "user", "content": [{"type": "text", "text": "1+"}, {"type": "text", "text": "2"}]},
      {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "sum", "arguments": {"a": 1}}}]},
      {"role": "tool", "content": "3"}, {"role": "assistant", "content": "3"}]})"),
            "sum\nuser: 1+2\nassistant: {<call>sum{\"a\": 1}</call></s>}\ntool: 3\nassistant: {3</s>}\n");
}

/// Turns that begin with <|im_start|>; `after_call` and `after_words` end them.
std::string TemplateOf(const std::string& after_call, const std::string& after_words) {
  return "{% set n = namespace(user=0) %}{% for m in messages %}{% if m.role == 'user' %}{% set n.user = "
         "loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}{{ '<|im_start|>' + m.role + ':' }}"
         "{% if m.thinking and loop.index0 > n.user %}{{ '(' + m.thinking + ')' }}{% endif %}"
         "{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}" +
         after_call + "{% else %}{{ m.content }}" + after_words +
         "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant:' }}{% endif %}";
}

constexpr char kCallAndResult[] =
    R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null, )"
    R"("thinking": "t", "tool_calls": [{"function": {"arguments": {"x": [1]}}}]}, )"
    R"({"role": "tool", "content": "secret"}, )";

TEST_F(JinjaChatTest, ACallEndsInItsOwnTurnWhateverTokenEndsIt) {
  const std::string talk = std::string(kCallAndResult) + R"({"role": "assistant", "content": "b"}]})";
  const auto shown = [&](const char* after_call, const char* after_words) {
    return Shown(TemplateOf(after_call, after_words).c_str(), talk);
  };
  const std::string begin = "<|im_start|>assistant:{(t){\"x\": [1]}";
  EXPECT_EQ(shown("<|im_end|>", "</s>"), "<|im_start|>user:a</s>" + begin +
                                             "<|im_end|>}<|im_start|>tool:secret</s>"
                                             "<|im_start|>assistant:{b</s>}");
  EXPECT_EQ(shown("<s>)<|im_end|>\n", "</s>"), "<|im_start|>user:a</s>" + begin +
                                                   "<s>)<|im_end|>}\n<|im_start|>tool:secret</s>"
                                                   "<|im_start|>assistant:{b</s>}");
  // No special token ends them.
  EXPECT_EQ(shown("]<end>", "<end>"),
            "<|im_start|>user:a<end>" + begin +
                "]}<end><|im_start|>tool:secret<end><|im_start|>assistant:{b}<end>");
  // The next turn's does.
  EXPECT_EQ(shown("", ""),
            "<|im_start|>user:a" + begin + "<|im_start|>}tool:secret<|im_start|>assistant:{b}");
  // That of the last turn begins as the next turn does.
  constexpr char kLast[] = "{% if loop.last and m.role == 'assistant' %}{{ '<|im_end|>' }}{% endif %}";
  EXPECT_EQ(shown(kLast, kLast),
            "<|im_start|>user:a" + begin + "}<|im_start|>tool:secret<|im_start|>assistant:{b<|im_end|>}");
}

TEST_F(JinjaChatTest, ACallEndsInItsOwnTurnWhereALastTurnIsWrittenOtherwise) {
  const std::string talk = std::string(kCallAndResult) +
                           R"({"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})";
  EXPECT_EQ(
      Shown(TemplateOf("<|im_end|>\n", "</s>").c_str(), talk),
      "<|im_start|>user:a</s><|im_start|>assistant:{{\"x\": [1]}<|im_end|>}\n<|im_start|>tool:secret</s>"
      "<|im_start|>user:c</s><|im_start|>assistant:{d</s>}");
}

// Writes all numbers of a conversation, as Python's json reads and writes them.
constexpr char kNumbers[] =
    "{{ tools | tojson }}{% for m in messages %}{{ m.role + ': ' }}{% if m.tool_calls %}"
    "{{ m.tool_calls[0].function.arguments | tojson }}{% else %}{{ m.content }}{% endif %}{{ '</s>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}";

/// A call with these arguments; `rest` is what the line has besides.
std::string CallOf(const std::string& arguments, const std::string& rest = "") {
  return R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null, )"
         R"("tool_calls": [{"function": {"name": "f", "arguments": )" +
         arguments + "}}]}]" + rest + "}";
}

/// What the template writes of a prompt of this line, or the problem.
std::string PromptOf(const char* source, const std::string& line, const MarkedTokenizer& tokenizer) {
  const ChatEncoder encoder(JinjaOf(source), &tokenizer);
  std::vector<uint32_t> ids;
  const auto problem = encoder.EncodePrompt(RecordOf(line, /*prompt=*/true), &ids);
  return problem ? problem->problem : tokenizer.Decode(ids);
}

TEST_F(JinjaChatTest, ANumberThatDoesNotFitChangesNoOtherOfItsLine) {
  constexpr char kArguments[] = R"({"to": 7, "amount": 17.5, "small": 1e-400, "n": -9223372036854775808})";
  constexpr char kRead[] = R"({"to": 7, "amount": 17.5, "small": 0.0, "n": -9223372036854775808})";
  for (const char* number : {"340282366920938463463374607431768211455", "-9223372036854775809", "1e400"}) {
    const std::string rest = std::string(", \"trace_id\": ") + number + R"(, "tools": [{"z": 2, "a": 1.0}])";
    EXPECT_EQ(Shown(kNumbers, CallOf(kArguments, rest)),
              std::string(R"([{"z": 2, "a": 1.0}]user: a</s>assistant: {)") + kRead + "</s>}")
        << number;
  }
}

TEST_F(JinjaChatTest, ANumberThatDoesNotFitAndIsReadIsRefused) {
  constexpr char kRefused[] = "a number of the variables does not fit 64 bits: not supported";
  constexpr char kTalk[] = R"({"messages": [{"role": "user", "content": "a"}], "tools": )";
  for (const std::string number : {"18446744073709551615", "123456789012345678901234", "-1e400"}) {
    EXPECT_THAT(Shown(kNumbers, CallOf("{\"b\": 1, \"a\": " + number + "}")), testing::HasSubstr(kRefused));
    EXPECT_THAT(PromptOf(kNumbers, kTalk + ("[{\"a\": " + number) + "}]}", tokenizer_),
                testing::HasSubstr(kRefused));
    EXPECT_THAT(PromptOf(kNumbers, kTalk + ("\"[{\\\"a\\\": " + number) + "}]\"}", tokenizer_),
                testing::HasSubstr(kRefused));
  }
  EXPECT_EQ(PromptOf(kNumbers, kTalk + std::string(R"("[{\"z\": 17, \"a\": 1.5}]"})"), tokenizer_),
            R"([{"z": 17, "a": 1.5}]user: a</s>assistant: )");
}

TEST(ChatRecordReaderTest, OfMembersWithTheSameNameTheLastCountsWhateverReadsThem) {
  const std::string line =
      R"({"messages": [], "messages": [{"role": "system", "role": "user", "content": "a", "content": "b"},)"
      R"({"role": "assistant", "content": "c"}], "tools": "[1]", "tools": "[2]"})";
  for (const bool whole_turns : {false, true}) {
    ChatRecordReader reader({.prompt_key = "", .response_key = "", .whole_turns = whole_turns});
    ChatRecord record;
    ASSERT_FALSE(reader.Read(line, &record));
    ASSERT_EQ(record.turns.size(), 2u);
    EXPECT_EQ(record.turns[0].role, ChatRole::kUser);
    EXPECT_EQ(record.turns[0].content, "b");
    EXPECT_EQ(record.tools_json, whole_turns ? "[2]" : "");
  }
}

TEST(WholeTurnsTest, ToolsThatAreNestedTooDeepMakeABadRecord) {
  ChatRecordReader reader({.prompt_key = "", .response_key = "", .whole_turns = true});
  ChatRecord record;
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const auto problem = reader.Read("{\"tools\": \"" + deep + "\", \"messages\": []}", &record);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->reason, SkipReason::kBadTurns);
}

/// A conversation of so many questions and answers.
std::string TalkOf(int answers) {
  std::string turns;
  for (int i = 0; i < answers; ++i) {
    turns += std::string(i == 0 ? "" : ", ") +
             R"({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"})";
  }
  return "{\"messages\": [" + turns + "]}";
}

TEST_F(JinjaChatTest, WhatAllRenderingsOfAConversationTakeHasALimit) {
  // Some nine million steps a rendering.
  const std::string costly =
      "{% set t = 'ab' * 4000000 %}{% for i in range(75) %}{% set x = 'x' in t %}{% endfor %}";
  EXPECT_TRUE(Shown((costly + kChatMl).c_str(), TalkOf(2)).ends_with("{b<|im_end|>}\n"));
  EXPECT_THAT(Shown((costly + kChatMl).c_str(), TalkOf(60)),
              testing::HasSubstr("takes more than the limit of 1000000000 steps to find its answers in"));
  EXPECT_TRUE(Shown((costly + kChatMl).c_str(), TalkOf(60), /*last_only=*/true).ends_with("{b<|im_end|>}\n"));
}

/// A template that renders the same, and whose answers are looked for in the rendering of every part of a
/// conversation: it asks how many messages there are.
std::string WithALookAround(const std::string& source) {
  return "{% if messages | length < 0 %}{% endif %}" + source;
}

/// Conversations of many forms, by a generator of the test's own.
class RandomTalk {
 public:
  explicit RandomTalk(uint64_t seed) : state_(seed) {}

  std::string Line() {
    std::string turns;
    const auto add = [&](const std::string& turn) { turns += (turns.empty() ? "" : ", ") + turn; };
    if (Draw(3) == 0) add(R"({"role": "system", "content": ")" + Words() + "\"}");
    const uint64_t rounds = 1 + Draw(6);
    for (uint64_t i = 0; i < rounds; ++i) {
      if (Draw(12) != 0) add(R"({"role": "user", "content": ")" + Words() + "\"}");
      const std::string thought = Draw(4) == 0 ? R"("reasoning_content": ")" + Words() + "\", " : "";
      if (Draw(5) == 0) {
        add(R"({"role": "assistant", "content": ")" + Words() +
            R"(", "tool_calls": [{"function": {"name": )" + R"("f", "arguments": {"x": ")" + Words() +
            R"("}}}]})");
        add(R"({"role": "tool", "content": ")" + Words() + "\"}");
      }
      add(R"({"role": "assistant", )" + thought + R"("content": ")" + Words() + "\"}");
    }
    return "{\"messages\": [" + turns + "]}";
  }

 private:
  uint64_t Draw(uint64_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % below;
  }
  std::string Words() {
    static const std::vector<std::string> kWords = {
        "a", "b", "aa", "\\n", " ", "é", "</s>", "<|im_end|>", "</think>", "assistant", "[/INST]"};
    std::string words;
    for (uint64_t count = Draw(5); count > 0; --count) words += kWords[Draw(kWords.size())];
    return words;
  }

  uint64_t state_;
};

const std::vector<std::string>& TemplatesThatShowTheirTurnsApart() {
  static const std::vector<std::string> kTemplates = {
      kChatMl, kBrackets,
      // As of Gemma and Llama 3: a system turn is read before the loop, which goes over the rest.
      "{{ bos_token }}{% if messages and messages[0]['role'] == 'system' %}{% set s = messages[0]['content'] "
      "+ "
      "'\n' %}{% set rest = messages[1:] %}{% else %}{% set s = '' %}{% set rest = messages %}{% endif %}"
      "{% for m in rest %}{{ '<' + m.role + '>' + (s if loop.first else '') + m.content | trim + '</s>' }}"
      "{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% if not "
      "loop.last "
      "%}, {% endif %}{% endfor %}<|im_end|>{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}",
      // As of Qwen 2.5: what tools answer looks at its neighbours, where there is any.
      "{% for m in messages %}{% if m.role == 'tool' %}{% if loop.last or messages[loop.index0 + 1].role != "
      "'tool' %}{{ '<|im_start|>' + m.content + '<|im_end|>\n' }}{% endif %}{% else %}{{ '<|im_start|>' + "
      "m.role + '\n' + m.content }}{% for c in m.tool_calls or [] %}{{ '\n' + (c.function | tojson) }}"
      "{% endfor %}{{ '<|im_end|>\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}"
      "{{ '<|im_start|>assistant\n' }}{% endif %}",
      // What is written of an answer depends on its words, and the last turn is followed by a token.
      "{% for m in messages %}{{ m.role + ':' + m.content.split('</think>')[-1].strip() }}{% if 'a' in "
      "m.content "
      "%}{{ '</s>' }}{% endif %}{% endfor %}{{ 'assistant:' if add_generation_prompt else eos_token }}"};
  return kTemplates;
}

const std::vector<std::string>& TemplatesThatDoNot() {
  static const std::vector<std::string> kTemplates = {
      // The words of a turn are remembered.
      "{% set n = namespace(last='') %}{% for m in messages %}{{ m.role + ':' + n.last + m.content + '</s>' "
      "}}"
      "{% set n.last = m.content[-1:] %}{% endfor %}{% if add_generation_prompt %}{{ 'assistant:' + n.last }}"
      "{% endif %}",
      "{% macro note(n, m) %}{% set n.last = m.content %}{% endmacro %}{% set n = namespace(last='') %}"
      "{% for m in messages %}{{ m.role + ':' + n.last | length | string + m.content + '</s>' }}{{ note(n, "
      "m) }}"
      "{% endfor %}{% if add_generation_prompt %}{{ 'assistant:' + n.last | length | string }}{% endif %}",
      // The prompt, or a turn, depends on others.
      "{% for m in messages %}{{ m.role + ':' + m.content + '</s>' }}{% endfor %}{% if add_generation_prompt "
      "%}"
      "{{ 'assistant:' }}{{ '!' if messages[-1].content == 'a' }}{% endif %}",
      "{% for m in messages %}{{ m.role + ':' + m.content }}{{ '</s>' if not loop.last or m.role == "
      "'assistant' "
      "}}{% endfor %}{% if add_generation_prompt %}{{ '</s>assistant:' }}{% endif %}",
      "{% for m in messages %}{{ m.role + ':' + m.content + '</s>' }}{% if loop.previtem and "
      "loop.previtem.content.endswith('a') %}{{ '!' }}{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}",
      "{% for m in messages %}{{ m.role + ':' + m.content + '</s>' }}{% if loop.changed(m.content) %}{{ '!' "
      "}}"
      "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}",
      "{% set c = cycler('1', '2') %}{% for m in messages %}{{ m.role + ':' + m.content }}{% if 'a' in "
      "m.content "
      "%}{{ c.next() }}{% endif %}{{ '</s>' }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant:' }}"
      "{% endif %}",
      "{% set i = 'abcdefgh' | list | map('upper') %}{% for m in messages %}{{ m.role + ':' + m.content }}"
      "{{ '1' if 'A' in i and 'a' in m.content }}{{ '</s>' }}{% endfor %}{% if add_generation_prompt %}"
      "{{ 'assistant:' }}{% endif %}",
      "{% for m in messages %}{% if m.content == 'a' %}{% break %}{% endif %}{{ m.role + ':' + m.content + "
      "'</s>' "
      "}}{% endfor %}{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}",
      "{% for m in messages %}{{ m.role + ':' + m.content + '</s>' }}{% if add_generation_prompt %}{{ '' }}"
      "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"};
  return kTemplates;
}

/// All that JinjaChat says of a conversation.
std::string AllOf(const JinjaChat& chat, const ChatRecord& record, uint64_t* steps) {
  RenderedChat rendered;
  if (const auto problem = chat.Render(record, /*last_only=*/false, &rendered)) return problem->problem;
  *steps = rendered.steps;
  std::string all = rendered.text;
  for (const jinja::Span& answer : rendered.answers)
    all += "\n" + std::to_string(answer.begin) + " to " + std::to_string(answer.end);
  for (const SpecialCut& cut : rendered.cuts) all += "\ncut " + std::to_string(cut.at);
  return all;
}

TEST_F(JinjaChatTest, AnswersAreWhereTheRenderingsOfAllPartsOfAConversationSayThatTheyAre) {
  std::vector<std::string> sources = TemplatesThatShowTheirTurnsApart();
  sources.insert(sources.end(), TemplatesThatDoNot().begin(), TemplatesThatDoNot().end());
  for (const std::string& source : sources) {
    const JinjaChat chat(JinjaOf(source.c_str()), tokenizer_);
    const JinjaChat by_parts(JinjaOf(WithALookAround(source).c_str()), tokenizer_);
    RandomTalk talk(17);
    int written = 0;
    for (int i = 0; i < 150; ++i) {
      const std::string line = talk.Line();
      uint64_t steps = 0, steps_by_parts = 0;
      const ChatRecord record = RecordOf(line);
      ASSERT_EQ(AllOf(chat, record, &steps), AllOf(by_parts, record, &steps_by_parts)) << source << "\n"
                                                                                       << line;
      written += steps > 0 ? 1 : 0;
    }
    EXPECT_GT(written, 20) << source;
  }
}

TEST_F(JinjaChatTest, StepsGrowAsAConversationDoesWhereATemplateWritesEachTurnByItself) {
  for (const std::string& source : TemplatesThatShowTheirTurnsApart()) {
    const JinjaChat chat(JinjaOf(source.c_str()), tokenizer_);
    uint64_t short_steps = 0, long_steps = 0;
    AllOf(chat, RecordOf(TalkOf(50)), &short_steps);
    AllOf(chat, RecordOf(TalkOf(500)), &long_steps);
    ASSERT_GT(short_steps, 0u) << source;
    EXPECT_LT(long_steps, 11 * short_steps) << source;
  }
}

TEST_F(JinjaChatTest, ASignalEndsARenderingAndIsNoFaultOfTheConversation) {
  const ChatEncoder encoder(JinjaOf(kChatMl), &tokenizer_);
  EncodedChat chat;
  std::vector<uint32_t> prompt;
  SetStopSignalForTest(SIGTERM);
  EXPECT_EQ(test::CodeOf([&] { encoder.Encode(RecordOf(TalkOf(2)), &chat); }), ErrorCode::kTerminated);
  SetStopSignalForTest(0);
  EXPECT_FALSE(encoder.Encode(RecordOf(TalkOf(2)), &chat));
}

// What _alias_reasoning_fields of transformers 5.23 made of each.
TEST(MessagesOfTest, AThoughtIsReadUnderEachOfItsNames) {
  for (const auto& [said, read] : std::vector<std::pair<std::string, std::string>>{
           {R"({"role":"assistant","content":"a","reasoning":"r"})",
            R"({"thinking":"r","role":"assistant","content":"a","reasoning":"r","reasoning_content":"r"})"},
           {R"({"role":"assistant","thinking":"t","content":"a","reasoning_content":null})",
            R"({"thinking":"t","role":"assistant","content":"a","reasoning_content":"t"})"},
           {R"({"reasoning_content":"c","role":"assistant","content":"a","thinking":"t"})",
            R"({"thinking":"t","reasoning_content":"c","role":"assistant","content":"a"})"},
           {R"({"role":"assistant","content":"a","thinking":null,"reasoning":"r"})",
            R"({"thinking":null,"role":"assistant","content":"a","reasoning":"r","reasoning_content":"r"})"},
           {R"({"role":"assistant","content":"a"})", R"({"role":"assistant","content":"a"})"}}) {
    ChatRecord record;
    record.turns.emplace_back();
    record.turns[0].json = said;
    EXPECT_EQ(MessagesOf(record).dump(), "[" + read + "]") << said;
  }
}

TEST_F(JinjaChatTest, WhatATemplateRefusesIsABadConversation) {
  EXPECT_EQ(
      Shown(kBrackets, R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"},
                                 {"role": "assistant", "content": "a"}]})"),
      "the template refuses it: only user and assistant");
}

TEST_F(JinjaChatTest, ALineOfTheTemplateIsSaidWithItsNameAndLeftOutWhereAVariableIsAtFault) {
  EXPECT_EQ(Shown((std::string(kChatMl) + "\n{% if tools %}{{ 1 + tools }}{% endif %}").c_str(),
                  R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],)"
                  R"( "tools": ["c"]})")
                .substr(0, 20),
            "template t, line 5: ");
  EXPECT_EQ(Shown(kNumbers, CallOf("{\"a\": 18446744073709551615}")),
            "template t: a number of the variables does not fit 64 bits: not supported");
}

// As LlamaTokenizer of transformers 4.57 is where it is "legacy".
TEST_F(JinjaChatTest, WhereAFolderAsksForItTextIsMarkedBehindEverySpecialToken) {
  const auto tokenizer = LoadTokenizer(test::Fixture("../examples/data/mistral-v1.model"));
  ChatTemplate chat_template = JinjaOf(
      "{% for m in messages %}{{ m.role + m.content + '</s>' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ 'assistant' }}{% endif %}");
  const auto prompt = [&] {
    std::vector<uint32_t> ids;
    EXPECT_FALSE(ChatEncoder(chat_template, tokenizer.get())
                     .EncodePrompt(RecordOf(R"({"prompt": "q"})", /*prompt=*/true), &ids));
    return ids;
  };
  std::vector<uint32_t> unmarked;
  tokenizer->Encode("userq", &unmarked);
  unmarked.push_back(tokenizer->identity().eos_id);
  std::vector<uint32_t> marked = unmarked;
  tokenizer->EncodeContinued("assistant", &unmarked);
  tokenizer->Encode("assistant", &marked);
  EXPECT_EQ(prompt(), unmarked);
  chat_template.start_marks = StartMarks::kBehindSpecials;
  EXPECT_EQ(prompt(), marked);
}

// As LlamaTokenizer of transformers 4.57 is where it is not "legacy", and where it adds no prefix space.
TEST_F(JinjaChatTest, WhereAFolderAsksForItTextIsMarkedAtTheBeginningAloneOrNowhere) {
  const auto tokenizer = LoadTokenizer(test::Fixture("../examples/data/mistral-v1.model"));
  const auto prompt = [&](const std::string& begin, StartMarks marks) {
    ChatTemplate chat_template =
        JinjaOf((begin + "{% for m in messages %}{{ m.role + m.content + '</s>' }}{% endfor %}"
                         "{% if add_generation_prompt %}{{ 'assistant' }}{% endif %}")
                    .c_str());
    chat_template.start_marks = marks;
    std::vector<uint32_t> ids;
    EXPECT_FALSE(ChatEncoder(chat_template, tokenizer.get())
                     .EncodePrompt(RecordOf(R"({"prompt": "q"})", /*prompt=*/true), &ids));
    return ids;
  };
  const auto expected = [&](bool bos, bool mark) {
    std::vector<uint32_t> ids;
    if (bos) ids.push_back(tokenizer->identity().bos_id);
    mark ? tokenizer->Encode("userq", &ids) : tokenizer->EncodeContinued("userq", &ids);
    ids.push_back(tokenizer->identity().eos_id);
    tokenizer->EncodeContinued("assistant", &ids);
    return ids;
  };
  EXPECT_EQ(prompt("<s>", StartMarks::kBehindBos), expected(true, true));
  EXPECT_EQ(prompt("<s>", StartMarks::kFirst), expected(true, false));
  EXPECT_EQ(prompt("", StartMarks::kFirst), expected(false, true));
  EXPECT_EQ(prompt("<s>", StartMarks::kNone), expected(true, false));
  EXPECT_EQ(prompt("", StartMarks::kNone), expected(false, false));
}

TEST_F(JinjaChatTest, ATemplateThatDoesNotTellItsAnswersIsRefused) {
  // Its prompt opens a thought that the answers of a history lack.
  constexpr char kThinks[] =
      "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ 'assistant: <think>' }}{% endif %}";
  EXPECT_EQ(test::CodeOf([&] { ChatEncoder(JinjaOf(kThinks), &tokenizer_); }), ErrorCode::kUsage);
  EXPECT_EQ(test::CodeOf([&] { ChatEncoder(JinjaOf("{% include 'x' %}"), &tokenizer_); }), ErrorCode::kUsage);
}

// As of DeepSeek-R1-Distill and QwQ.
TEST_F(JinjaChatTest, ForPromptsAloneATemplateIsTakenWhosePromptOpensAThought) {
  constexpr char kThinks[] =
      "{% for m in messages %}{{ m.role + ': ' + m.content.split('</think>')[-1] + '</s>' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ 'assistant: <think>' }}{% endif %}";
  const ChatEncoder encoder(JinjaOf(kThinks), &tokenizer_, {.prompts_only = true});
  std::vector<uint32_t> ids;
  const ChatRecord record = RecordOf(
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "t</think>b"},
                       {"role": "user", "content": "c"}]})",
      /*prompt=*/true);
  ASSERT_FALSE(encoder.EncodePrompt(record, &ids));
  EXPECT_EQ(tokenizer_.Decode(ids), "user: a</s>assistant: b</s>user: c</s>assistant: <think>");
  EXPECT_EQ(tokenizer_.Decode(encoder.answer_end()), "</s>");
}

TEST_F(JinjaChatTest, ForPromptsAloneATemplateIsTakenThatWritesNoAnswers) {
  const ChatEncoder encoder(JinjaOf("{{ 'question: ' + messages[0].content + '\nanswer:' }}"), &tokenizer_,
                            {.prompts_only = true});
  std::vector<uint32_t> ids;
  ASSERT_FALSE(encoder.EncodePrompt(RecordOf(R"({"prompt": "a"})", /*prompt=*/true), &ids));
  EXPECT_EQ(tokenizer_.Decode(ids), "question: a\nanswer:");
  EXPECT_TRUE(encoder.answer_end().empty());
}

TEST_F(JinjaChatTest, WhereEarlierThoughtsAreLeftOutTheLastAnswerAloneIsLearnt) {
  constexpr char kThinksLast[] =
      "{% for m in messages %}{{ m.role + ': ' }}{% if m.role == 'assistant' and loop.last %}{{ '<think>' }}"
      "{% endif %}{{ m.content + '</s>' }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant: <think>' "
      "}}"
      "{% endif %}";
  EXPECT_NE(Shown(kThinksLast, kTwoAnswers).find("begins otherwise than the template's prompt"),
            std::string::npos);
  EXPECT_EQ(Shown(kThinksLast, kTwoAnswers, /*last_only=*/true),
            "user: a</s>assistant:  b </s>user: b</s>assistant: <think>{ba</s>}");
}

TEST_F(JinjaChatTest, AFolderBringsItsTemplateAndItsTokens) {
  const test::TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.path(name)) << text;
  };
  EXPECT_FALSE(FindFolderTemplate(folder.path("")));
  write("tokenizer_config.json", R"({"eos_token": {"content": "<end>"}, "chat_template": [
      {"name": "tool_use", "template": "x"}, {"name": "default", "template": "y"}]})");
  EXPECT_EQ(LoadChatTemplate(folder.path("")).text, "y");
  EXPECT_EQ(LoadChatTemplate(folder.path("tokenizer_config.json")).text, "y");
  write("chat_template.jinja", "z");
  const ChatTemplate found = LoadChatTemplate(folder.path(""));
  EXPECT_TRUE(found.is_jinja);
  EXPECT_EQ(found.text, "z");
  EXPECT_THAT(found.named_tokens,
              ::testing::ElementsAre(std::pair<std::string, std::string>("eos_token", "<end>")));
  EXPECT_EQ(ConversationTemplate("", folder.path("")).text, "z");
  EXPECT_EQ(ConversationTemplate("chatml", folder.path("")).name, "chatml");
  EXPECT_EQ(ConversationTemplate("", "bytes").name, "plain");
}

TEST_F(JinjaChatTest, AModelWithoutATemplateIsWrittenByNoneThatNobodyNamed) {
  const test::TemporaryFolder folder;
  const auto refusal = [](const std::string& tokenizer) -> std::string {
    try {
      ConversationTemplate("", tokenizer);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return std::string(error.what()) + error.hint();
    }
    return "";
  };
  // A tokenizer that lies alone is not a model's, until one lies beside it.
  std::ofstream(folder.path("tokenizer.json")) << "{}";
  EXPECT_EQ(ConversationTemplate("", folder.path("")).name, "plain");
  EXPECT_EQ(ConversationTemplate("", folder.path("tokenizer.json")).name, "plain");
  std::ofstream(folder.path("config.json")) << "{}";
  EXPECT_NE(refusal(folder.path("tokenizer.json")), "");
  EXPECT_THAT(refusal(folder.path("")), ::testing::AllOf(::testing::HasSubstr(folder.path("")),
                                                         ::testing::HasSubstr("chat_template.jinja"),
                                                         ::testing::HasSubstr("--template plain")));
  EXPECT_EQ(ConversationTemplate("plain", folder.path("")).name, "plain");
}

}  // namespace
}  // namespace trainwright
