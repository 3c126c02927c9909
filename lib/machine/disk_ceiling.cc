#include "lib/machine/disk_ceiling.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/base/units.h"

namespace trainwright {
namespace {

constexpr size_t kAlignment = 4096, kMostSampleBytes = 4 << 20;
constexpr uint64_t kSamples = 16;  // of a whole budget, where that does not make them too large

class UnnamedFile {
 public:
  UnnamedFile(const std::string& folder, int flags) : fd_(open(folder.c_str(), O_TMPFILE | flags, 0600)) {
    if (fd_ >= 0 || errno != EOPNOTSUPP) return;
    std::string name = folder + "/.gpu-probe-XXXXXX";  // file systems without nameless files
    fd_ = mkostemp(name.data(), flags & ~O_WRONLY);
    if (fd_ >= 0) unlink(name.c_str());
  }
  ~UnnamedFile() {
    if (fd_ >= 0) close(fd_);
  }
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

void WriteAt(int fd, const uint8_t* data, size_t size, uint64_t offset, const std::string& folder) {
  while (size > 0) {
    const ssize_t written = pwrite(fd, data, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw SystemError(folder, "write", written == 0 ? ENOSPC : errno);
    data += written;
    size -= static_cast<size_t>(written);
    offset += static_cast<uint64_t>(written);
  }
}

}  // namespace

Measurement MeasureDiskWrite(const std::string& folder, const DiskBudget& budget) {
  TRAINWRIGHT_CHECK(budget.size_bytes >= kLeastDiskBytes);
  const size_t sample_bytes =
      std::min<uint64_t>(budget.size_bytes / kSamples, kMostSampleBytes) / kAlignment * kAlignment;
  const uint64_t writes = budget.size_bytes / sample_bytes;
  const std::unique_ptr<uint8_t, decltype(&std::free)> data(
      static_cast<uint8_t*>(std::aligned_alloc(kAlignment, sample_bytes)), &std::free);
  if (data == nullptr) throw SystemError("memory", "allocation", ENOMEM);
  const Rng rng(0, "gpu-probe disk");
  for (size_t i = 0; i < sample_bytes / sizeof(uint64_t); ++i) {
    const uint64_t bits = rng.Bits(i);
    std::memcpy(data.get() + i * sizeof(bits), &bits, sizeof(bits));
  }

  std::string method = "O_DIRECT, fdatasync";
  auto file = std::make_unique<UnnamedFile>(folder, O_WRONLY | O_DIRECT | O_CLOEXEC);
  // A file system may refuse the flag at once or at the first write.
  if (file->fd() < 0 || pwrite(file->fd(), data.get(), kAlignment, 0) != static_cast<ssize_t>(kAlignment)) {
    method = "fdatasync";
    file = std::make_unique<UnnamedFile>(folder, O_WRONLY | O_CLOEXEC);
    if (file->fd() < 0) throw SystemError(folder, "making a file", errno);
  }

  uint64_t offset = 0;
  const RateWork work{.amount = static_cast<double>(sample_bytes),
                      .run =
                          [&] {
                            WriteAt(file->fd(), data.get(), sample_bytes, offset, folder);
                            if (fdatasync(file->fd()) != 0) throw SystemError(folder, "fdatasync", errno);
                            offset += sample_bytes;
                          },
                      .finish = {}};
  Measurement measured{.what = "disk_write", .device = "disk", .method = method};
  measured.size = "samples of " + FormatBytes(sample_bytes);
  measured.unit = "byte/s";
  measured.rate = MeasureRate(work, {.time_s = budget.time_s,
                                     .warmup_s = 0,
                                     .least_sample_s = 0,
                                     .most_samples = static_cast<int>(writes) - 1});  // one warms up
  return measured;
}

}  // namespace trainwright
