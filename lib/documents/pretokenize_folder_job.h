/// `pretokenize -o DIR/`: a token stream for each input, and none of them twice.
#pragma once

#include "lib/documents/pretokenize_job.h"
#include "lib/report/progress.h"

namespace trainwright {

/// Tokenizes each input into a stream of its own in the folder `options.output`. Streams that a former run
/// finished, whole, of the same input (path, size and time of change) and with the same options that shape
/// the content, are taken over; where a template says the time and SOURCE_DATE_EPOCH does not, the others get
/// that of these, too, which is reported. The streams in order hold what RunPretokenize gives as one,
/// document for document.
/// \returns the counts of the whole set, time_s of this run
/// \throws what RunPretokenize does; Error{kUsage} for what a folder cannot hold, or one in use;
///     Error{kBadInput} for an input that changed meanwhile, or a folder of something else. What is finished
///     stays.
PretokenizeReport RunPretokenizeToFolder(const PretokenizeJobOptions& options, ProgressMode progress);

}  // namespace trainwright
