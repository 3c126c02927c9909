#include "lib/run/allocator_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// "problem; hint" of the refusal; empty where it is taken.
std::string RefusalOf(const std::string& text) {
  try {
    CheckAllocatorConf(text, "--alloc-conf");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(error.object(), "--alloc-conf");
    return error.problem() + "; " + error.hint();
  }
  return "";
}

TEST(AllocatorConfTest, TakesWhatTorchsDocumentationHas) {
  for (const char* text :
       {"expandable_segments:True", "max_split_size_mb:512", "max_split_size_mb:20",
        "max_split_size_mb:128,garbage_collection_threshold:0.8", "backend:cudaMallocAsync",
        "roundup_power2_divisions:8", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
        "expandable_segments:False,roundup_power2_divisions:[64:8,>:1],pinned_use_background_threads:True",
        "large_segment_size_mb:10,max_split_size_mb:10", "pinned_num_register_threads:8",
        "per_process_memory_fraction:0.5", "release_lock_on_cudamalloc:True"}) {
    EXPECT_EQ(RefusalOf(text), "") << text;
  }
}

TEST(AllocatorConfTest, RefusesWhatTorchWouldRefuseAndSaysWhatIsWrong) {
  const std::pair<const char*, const char*> refused[] = {
      {"expandable_segments", "'expandable_segments' is no KEY:VALUE"},
      {"", "'' is no KEY:VALUE"},
      {"max_split_size_mb:512,", "'' is no KEY:VALUE"},
      {"expandable_segments:true", "'true' is no value of expandable_segments; it takes True or False"},
      {"max_split_size_mb:19", "it takes a whole number of at least 20"},
      {"max_split_size_mb:big", "'big' is no value of max_split_size_mb"},
      {"max_split_size_mb:512x", "'512x' is no value"},
      {"max_split_size_mb:512,max_split_size_mb:512", "is there twice"},
      {"garbage_collection_threshold:1", "a number between 0 and 1"},
      {"garbage_collection_threshold:nan", "a number between 0 and 1"},
      {"backend:malloc", "native or cudaMallocAsync"},
      {"roundup_power2_divisions:[256:1,512:3]", "is no value of roundup_power2_divisions"},
      {"roundup_power2_divisions:[256:1", "is no value of roundup_power2_divisions"},
      {"expandable_segment:True", "'expandable_segment' is no key of torch's allocator"}};
  for (const auto& [text, words] : refused) {
    EXPECT_THAT(RefusalOf(text), testing::HasSubstr(words)) << text;
  }
}

}  // namespace
}  // namespace trainwright
