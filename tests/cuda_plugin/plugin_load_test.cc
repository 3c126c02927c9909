// The CUDA plugin on a machine without a GPU: it loads behind the wheel's libc10_cuda, and gives every
// operator of lib/nn/ops.cc a CUDA implementation. Each case in a process of its own.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <set>
#include <string>
#include <string_view>

#include "lib/base/version.h"
#include "lib/device/cuda_plugin.h"
#include "lib/nn/ops.h"
#include "lib/nn/product_ops.h"

namespace trainwright {
namespace {

using testing::IsEmpty;

constexpr char kPlugin[] = TRAINWRIGHT_PLUGIN_FOLDER "/libtrainwright_cuda.so";

void* Load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  EXPECT_NE(library, nullptr) << dlerror();
  return library;
}

/// Null where it cannot be loaded.
const CudaPlugin* LoadPlugin() {
  void* library = Load(kPlugin);
  if (library == nullptr) return nullptr;
  const auto entry = reinterpret_cast<CudaPluginFunction*>(dlsym(library, kCudaPluginSymbol));
  return entry == nullptr ? nullptr : entry();
}

/// The operators of the library trainwright, of those that have an implementation under a key.
std::set<std::string> Operators(std::optional<c10::DispatchKey> key = std::nullopt) {
  std::set<std::string> names;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("trainwright::")) continue;
    const auto found = c10::Dispatcher::singleton().findOp(name);
    if (!found || !found->hasSchema()) continue;
    if (!key || found->hasKernelForDispatchKey(*key)) names.insert(name.name);
  }
  return names;
}

std::set<std::string> Missing(const std::set<std::string>& all, const std::set<std::string>& some) {
  std::set<std::string> missing;
  for (const std::string& name : all) {
    if (!some.contains(name)) missing.insert(name);
  }
  return missing;
}

/// Registers the plugin's operators and looks at all that the dispatcher knows.
void EveryOperatorHasACudaKernel(const CudaPlugin* plugin) {
  // Links the operators' definitions, which are in no function that is called otherwise.
  at::Tensor sum = at::empty({}, at::kDouble);
  ops::SumOfSquares(at::ones({3}), sum);
  ASSERT_EQ(*sum.const_data_ptr<double>(), 3);
  at::Tensor product = at::empty({1, 1}), sums = at::empty({1});
  ASSERT_TRUE(ops::LinearGradients(at::ones({2, 1}), at::ones({2, 1}), /*accumulate=*/false, /*precision=*/0,
                                   /*candidate=*/0, product, sums));
  const std::set<std::string> all = Operators();
  ASSERT_GE(all.size(), 27u);
  EXPECT_THAT(Operators(c10::DispatchKey::CUDA), IsEmpty());
  plugin->register_operators();
  const std::set<std::string> on_cpu = Operators(c10::DispatchKey::CPU),
                              on_cuda = Operators(c10::DispatchKey::CUDA),
                              on_meta = Operators(c10::DispatchKey::Meta);
  std::cout << all.size() << " operators; with a kernel for the CPU " << on_cpu.size() << ", for CUDA "
            << on_cuda.size() << ", for the meta device " << on_meta.size() << "\n";
  EXPECT_THAT(Missing(all, on_cuda), IsEmpty());
  EXPECT_THAT(Missing(all, on_cpu), IsEmpty());
  EXPECT_THAT(Missing(all, on_meta), IsEmpty());
}

TEST(PluginLoadTest, GivesEveryOperatorACudaKernelBehindLibc10CudaAlone) {
  ASSERT_NE(Load(TRAINWRIGHT_C10_CUDA), nullptr);
  const CudaPlugin* plugin = LoadPlugin();
  ASSERT_NE(plugin, nullptr);
  EveryOperatorHasACudaKernel(plugin);
}

TEST(PluginLoadTest, IsOfThisProgramAndAnswersWithoutADriver) {
  ASSERT_NE(Load(TRAINWRIGHT_C10_CUDA), nullptr);
  const CudaPlugin* plugin = LoadPlugin();
  ASSERT_NE(plugin, nullptr);
  EXPECT_EQ(plugin->interface, kCudaPluginInterface);
  EXPECT_EQ(std::string_view(plugin->trainwright_version), TRAINWRIGHT_VERSION);
  char problem[256] = "";
  const int32_t count = plugin->device_count(problem, sizeof(problem));
  EXPECT_EQ(count == -1, problem[0] != '\0') << count << " GPUs: " << problem;
}

/// Where all that libtorch_cuda needs is there (scripts/fetch_libtorch.sh --cuda), a driver or not.
TEST(PluginLoadTest, GivesEveryOperatorACudaKernelBehindLibtorchCuda) {
  if (dlopen(TRAINWRIGHT_TORCH_CUDA, RTLD_NOW | RTLD_GLOBAL) == nullptr)
    GTEST_SKIP() << "NOT RUN: " << dlerror();
  const CudaPlugin* plugin = LoadPlugin();
  ASSERT_NE(plugin, nullptr);
  EveryOperatorHasACudaKernel(plugin);
  void* nccl = Load(TRAINWRIGHT_PLUGIN_FOLDER "/libtrainwright_nccl.so");
  ASSERT_NE(nccl, nullptr);
  EXPECT_NE(dlsym(nccl, "trainwright_nccl_group"), nullptr);
}

}  // namespace
}  // namespace trainwright
