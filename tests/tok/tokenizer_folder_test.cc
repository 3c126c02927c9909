// Which tokenizer a model's folder holds.
#include "lib/tok/tokenizer_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

class TokenizerFolderTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_.path(name)) << text; }
  std::string Found() const { return TokenizerOfFolder(folder_.path()); }
  test::TemporaryFolder folder_;
};

TEST_F(TokenizerFolderTest, TheFirstFileThatThereIsIsTheTokenizer) {
  EXPECT_EQ(Found(), "");
  Write("tokenizer_config.json", "[broken");
  EXPECT_EQ(Found(), "");
  Write("tokenizer.tiktoken", "");
  EXPECT_EQ(Found(), folder_.path("tokenizer.tiktoken"));
  Write("tokenizer.json", "");
  EXPECT_EQ(Found(), folder_.path("tokenizer.json"));
  Write("tokenizer.model", "");
  EXPECT_EQ(Found(), folder_.path("tokenizer.model"));
}

TEST_F(TokenizerFolderTest, AFolderOfTheBuiltInTokenizerIsLoadedAsThat) {
  Write("tokenizer.json", R"({"model": {"type": "BPE"}})");
  Write("tokenizer_config.json", R"({"trainwright_tokenizer": "bytes"})");
  EXPECT_EQ(Found(), "bytes");
  EXPECT_EQ(LoadTokenizer(folder_.path())->identity(), LoadTokenizer("bytes")->identity());
}

}  // namespace
}  // namespace trainwright
