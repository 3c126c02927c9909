/// --alloc-conf: how torch's allocator of GPU memory cuts and keeps what it took, in its own words.
///
/// "KEY:VALUE,KEY:VALUE", as in PYTORCH_CUDA_ALLOC_CONF; the keys are those of torch 2.11. Checked here,
/// because torch would refuse it in the middle of loading CUDA, or without a GPU never.
#pragma once

#include <string>

namespace trainwright {

/// \param text not empty
/// \throws Error{kUsage} naming the flag, the entry that is wrong, and what may be there
void CheckAllocatorConf(const std::string& text, const std::string& flag);

}  // namespace trainwright
