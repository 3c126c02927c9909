/// What `bench --claims ten` measures beside its claims: the kinds of scan from 512 to 32,768 tokens a sample
/// with as many tokens in every step, memory by category, recall by lag, and every line of the guide.
#pragma once

#include "lib/bench/claims.h"

namespace trainwright {

/// As SystemClaims::add_tables. JSON: "scans" ([{tokens, batch, scan, warmup_steps, timed_steps, time_ms,
/// throughput, memory, parameters}]; times are the median of the timed steps), "memory" ({category: bytes}),
/// "recall" ([{lag, init, accuracy, interval}]) and "guide" ([{line, text, here}]); what fails has "error" in
/// the place of its numbers.
void AddTenTables(const ClaimsWorkplace& workplace, double budget_s, ClaimsResult* result);

}  // namespace trainwright
