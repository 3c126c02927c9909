#include "lib/tok/bytes_tokenizer.h"

#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(BytesTokenizerTest, EveryByteIsItsOwnIdAndComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const BytesTokenizer tokenizer;
  std::vector<uint32_t> ids;
  tokenizer.Encode(all, &ids);
  ASSERT_EQ(ids.size(), 256u);
  for (uint32_t i = 0; i < 256; ++i) EXPECT_EQ(ids[i], i);
  EXPECT_EQ(tokenizer.Decode(ids), all);
}

TEST(BytesTokenizerTest, BosAndEosStandForNoText) {
  EXPECT_EQ(BytesTokenizer().Decode(std::vector<uint32_t>{256, 'h', 'i', 257}), "hi");
}

TEST(BytesTokenizerTest, RefusesIdsOutsideTheVocabulary) {
  EXPECT_EQ(test::CodeOf([] { BytesTokenizer().Decode(std::vector<uint32_t>{258}); }), ErrorCode::kBadInput);
}

// sha256sum of the string "trainwright bytes tokenizer 1": streams written today must stay readable.
TEST(BytesTokenizerTest, ItsIdentityIsFrozen) {
  const TokenizerIdentity identity = LoadTokenizer("bytes")->identity();
  EXPECT_EQ(identity.kind, "bytes");
  EXPECT_EQ(HexEncode(identity.sha256), "dc3bb4138cad804b698b87b1c70c590504c59b446d62f075b368b6ca47361ad2");
  EXPECT_EQ(identity.vocab_size, 258u);
  EXPECT_EQ(identity.bos_id, 256u);
  EXPECT_EQ(identity.eos_id, 257u);
  EXPECT_EQ(identity.pad_id, kNoId);
  EXPECT_EQ(identity.unk_id, kNoId);
  EXPECT_EQ(identity.model, "");
  EXPECT_EQ(TokenizerFromIdentity(identity)->identity(), identity);
}

}  // namespace
}  // namespace trainwright
