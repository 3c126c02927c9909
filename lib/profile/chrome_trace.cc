#include "lib/profile/chrome_trace.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "lib/base/bytes.h"

namespace trainwright {
namespace {

constexpr int kHostProcess = 1, kTrainingThread = 1, kFirstDeviceProcess = 1001;
constexpr size_t kBufferBytes = size_t{1} << 20;

/// A text of JSON; bytes that are not UTF-8 are replaced.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Microseconds with the nanoseconds behind the point.
std::string Microseconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof(text), "%lld.%03d", static_cast<long long>(ns / 1000),
                static_cast<int>(ns % 1000));
  return text;
}

/// Writes events one by one, so that memory does not grow with the trace.
class TraceWriter {
 public:
  TraceWriter(ByteSink* sink, int64_t start_ns) : sink_(sink), start_ns_(start_ns) {
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  }

  /// Names a process or a thread of one.
  /// \param what "process_name" or "thread_name"
  void Name(const char* what, int process, int64_t thread, const std::string& name) {
    Begin();
    text_ += "{\"ph\":\"M\",\"name\":\"" + std::string(what) + "\",\"pid\":" + std::to_string(process) +
             ",\"tid\":" + std::to_string(thread) + ",\"args\":{\"name\":" + Quoted(name) + "}}";
  }

  /// \param args members of an object, or empty
  void Complete(const std::string& name, ProfilePart part, int process, int64_t thread, int64_t start_ns,
                int64_t end_ns, const std::string& args) {
    Begin();
    text_ += "{\"ph\":\"X\",\"name\":" + Quoted(name) + ",\"cat\":\"" + ProfilePartName(part) +
             "\",\"pid\":" + std::to_string(process) + ",\"tid\":" + std::to_string(thread) +
             ",\"ts\":" + Microseconds(start_ns - start_ns_) + ",\"dur\":" + Microseconds(end_ns - start_ns);
    text_ += args.empty() ? "}" : ",\"args\":{" + args + "}}";
    if (text_.size() >= kBufferBytes) Flush();
  }

  void End() {
    text_ += "\n]}\n";
    Flush();
  }

 private:
  void Begin() {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
  }
  void Flush() {
    sink_->Write(AsBytes(text_));
    text_.clear();
  }

  ByteSink* sink_;
  int64_t start_ns_;
  std::string text_;
  bool first_ = true;
};

std::string ArgsOf(const HostEvent& event) {
  if (event.number >= 0) return "\"step\":" + std::to_string(event.number);
  return event.operations > 0 ? "\"operations\":" + std::to_string(event.operations) : "";
}

int ProcessOf(const DeviceActivity& activity) {
  return kFirstDeviceProcess + activity.device;
}

}  // namespace

void WriteChromeTrace(const HostTimeline& timeline, const std::vector<DeviceActivity>& activities,
                      ByteSink* sink) {
  const std::vector<HostEvent>& events = timeline.events();
  const int64_t start_ns = timeline.start_ns(), end_ns = timeline.end_ns();
  TraceWriter writer(sink, start_ns);
  writer.Name("process_name", kHostProcess, 0, "host");
  writer.Name("thread_name", kHostProcess, kTrainingThread, "training thread");
  std::set<int> processes;
  std::set<std::pair<int, int64_t>> streams;
  for (const DeviceActivity& activity : activities) {
    const int process = ProcessOf(activity);
    if (processes.insert(process).second) {
      writer.Name("process_name", process, 0, "GPU " + std::to_string(activity.device));
    }
    if (streams.emplace(process, activity.stream).second) {
      writer.Name("thread_name", process, activity.stream, "stream " + std::to_string(activity.stream));
    }
  }
  for (const HostEvent& event : events) {
    if (event.end_ns < event.start_ns) continue;  // under way
    writer.Complete(event.name, event.part, kHostProcess, kTrainingThread, event.start_ns, event.end_ns,
                    ArgsOf(event));
  }
  for (const DeviceActivity& activity : activities) {
    if (activity.start_ns < start_ns || activity.end_ns > end_ns) continue;
    writer.Complete(ActivityName(activity), PartOfActivity(activity), ProcessOf(activity), activity.stream,
                    activity.start_ns, activity.end_ns,
                    activity.bytes > 0 ? "\"bytes\":" + std::to_string(activity.bytes) : "");
  }
  writer.End();
}

}  // namespace trainwright
