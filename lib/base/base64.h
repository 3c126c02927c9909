/// Base64 with padding. Pure and thread-safe. \source RFC 4648, section 4
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trainwright {

inline constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// \returns nullopt for what is no base64
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace trainwright
