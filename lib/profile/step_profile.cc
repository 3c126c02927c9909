#include "lib/profile/step_profile.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/base/units.h"
#include "lib/report/table.h"

namespace trainwright {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostOperators = 20;  // in a record and in a table
constexpr size_t kMostNamed = 6;       // parts in a sentence
constexpr size_t kLongestName = 60;    // of a kernel in a table: templates' names run to hundreds

double Seconds(int64_t ns) {
  return 1e-9 * static_cast<double>(ns);
}

double Share(int64_t ns, int64_t of_ns) {
  return of_ns > 0 ? static_cast<double>(ns) / static_cast<double>(of_ns) : 0;
}

std::string Percent(int64_t ns, int64_t of_ns) {
  return FormatFixed(100 * Share(ns, of_ns), 1);
}

std::string Milliseconds(int64_t ns, int64_t steps) {
  return FormatFixed(1e-6 * static_cast<double>(ns) / static_cast<double>(std::max<int64_t>(steps, 1)), 3);
}

void LongestFirst(std::vector<OperatorTime>* operators) {
  std::stable_sort(operators->begin(), operators->end(),
                   [](const OperatorTime& a, const OperatorTime& b) { return a.self_ns > b.self_ns; });
}

DeviceProfile SummarizeDevice(const std::vector<DeviceActivity>& activities) {
  DeviceProfile device;
  for (const DeviceActivity& activity : activities) {
    const ProfilePart part = PartOfActivity(activity);
    const int64_t time_ns = activity.end_ns - activity.start_ns;
    device.part_ns[static_cast<size_t>(part)] += time_ns;
    device.activities_ns += time_ns;
    const std::string name = ActivityName(activity);
    auto found = std::find_if(device.kernels.begin(), device.kernels.end(),
                              [&](const OperatorTime& kernel) { return kernel.name == name; });
    if (found == device.kernels.end()) {
      found = device.kernels.insert(device.kernels.end(), {.name = name, .part = part});
    }
    ++found->calls;
    found->self_ns += time_ns;
    found->total_ns += time_ns;
  }
  device.busy_ns = BusyNanoseconds(activities);
  LongestFirst(&device.kernels);
  return device;
}

/// Those that lie between the beginning and the end of what the host did.
std::vector<DeviceActivity> WithinSteps(const HostTimeline& timeline,
                                        const std::vector<DeviceActivity>& activities) {
  std::vector<DeviceActivity> within;
  std::copy_if(activities.begin(), activities.end(), std::back_inserter(within),
               [&](const DeviceActivity& activity) {
                 return activity.start_ns >= timeline.start_ns() && activity.end_ns <= timeline.end_ns();
               });
  return within;
}

ordered_json EncodeParts(const std::array<int64_t, kProfileParts>& part_ns, int64_t of_ns) {
  ordered_json parts = ordered_json::object();
  for (size_t part = 0; part < kProfileParts; ++part) {
    parts[kProfilePartNames[part]] = {{"time_s", Seconds(part_ns[part])},
                                      {"share", Share(part_ns[part], of_ns)}};
  }
  return parts;
}

ordered_json EncodeOperators(const std::vector<OperatorTime>& operators) {
  ordered_json array = ordered_json::array();
  for (const OperatorTime& each : operators) {
    if (array.size() == kMostOperators) break;
    array.push_back({{"name", each.name},
                     {"part", ProfilePartName(each.part)},
                     {"calls", each.calls},
                     {"self_time_s", Seconds(each.self_ns)},
                     {"time_s", Seconds(each.total_ns)},
                     {"operations", each.operations}});
  }
  return array;
}

std::string FormatParts(const StepProfile& profile) {
  std::vector<std::string> header = {"part", "ms a step", "%"};
  if (profile.device) header.insert(header.end(), {"device ms a step", "% of its work"});
  Table table(header);
  std::vector<size_t> order(kProfileParts);
  for (size_t part = 0; part < kProfileParts; ++part) order[part] = part;
  const auto& times = profile.device ? profile.device->part_ns : profile.part_ns;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return times[a] > times[b]; });
  for (const size_t part : order) {
    const int64_t device_ns = profile.device ? profile.device->part_ns[part] : 0;
    if (profile.part_ns[part] == 0 && device_ns == 0) continue;
    std::vector<std::string> row = {kProfilePartNames[part],
                                    Milliseconds(profile.part_ns[part], profile.steps()),
                                    Percent(profile.part_ns[part], profile.wall_ns)};
    if (profile.device) {
      row.push_back(Milliseconds(device_ns, profile.steps()));
      row.push_back(Percent(device_ns, profile.device->activities_ns));
    }
    table.AddRow(row);
  }
  return table.ToString();
}

/// \param computes whether the work is done in these times, and not only launched
std::string FormatOperators(const std::string& title, const std::vector<OperatorTime>& operators,
                            int64_t steps, bool computes) {
  Table table({title, "part", "calls", "self ms a step", "ms a step", "GFLOP/s"});
  for (size_t i = 0; i < std::min(operators.size(), kMostOperators); ++i) {
    const OperatorTime& each = operators[i];
    const bool counted = computes && each.operations > 0 && each.total_ns > 0;
    const std::string rate =
        counted ? FormatFixed(static_cast<double>(each.operations) / static_cast<double>(each.total_ns), 1)
                : "-";
    table.AddRow({each.name.size() <= kLongestName ? each.name : each.name.substr(0, kLongestName) + "...",
                  ProfilePartName(each.part), std::to_string(each.calls), Milliseconds(each.self_ns, steps),
                  Milliseconds(each.total_ns, steps), rate});
  }
  return table.ToString();
}

std::string FormatGemms(const StepProfile& profile) {
  if (profile.gemm_operations == 0) return "";
  const double operations_a_step = static_cast<double>(profile.gemm_operations) /
                                   static_cast<double>(std::max<int64_t>(profile.steps(), 1));
  return "GEMMs: " + FormatFixed(1e-9 * operations_a_step, 3) + " GFLOP a step, " +
         FormatFixed(1e-9 * profile.gemm_operations_per_s(), 1) + " GFLOP/s" +
         (profile.device ? " in their time on the device" : "") + "\n\n";
}

}  // namespace

double StepProfile::gemm_operations_per_s() const {
  constexpr auto kGemm = static_cast<size_t>(ProfilePart::kGemm);
  const int64_t time_ns = device ? device->part_ns[kGemm] : part_ns[kGemm];
  return time_ns > 0 ? static_cast<double>(gemm_operations) / Seconds(time_ns) : 0;
}

StepProfile SummarizeSteps(const HostTimeline& timeline, const std::vector<DeviceActivity>* activities) {
  StepProfile profile;
  profile.wall_ns = timeline.outermost_ns();
  profile.part_ns = timeline.self_ns();
  profile.events_left_out = timeline.events_left_out();
  for (const HostTotals& totals : timeline.totals()) {
    profile.operators.push_back({.name = std::string(totals.name),
                                 .part = totals.part,
                                 .calls = totals.calls,
                                 .self_ns = totals.self_ns,
                                 .total_ns = totals.total_ns,
                                 .operations = totals.operations});
    if (totals.part == ProfilePart::kGemm) profile.gemm_operations += totals.operations;
  }
  LongestFirst(&profile.operators);
  if (activities != nullptr) profile.device = SummarizeDevice(WithinSteps(timeline, *activities));
  return profile;
}

ordered_json EncodeStepProfile(const StepProfile& profile) {
  ordered_json device = nullptr;
  if (profile.device) {
    device = {{"busy_time_s", Seconds(profile.device->busy_ns)},
              {"idle_share", std::max(0.0, 1 - Share(profile.device->busy_ns, profile.wall_ns))},
              {"parts", EncodeParts(profile.device->part_ns, profile.device->activities_ns)},
              {"kernels", EncodeOperators(profile.device->kernels)}};
  }
  return {{"first_step", profile.first_step},
          {"last_step", profile.last_step},
          {"wall_time_s", Seconds(profile.wall_ns)},
          {"trace", profile.trace},
          {"events_left_out", profile.events_left_out},
          {"parts", EncodeParts(profile.part_ns, profile.wall_ns)},
          {"gemm",
           {{"operations", profile.gemm_operations}, {"operations_per_s", profile.gemm_operations_per_s()}}},
          {"operators", EncodeOperators(profile.operators)},
          {"device", device}};
}

std::string FormatStepProfile(const StepProfile& profile) {
  std::string text = FormatParts(profile) + "\n" + FormatGemms(profile);
  if (profile.device) {
    text += "the device was busy for " + Percent(profile.device->busy_ns, profile.wall_ns) +
            " % of the time\n\n" + FormatOperators("kernel", profile.device->kernels, profile.steps(), true) +
            "\n";
  }
  return text + FormatOperators("operator", profile.operators, profile.steps(), !profile.device);
}

std::string DescribeProfileRecord(const ordered_json& record) {
  const auto device = record.find("device");
  const bool on_device = device != record.end() && device->is_object();
  const ordered_json& of = on_device ? *device : record;
  const auto parts = of.find("parts");
  if (parts == of.end() || !parts->is_object()) return "";
  std::vector<std::pair<double, std::string>> shares;
  for (const auto& [name, part] : parts->items()) {
    if (!part.is_object() || !part.contains("share") || !part["share"].is_number()) continue;
    if (part["share"].get<double>() > 0) shares.emplace_back(part["share"].get<double>(), name);
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  double rest = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (i >= kMostNamed) {
      rest += shares[i].first;
      continue;
    }
    text += (i == 0 ? "" : ", ") + shares[i].second + " " + FormatFixed(100 * shares[i].first, 1) + " %";
  }
  if (rest > 0) text += ", the rest " + FormatFixed(100 * rest, 1) + " %";
  return text;
}

}  // namespace trainwright
