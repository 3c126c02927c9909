/// What one family alone has in a ModelConfig: a value of a type that the family chooses.
#pragma once

#include <memory>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {

/// A value: copies are equal, and share what never changes.
class FamilyFields {
 public:
  FamilyFields() = default;  ///< none
  /// \param value has operator==
  template <typename T>
  static FamilyFields Of(T value) {
    FamilyFields fields;
    fields.held_ = std::make_shared<const Holder<T>>(std::move(value));
    return fields;
  }
  /// What Of took: a value of another type, or none, is an error of the program.
  template <typename T>
  const T& As() const {
    const auto* holder = dynamic_cast<const Holder<T>*>(held_.get());
    TRAINWRIGHT_CHECK(holder != nullptr);
    return holder->value;
  }
  bool operator==(const FamilyFields& other) const {
    if (held_ == nullptr || other.held_ == nullptr) return held_ == other.held_;
    return held_->Equals(*other.held_);
  }

 private:
  struct Held {
    virtual ~Held() = default;
    virtual bool Equals(const Held& other) const = 0;
  };
  template <typename T>
  struct Holder final : Held {
    explicit Holder(T given) : value(std::move(given)) {}
    bool Equals(const Held& other) const override {
      const auto* same = dynamic_cast<const Holder*>(&other);
      return same != nullptr && same->value == value;
    }
    const T value;
  };

  std::shared_ptr<const Held> held_;
};

}  // namespace trainwright
