/// Where the time of some optimizer steps went: the summary that --profile writes beside its trace.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/host_timeline.h"
#include "lib/base/profile_part.h"
#include "lib/profile/device_activity.h"

namespace trainwright {

/// All calls of one operator of the host, or all runs of one kernel of a device.
struct OperatorTime {
  std::string name;
  ProfilePart part = ProfilePart::kOther;
  int64_t calls = 0;
  int64_t self_ns = 0;     ///< without the operators inside it
  int64_t total_ns = 0;    ///< with them
  int64_t operations = 0;  ///< floating-point operations of the calls; 0: not counted
};

struct DeviceProfile {
  std::array<int64_t, kProfileParts> part_ns = {};  ///< of activities; on several streams they may overlap
  int64_t activities_ns = 0;                        ///< their sum
  int64_t busy_ns = 0;                              ///< in which any was under way
  std::vector<OperatorTime> kernels;                ///< copies and fills among them; the longest first
};

struct StepProfile {
  int64_t first_step = 0, last_step = 0;
  int64_t wall_ns = 0;  ///< of the steps, what is due after each (a save, an evaluation) included
  /// Self time of the training thread: they add up to wall_ns.
  std::array<int64_t, kProfileParts> part_ns = {};
  std::vector<OperatorTime> operators;  ///< the longest self time first
  std::optional<DeviceProfile> device;  ///< absent: the steps ran on the host alone
  /// Floating-point operations of the steps' GEMMs, those with epilogues and of the loss head among them.
  int64_t gemm_operations = 0;
  int64_t events_left_out = 0;  ///< of the trace, which is bounded; the sums have them
  std::string trace;            ///< its path in the run directory; empty: it could not be written

  int64_t steps() const { return last_step - first_step + 1; }
  /// Of GEMMs, in the time of their part: the device's where there is one, else the host's; 0: none.
  double gemm_operations_per_s() const;
};

/// \param timeline whose outermost pieces are the steps
/// \param activities of a device in that time; null: there is none. What does not lie in it is left out
StepProfile SummarizeSteps(const HostTimeline& timeline, const std::vector<DeviceActivity>* activities);

/// The fields of a record "profile" of trainwright-metrics(5), but for its step. Shares are of wall_time_s;
/// those of a device's activities, of their sum.
nlohmann::ordered_json EncodeStepProfile(const StepProfile& profile);

/// Two tables for people: the parts, and the operators and kernels that took longest.
std::string FormatStepProfile(const StepProfile& profile);

/// "gemm 61.2 %, attention 12.0 %, other 3.1 %", of a record: the longest parts first, of a device where the
/// record has one, else of the host. Empty where it is no such record.
std::string DescribeProfileRecord(const nlohmann::ordered_json& record);

}  // namespace trainwright
