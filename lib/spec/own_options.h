/// The options that only one objective, one optimizer or one family of models has, by name: numbers and
/// texts, which its description gives defaults. Torch-free.
#pragma once

#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/error.h"

namespace trainwright {

/// A number or a text.
class OwnValue {
 public:
  OwnValue() = default;  ///< 0
  template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
  OwnValue(Number number) : value_(static_cast<double>(number)) {}  // NOLINT: a number is a value
  OwnValue(std::string text) : value_(std::move(text)) {}           // NOLINT: likewise a text
  OwnValue(const char* text) : value_(std::string(text)) {}         // NOLINT

  bool is_number() const { return std::holds_alternative<double>(value_); }
  /// Of a value that is_number.
  double number() const { return std::get<double>(value_); }
  /// Of one that is not.
  const std::string& text() const { return std::get<std::string>(value_); }
  /// As it is written after NAME=: a whole number in digits alone, others in the fewest characters that read
  /// back as the same number.
  std::string ToString() const;
  bool operator==(const OwnValue&) const = default;

 private:
  std::variant<double, std::string> value_ = 0.0;
};

/// For messages of tests.
void PrintTo(const OwnValue& value, std::ostream* out);

using OwnOptions = std::map<std::string, OwnValue>;

/// What a description says about one.
struct OwnOption {
  std::string name;  ///< of states and NAME=VALUE: with underscores
  OwnValue initial = {};
  std::vector<std::string> choices = {};                    ///< of a text; empty: any
  double least = -std::numeric_limits<double>::infinity();  ///< of a number, like the next
  double most = std::numeric_limits<double>::infinity();
  bool whole = false;  ///< of a number: only whole ones
  /// Whether it says what the model is: a branch has its parent's, as PlanBranch demands it.
  bool fixed_in_branch = false;
  /// Whether it says how a step is computed and changes results by rounding alone: a resumed run may have
  /// another value.
  bool free_on_resume = false;
  std::string type_name = {};  ///< in the help: "N", "X", "FILE"; empty: the choices say it
  std::string help = {};       ///< of its flag; empty: it has none, and is given as NAME=VALUE

  bool has_flag() const { return !help.empty(); }
  /// Whether its value is the path of a file that the run reads.
  bool names_file() const { return type_name == "FILE"; }
  /// "query-max-len": its flag without dashes before it.
  std::string flag() const;
};

/// Null: none has the name.
const OwnOption* FindOwnOption(const std::vector<OwnOption>& described, const std::string& name);

/// Whether values that are no numbers can be given.
enum class OwnTexts { kRefused, kTaken };

/// \param asked NAME=VALUE each
/// \param flag for messages
/// \returns numbers where texts are refused; else each as it is written: a file may be named 007
/// \throws Error{kUsage} on text of another form, on a number that is not finite where texts are refused, and
///     on a name given twice
OwnOptions ParseOwnOptions(const std::vector<std::string>& asked, const std::string& flag,
                           OwnTexts texts = OwnTexts::kRefused);
/// NAME=VALUE each, as ParseOwnOptions takes them.
std::vector<std::string> FormatOwnOptions(const OwnOptions& options);

/// Whether a value as it was asked for is the same as one that is complete: 0.50 as the number 0.5, but 007
/// not as the text 7.
bool IsSameOwnValue(const OwnValue& asked, const OwnValue& complete);

/// As states hold them: numbers as numbers, texts as strings.
nlohmann::ordered_json EncodeOwnOptions(const OwnOptions& options);
/// \param name of the whole, for messages
/// \throws Error{kBadInput} on what is no object of numbers and texts
OwnOptions DecodeOwnOptions(const nlohmann::json& json, const std::string& name);

/// What was said, and the defaults of what was not: a state that was written before an option was there means
/// its default.
/// \param whose for messages: "the objective toy"
/// \throws Error{code} on a name that `defaults` lacks, and on a text in the place of a number
OwnOptions WithDefaults(const OwnOptions& said, const OwnOptions& defaults, ErrorCode code,
                        const std::string& whose);
/// The same of described options. A number in the place of a text is that text, and a text in the place of a
/// number the number that it writes.
/// \throws Error{code} besides on a value that is not one of the choices, or out of range: of code kUsage
///     naming the option's flag, if it has one
OwnOptions WithDescribed(const OwnOptions& said, const std::vector<OwnOption>& described, ErrorCode code,
                         const std::string& whose);

}  // namespace trainwright
