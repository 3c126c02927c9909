#include "lib/eval/chat_session.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/base/bytes.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

ChatSession Session(const std::string& lines, const std::string& system = "") {
  return ChatSession(system, MemorySource(AsBytes(lines)), /*invites=*/false);
}

TEST(ChatSessionTest, EachLineIsAskedWithAllThatWasSaid) {
  const std::string lines = "Hello\r\n\n  \nAnd now?";
  ChatSession session = Session(lines, "Be brief.");
  ASSERT_TRUE(session.AskNext());
  EXPECT_EQ(session.messages().dump(),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}])");
  session.Answer("Hi.");
  ASSERT_TRUE(session.AskNext());
  EXPECT_EQ(session.messages().dump(),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"},)"
            R"({"role":"assistant","content":"Hi."},{"role":"user","content":"And now?"}])");
  session.Answer("Still here.");
  EXPECT_FALSE(session.AskNext());
}

TEST(ChatSessionTest, ABlankAnswerIsForgottenWithItsQuestion) {
  const std::string lines = "one\ntwo\n";
  ChatSession session = Session(lines);
  ASSERT_TRUE(session.AskNext());
  session.Answer(" \n");
  ASSERT_TRUE(session.AskNext());
  EXPECT_EQ(session.messages().dump(), R"([{"role":"user","content":"two"}])");
}

TEST(ChatSessionTest, ALineWithoutAnEndIsRefused) {
  const std::string lines((size_t{1} << 20) + 5000, 'a');
  ChatSession session = Session(lines);
  EXPECT_EQ(test::CodeOf([&] { session.AskNext(); }), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace trainwright
