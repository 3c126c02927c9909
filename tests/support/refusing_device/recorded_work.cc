#include "tests/support/refusing_device/recorded_work.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "lib/base/profile_scope.h"
#include "tests/support/refusing_device/device_clock.h"
#include "tests/support/refusing_device/device_memory.h"

namespace trainwright {

struct RecordedGraph {
  std::vector<std::function<void()>> work;
  test::DeviceMemoryContents before;
};

namespace test {
namespace {

constexpr size_t kKernelsThatFit = 50;

thread_local RecordedGraph* recording = nullptr;
thread_local bool repeating = false;
std::atomic<int> failing[2] = {0, 0};  // by FailRecording::Where

const char* Begin(int32_t, RecordedGraph** graph) {
  *graph = new RecordedGraph;
  if (failing[FailRecording::kAtTheBeginning] > 0) return "no graphs today";
  (*graph)->before = DeviceMemoryContents::Now();
  recording = *graph;
  return nullptr;
}

const char* End(RecordedGraph* graph, bool) {
  recording = nullptr;
  graph->before.PutBack();  // what was recorded has not run
  graph->before = {};
  return nullptr;
}

const char* Launch(RecordedGraph* graph) {
  CountGraph();
  repeating = true;
  const ProfiledThread of_the_device(nullptr);  // what a device does is no work of the host
  for (const auto& work : graph->work) work();
  repeating = false;
  return nullptr;
}

void Destroy(RecordedGraph* graph) {
  delete graph;
}

constexpr DeviceGraphPlugin kGraphs = {.begin = &Begin, .end = &End, .launch = &Launch, .destroy = &Destroy};

}  // namespace

bool IsRecording() {
  return recording != nullptr;
}

bool IsRepeating() {
  return repeating;
}

void Keep(std::function<void()> work) {
  recording->work.push_back(std::move(work));
  TORCH_CHECK_WITH(OutOfMemoryError,
                   failing[FailRecording::kInTheMiddle] == 0 || recording->work.size() < kKernelsThatFit,
                   "no memory for a graph");
}

const DeviceGraphPlugin* DeviceGraphs() {
  return &kGraphs;
}

FailRecording::FailRecording(Where where) : where_(where) {
  ++failing[where];
}
FailRecording::~FailRecording() {
  --failing[where_];
}

}  // namespace test
}  // namespace trainwright
