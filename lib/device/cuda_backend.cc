#include "lib/device/cuda_backend.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <link.h>
#include <torch/headeronly/version.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "lib/base/version.h"
#include "lib/device/gpu_limits.h"

namespace trainwright {
namespace {

constexpr char kPluginName[] = "libtrainwright_cuda.so";
constexpr char kNcclName[] = "libtrainwright_nccl.so";
constexpr char kBuildHint[] =
    "build it with `cmake --preset cuda && cmake --build --preset cuda` and put it beside the program, or "
    "name it by "
    "TRAINWRIGHT_CUDA_PLUGIN";

/// The folder of libtorch_cpu.so as this process has loaded it; empty where the loader does not say.
std::string TorchFolder() {
  std::string folder;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        const std::filesystem::path path = info->dlpi_name;
        if (path.filename() != "libtorch_cpu.so") return 0;
        *static_cast<std::string*>(result) = path.parent_path().string();
        return 1;
      },
      &folder);
  return folder;
}

/// \returns the library, or null with the loader's words in `problem`
void* Load(const std::string& path, std::string* problem) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) *problem = dlerror();
  return library;
}

std::string FirstExisting(const std::vector<std::string>& paths) {
  std::error_code ignored;
  for (const std::string& path : paths) {
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return "";
}

std::string Joined(const std::vector<std::string>& paths) {
  std::string joined;
  for (const std::string& path : paths) joined += (joined.empty() ? "" : ", ") + path;
  return joined;
}

/// Why the plugin does not belong to this program; empty when it does.
std::string Mismatch(const CudaPlugin& plugin) {
  if (plugin.interface != kCudaPluginInterface ||
      std::string_view(plugin.trainwright_version) != TRAINWRIGHT_VERSION) {
    return "is of trainwright " + std::string(plugin.trainwright_version) + ", interface " +
           std::to_string(plugin.interface) + "; this program is " TRAINWRIGHT_VERSION ", interface " +
           std::to_string(kCudaPluginInterface);
  }
  if (std::string_view(plugin.torch_version) != TORCH_VERSION) {
    return "was built with torch " + std::string(plugin.torch_version) + "; this program with " TORCH_VERSION;
  }
  return "";
}

/// The library that the loader did not find, by its words: "libcublas.so.13: cannot open shared object file:
/// No such file or directory"; empty where it says something else.
std::string MissingLibrary(const std::string& words) {
  const size_t end = words.find(": cannot open shared object file: No such file");
  return end == std::string::npos ? "" : words.substr(0, end);
}

CudaBackend Refused(bool has_driver, std::string problem, std::string hint) {
  return {.problem = std::move(problem), .hint = std::move(hint), .has_driver = has_driver};
}

CudaBackend WithoutTorchCuda(const std::string& torch_cuda, const std::string& words) {
  const std::string missing = MissingLibrary(words);
  if (missing.empty() || missing == torch_cuda) {
    return Refused(true, "libtorch_cuda cannot be loaded: " + words,
                   "the program needs the lib folder of a CUDA build of torch " TORCH_VERSION
                   " with the libraries that it depends on (an installed wheel has them)");
  }
  return Refused(
      true, "libtorch_cuda cannot be loaded: it needs " + missing + ", which is not here",
      "fetch it with `scripts/fetch_libtorch.sh --cuda`, or install the wheel of torch " TORCH_VERSION
      " with what it depends on");
}

/// By which torch reaches libtorch_cuda, which registers them when it is loaded.
bool HasCudaHooks() {
  return at::CUDAHooksRegistry()->Has("CUDAHooks");
}

/// Whether torch was asked for a GPU before libtorch_cuda was here: it keeps the answer, "none", for the life
/// of the process.
bool WasAskedTooEarly() {
  return HasCudaHooks() && !at::detail::getCUDAHooks().hasCUDA();
}

}  // namespace

CudaBackendFiles DefaultCudaBackendFiles() {
  const std::string torch_folder = TorchFolder();
  CudaBackendFiles files{
      .driver = "libcuda.so.1",
      .torch_cuda = torch_folder.empty() ? "libtorch_cuda.so" : torch_folder + "/libtorch_cuda.so",
      .plugins = {}};
  if (const char* named = std::getenv("TRAINWRIGHT_CUDA_PLUGIN"); named != nullptr && *named != '\0') {
    files.plugins = {named};
    return files;
  }
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (!error) {
    files.plugins = {(folder / kPluginName).string(),
                     (folder.parent_path() / "libexec" / "trainwright" / kPluginName).string()};
  }
  return files;
}

CudaBackend LoadCudaBackend(const CudaBackendFiles& files) {
  std::string problem;
  if (Load(files.driver, &problem) == nullptr) {
    return Refused(false, "no NVIDIA driver: " + problem, "use --device cpu, or install the driver");
  }
  const std::string path = FirstExisting(files.plugins);
  if (path.empty())
    return Refused(true, "no CUDA plugin: none of " + Joined(files.plugins) + " exists", kBuildHint);
  if (Load(files.torch_cuda, &problem) == nullptr) return WithoutTorchCuda(files.torch_cuda, problem);
  void* library = Load(path, &problem);
  if (library == nullptr) {
    return Refused(true, "the CUDA plugin cannot be loaded: " + problem,
                   "build the plugin and the program against the same torch");
  }
  const auto entry = reinterpret_cast<CudaPluginFunction*>(dlsym(library, kCudaPluginSymbol));
  if (entry == nullptr) return Refused(true, path + " is no trainwright CUDA plugin", kBuildHint);
  const CudaPlugin* plugin = entry();
  if (const std::string mismatch = Mismatch(*plugin); !mismatch.empty()) {
    return Refused(true, "the CUDA plugin " + path + " " + mismatch,
                   "build the plugin and the program together");
  }
  char words[512] = "";
  const int32_t count = plugin->device_count(words, sizeof(words));
  if (count < 1) {
    return Refused(
        true, count == 0 ? "the driver shows no GPU" : "the driver cannot be used: " + std::string(words),
        "see nvidia-smi and CUDA_VISIBLE_DEVICES");
  }
  CudaDeviceInfo info{};
  if (!plugin->device_info(0, &info)) {
    return Refused(true, "the driver does not report what GPU 0 is", "see nvidia-smi");
  }
  if (const std::string too_old = WhyTooOld(info); !too_old.empty()) {
    return Refused(true, too_old, "use --device cpu");
  }
  if (WasAskedTooEarly()) {
    return Refused(true, "this process asked torch for a GPU before the CUDA backend was loaded",
                   "this is a fault of the program: please report it");
  }
  // Torch's allocator of GPU memory: what caps it or asks it comes before the first tensor.
  if (HasCudaHooks()) at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  plugin->register_operators();
  // Where it is missing or cannot be loaded, ranks exchange through the host.
  Load((std::filesystem::path(path).parent_path() / kNcclName).string(), &problem);
  return {.plugin = plugin, .has_driver = true};
}

const CudaBackend& ProcessCudaBackend() {
  static const CudaBackend backend = LoadCudaBackend(DefaultCudaBackendFiles());
  return backend;
}

}  // namespace trainwright
