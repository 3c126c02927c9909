/// What a tokenizer.json file does to a text before it is cut: its normalizers, one after the other.
///
/// Immutable after construction and thread-safe. Each step is linear in the text.
/// \source the normalizers of Hugging Face tokenizers, v0.23, what looks like a mistake included: Precompiled
///     replaces a grapheme of less than six bytes by what the shortest beginning of it becomes
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tok/character_map.h"
#include "lib/tok/unicode.h"

namespace trainwright {

struct NormalizerStep {
  enum class Kind {
    kForm,          ///< to the normalisation form `form`
    kLowercase,     ///< each character by itself
    kStripAccents,  ///< takes marks out
    kStrip,         ///< takes white space off the ends that `left` and `right` say
    kNmt,           ///< takes some control characters out, makes others and some spaces ' '
    kReplace,       ///< `pattern`, from left to right, by `content`
    kReplaceRuns,   ///< runs of at least `shortest_run` spaces by `content`
    kReplaceStart,  ///< `pattern`, or with `or_space` ' ', at the beginning by `content`
    kTrimSpaces,    ///< takes ' ' off both ends
    kPrepend,       ///< puts `content` before a text that is not empty
    kPrecompiled,   ///< by `map`
    kBert           ///< the four that follow
  };
  Kind kind = Kind::kForm;
  NormalForm form = NormalForm::kNfc;
  std::string pattern, content;
  size_t shortest_run = 1;
  bool any_white_space = false;  ///< kReplaceRuns: not ' ' alone
  bool or_space = false;         ///< kReplaceStart
  bool left = false, right = false;
  std::shared_ptr<const CharacterMap> map;
  bool clean_text = false, space_chinese = false, strip_accents = false, lowercase = false;
};

class TextNormalizer {
 public:
  explicit TextNormalizer(std::vector<NormalizerStep> steps = {});

  bool empty() const { return steps_.empty(); }
  /// Whether white space at the beginning of a text may be lost.
  bool strips_left() const;

  /// \param text valid UTF-8
  /// \param prepend whether steps of the kind kPrepend do anything
  /// \param out is written over; valid UTF-8
  /// \returns whether its first character stands for the first one of `text`, as the library keeps account
  bool Normalize(std::string_view text, bool prepend, std::string* out) const;

 private:
  struct Step : NormalizerStep {
    std::vector<uint8_t> ascii;    // of kPrecompiled: what becomes of an ASCII character beside ASCII
    bool keeps_printable = false;  // of kPrecompiled: whether printable ASCII stays as it is
  };
  static bool Apply(const Step& step, std::string_view text, bool prepend, std::string* out);

  std::vector<Step> steps_;
};

}  // namespace trainwright
