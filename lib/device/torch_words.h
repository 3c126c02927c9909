/// What an exception says to a user.
#pragma once

#include <exception>
#include <string>

namespace trainwright {

/// The first line of what an exception says; of torch's without the trace that follows its words.
std::string WordsOf(const std::exception& exception);

}  // namespace trainwright
