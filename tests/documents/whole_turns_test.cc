// Records whose turns a Jinja template reads. Expected is what apply_chat_template of transformers 5.23 gave
// a template as its messages and tools.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "lib/documents/chat_record.h"
#include "lib/documents/jinja_chat.h"

namespace trainwright {
namespace {

/// The tools and messages that a template is given, or why there are none.
std::string GivenTo(const std::string& line, bool prompt = false, std::string prompt_key = "",
                    std::string response_key = "") {
  ChatRecordReader reader({std::move(prompt_key), std::move(response_key), /*whole_turns=*/true});
  ChatRecord record;
  if (const auto problem = prompt ? reader.ReadPrompt(line, &record) : reader.Read(line, &record)) {
    return std::string(kSkipReasonNames[static_cast<size_t>(problem->reason)]) + ": " + problem->problem;
  }
  return record.tools_json + MessagesOf(record).dump();
}

TEST(WholeTurnsTest, WhatATurnLacksOrHasAsNullIsNotThereForTheTemplate) {
  EXPECT_EQ(GivenTo(R"({"messages": [{"role": "user", "content": "q", "name": null},
                               {"role": "assistant", "tool_calls": [{"function": {"arguments": {"a": null}}}]},
                               {"role": "assistant", "content": null, "tool_calls": [{"id": 1}]},
                               {"role": "tool", "content": "7", "name": "f"},
                               {"role": "assistant", "content": "ok", "tool_calls": null}]})"),
            R"([{"role":"user","content":"q"},)"
            R"({"role":"assistant","tool_calls":[{"function":{"arguments":{"a":null}}}]},)"
            R"({"role":"assistant","tool_calls":[{"id":1}]},)"
            R"({"role":"tool","content":"7","name":"f"},{"role":"assistant","content":"ok"}])");
}

constexpr char kPromptOfTurns[] =
    R"("prompt": [{"role": "developer", "content": "s"},
                  {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]},
                  {"role": "assistant", "reasoning_content": "hm", "tool_calls": [{"id": 1}]},
                  {"role": "tool", "content": "1", "name": "f"}],
       "tools": [{"name": "f"}])";
constexpr char kTurnsOfThePrompt[] =
    R"([{"name":"f"}][{"role":"developer","content":"s"},)"
    R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"image"}]},)"
    R"({"thinking":"hm","role":"assistant","reasoning_content":"hm","tool_calls":[{"id":1}]},)"
    R"({"role":"tool","content":"1","name":"f"})";

TEST(WholeTurnsTest, PromptAndCompletionOfTurnsKeepAllThatTheySayAndTheTools) {
  EXPECT_EQ(GivenTo(std::string("{") + kPromptOfTurns +
                    R"(, "completion": [{"role": "assistant", "content": "x", "weight": 1}]})"),
            std::string(kTurnsOfThePrompt) + R"(,{"role":"assistant","content":"x","weight":1}])");
  EXPECT_EQ(GivenTo(R"({"prompt": "q", "completion": "x", "tools": "[{\"name\": \"f\"}]"})"),
            R"([{"name":"f"}][{"role":"user","content":"q"},{"role":"assistant","content":"x"}])");
}

TEST(WholeTurnsTest, TurnsUnderKeysThatAreNamedKeepAllThatTheySayAndTheTools) {
  EXPECT_EQ(GivenTo(R"({"q": {"turns": [{"role": "tool", "content": "1", "name": "f"}]},
                        "a": [{"role": "assistant", "tool_calls": [{"id": 1}]}], "tools": [{"name": "f"}]})",
                    /*prompt=*/false, "q.turns", "a"),
            R"([{"name":"f"}][{"role":"tool","content":"1","name":"f"},)"
            R"({"role":"assistant","tool_calls":[{"id":1}]}])");
}

TEST(WholeTurnsTest, APromptOfTurnsKeepsAllThatTheySayAndTheTools) {
  EXPECT_EQ(GivenTo(std::string("{") + kPromptOfTurns + "}", /*prompt=*/true),
            std::string(kTurnsOfThePrompt) + "]");
}

TEST(WholeTurnsTest, ACompletionWithoutWordsCallsOrThoughtsIsAnEmptyResponse) {
  for (const char* content :
       {"", R"(, "content": null)", R"(, "content": [{"type": "text", "text": " "}])"}) {
    EXPECT_EQ(
        GivenTo(std::string(R"({"prompt": "q", "completion": [{"role": "assistant")") + content + "}]}"),
        "empty_response: the response is empty")
        << content;
  }
}

/// A question, then these turns, then an answer.
std::string ShareGptOf(const std::string& turns) {
  return R"("conversations": [{"from": "human", "value": "q"}, )" + turns +
         R"(, {"from": "gpt", "value": "ok"}])";
}

TEST(WholeTurnsTest, CallsInShareGptsFormAreTheAssistantsAndObservationsTheTools) {
  EXPECT_EQ(
      GivenTo(
          R"({"system": "s", )" +
          ShareGptOf(R"({"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"},)"
                     R"({"from": "observation", "value": "7"})") +
          "}"),
      R"([{"role":"system","content":"s"},{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":)"
      R"([{"type":"function","function":{"name":"f","arguments":{"x":1}}}]},)"
      R"({"role":"tool","content":"7"},{"role":"assistant","content":"ok"}])");
  EXPECT_EQ(
      GivenTo(
          "{" +
          ShareGptOf(
              R"({"from": "function_call", "value": [{"name": "f", "arguments": {}}, {"name": "g", "arguments": []}]})") +
          "}"),
      R"([{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":)"
      R"([{"type":"function","function":{"name":"f","arguments":{}}},)"
      R"({"type":"function","function":{"name":"g","arguments":[]}}]},{"role":"assistant","content":"ok"}])");
}

// Lines of data sets that were joined have the members of all of them.
TEST(WholeTurnsTest, AMemberThatIsNullHidesNoOther) {
  EXPECT_EQ(GivenTo(R"({"conversations": [{"role": null, "content": null, "from": "human", "value": "Q"},
                                          {"role": "assistant", "content": null, "value": "A"}]})"),
            R"([{"role":"user","content":"Q"},{"role":"assistant","content":"A"}])");
}

TEST(WholeTurnsTest, AFunctionCallThatIsNoneIsABadTurn) {
  for (const char* value : {"\"f(x)\"", R"("{\"name\": \"f\"}")", R"({"arguments": {}})", "[]", "null"}) {
    const std::string call = std::string(R"({"from": "function_call", "value": )") + value + "}";
    EXPECT_EQ(
        GivenTo("{" + ShareGptOf(call) + "}"),
        "bad_turns: \"conversations\"[1].value is no call {\"name\", \"arguments\"}, no list of some and no "
        "text of either")
        << value;
  }
}

TEST(WholeTurnsTest, ObservationsOfAConversationWithoutCallsKeepTheirRole) {
  EXPECT_EQ(GivenTo("{" + ShareGptOf(R"({"from": "observation", "value": "7"})") + "}"),
            R"([{"role":"user","content":"q"},{"role":"observation","content":"7"},)"
            R"({"role":"assistant","content":"ok"}])");
}

TEST(WholeTurnsTest, ToolsOfABlankTextAreNone) {
  EXPECT_EQ(GivenTo(R"({"prompt": "q", "completion": "x", "tools": ""})"),
            R"([{"role":"user","content":"q"},{"role":"assistant","content":"x"}])");
}

TEST(WholeTurnsTest, AnAnswerThatRepeatsThePromptHoldsItOnce) {
  EXPECT_EQ(GivenTo(R"({"prompt": "q", "chosen": [{"role": "user", "content": "q"},
                        {"role": "assistant", "content": "x"}]})",
                    /*prompt=*/false, "prompt", "chosen"),
            R"([{"role":"user","content":"q"},{"role":"assistant","content":"x"}])");
}

}  // namespace
}  // namespace trainwright
