/// A timeline as a file that chrome://tracing and Perfetto open: the Trace Event Format of Chrome, its JSON
/// object form with complete events ("ph": "X"), times in microseconds from the first event.
///
/// Process 1 is the host, its thread 1 the training thread; each GPU is a process of its own from 1001 on,
/// each of its streams a thread. Events of a thread are in the order in which they began, outer ones first.
#pragma once

#include <vector>

#include "lib/base/host_timeline.h"
#include "lib/io/byte_sink.h"
#include "lib/profile/device_activity.h"

namespace trainwright {

/// Writes the whole trace, without committing it.
/// \param timeline whose pieces have all ended
/// \param activities sorted as SortActivities does; what does not lie within the timeline is left out
/// \throws Error{kIo}
void WriteChromeTrace(const HostTimeline& timeline, const std::vector<DeviceActivity>& activities,
                      ByteSink* sink);

}  // namespace trainwright
