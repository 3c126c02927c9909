/// Reads values of a tokenizer.json file, and says which one is not what it should be.
/// \throws Error{kBadInput} from all functions
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainwright {

class TokenizerJsonValues {
 public:
  using Element = simdjson::dom::element;

  /// \param name of the file, for messages; outlives this
  explicit TokenizerJsonValues(const std::string& name) : name_(name) {}

  [[noreturn]] void Refuse(const std::string& problem, const std::string& place = "") const;
  /// \param what the library does and the suite does not
  [[noreturn]] void RefuseUnsupported(const std::string& what) const;

  /// A member that is there and not null.
  std::optional<Element> Member(Element object, std::string_view key) const;
  Element Required(Element object, std::string_view key, const std::string& place) const;
  std::string_view TextOf(Element value, const std::string& place) const;
  simdjson::dom::array ArrayOf(Element value, const std::string& place) const;
  simdjson::dom::object ObjectOf(Element value, const std::string& place) const;
  /// \param absent what a flag is that is not there
  bool FlagOf(Element object, std::string_view key, bool absent, const std::string& place) const;
  std::string_view RequiredText(Element object, std::string_view key, const std::string& place) const;
  /// Below 2^24.
  uint32_t IdOf(Element value, const std::string& place) const;
  std::string TypeOf(Element value, const std::string& place) const;
  /// The members of a Sequence, or the thing itself.
  std::vector<Element> Steps(Element value, const std::string& list, const std::string& place) const;
  [[noreturn]] void RefuseShape(const std::string& place) const;

 private:
  const std::string& name_;
};

}  // namespace trainwright
