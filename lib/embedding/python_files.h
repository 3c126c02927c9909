/// The Python sources that are written beside the weights of a model that embeds: the texts of
/// lib/embedding/python, compiled in by the build.
#pragma once

#include <string_view>

namespace trainwright {

/// modeling_trainwright_bidirectional.py: transformers' models with bidirectional attention.
extern const std::string_view kModelingTrainwrightBidirectionalText;
/// trainwright_pooling.py: a module of sentence-transformers.
extern const std::string_view kTrainwrightPoolingText;

}  // namespace trainwright
