// Which links an output follows: those that open(2) would, where the kernel protects links.
#include "lib/io/output_link.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "lib/io/byte_sink.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

using test::CodeOf;
using test::ReadFile;
using test::TemporaryFolder;
using test::WriteFile;

struct LinkCase {
  const char* name;
  mode_t folder_mode;
  uid_t folder_owner, link_owner;
  bool follows;
};
void PrintTo(const LinkCase& example, std::ostream* out) {
  *out << example.name;
}

class MayFollowLinkTest : public testing::TestWithParam<LinkCase> {};

// The rule of Linux (may_follow_link in fs/namei.c) for the user 1000.
INSTANTIATE_TEST_SUITE_P(Rule, MayFollowLinkTest,
                         testing::Values(LinkCase{"Own", 01777, 0, 1000, true},
                                         LinkCase{"OfWhoHasTheFolder", 01777, 7, 7, true},
                                         LinkCase{"OfAnotherInASharedFolder", 01777, 0, 7, false},
                                         LinkCase{"OfRootInASharedFolderOfAnother", 01777, 7, 0, false},
                                         LinkCase{"NotSticky", 0777, 0, 7, true},
                                         LinkCase{"NotForEveryone", 01775, 0, 7, true}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(MayFollowLinkTest, IsTheKernels) {
  struct stat link = {}, folder = {};
  folder.st_mode = S_IFDIR | GetParam().folder_mode;
  folder.st_uid = GetParam().folder_owner;
  link.st_uid = GetParam().link_owner;
  EXPECT_EQ(MayFollowLink(link, folder, 1000), GetParam().follows);
}

TEST(OutputLinkTest, AnOutputReplacesWhatItsOwnLinksLeadTo) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path("deep"));
  WriteFile(folder.path("deep/file"), "old");
  fs::create_symlink("../first", folder.path("deep/second"));
  fs::create_symlink("deep/file", folder.path("first"));
  const auto sink = OpenSink(folder.path("deep/second"), false, false);
  sink->Write(AsBytes("new"));
  sink->Commit();
  EXPECT_EQ(ReadFile(folder.path("deep/file")), "new");
  EXPECT_TRUE(fs::is_symlink(folder.path("first")));
  EXPECT_TRUE(fs::is_symlink(folder.path("deep/second")));
}

TEST(OutputLinkTest, ALinkThatLeadsToNothingOrRoundIsReplaced) {
  const TemporaryFolder folder;
  fs::create_symlink("nothing", folder.path("dangling"));
  fs::create_symlink("round", folder.path("round"));
  for (const char* name : {"dangling", "round"}) {
    EXPECT_EQ(FollowOutputLink(folder.path(name)), folder.path(name));
  }
}

TEST(OutputLinkTest, NothingIsWrittenThroughALinkThatAnotherUserPlanted) {
  constexpr uid_t kAnother = 4242;
  const TemporaryFolder folder;
  WriteFile(folder.path("victim"), "precious");
  fs::create_directory(folder.path("shared"));
  fs::permissions(folder.path("shared"), fs::perms(01777));
  fs::create_symlink("../victim", folder.path("shared/planted"));
  fs::create_symlink("planted", folder.path("shared/own"));
  if (lchown(folder.path("shared/planted").c_str(), kAnother, kAnother) != 0) {
    GTEST_SKIP() << "only root makes links of others; MayFollowLinkTest has the rule";
  }
  for (const char* name : {"planted", "own"}) {
    EXPECT_EQ(CodeOf([&] { OpenSink(folder.path("shared/") + name, false, false); }), ErrorCode::kIo) << name;
  }
  EXPECT_EQ(ReadFile(folder.path("victim")), "precious");
}

}  // namespace
}  // namespace trainwright
