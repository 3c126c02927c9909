/// The CUDA implementations of the operators in ops.h, product_ops.h and fp8_ops.h, over the torch-free
/// launches of *kernels.h and epilogue_product.h: they check their tensors, make scratch memory of the
/// tensors' device and launch on its current stream. They name no part of torch's CUDA libraries, so that
/// the same functions run the emulated kernels in tests.
#pragma once

#include "lib/nn/fp8_ops.h"
#include "lib/nn/ops.h"
#include "lib/nn/product_ops.h"

namespace trainwright::cuda {

/// Each has the type and meaning of its namesake there.
/// \throws c10::Error on tensors that are not contiguous or not of one device, and where a launch fails
namespace operators {
decltype(ops::RoundInto) RoundInto;
decltype(ops::AddRmsNorm) AddRmsNorm;
decltype(ops::RmsNormAgain) RmsNormAgain;
decltype(ops::RmsNormBackward) RmsNormBackward;
decltype(ops::AddLayerNorm) AddLayerNorm;
decltype(ops::LayerNormAgain) LayerNormAgain;
decltype(ops::LayerNormBackward) LayerNormBackward;
decltype(ops::Gelu) Gelu;
decltype(ops::GeluBackward) GeluBackward;
decltype(ops::AddBias) AddBias;
decltype(ops::BiasBackward) BiasBackward;
decltype(ops::Rope) Rope;
decltype(ops::JoinHeads) JoinHeads;
decltype(ops::Swiglu) Swiglu;
decltype(ops::SwigluBackward) SwigluBackward;
decltype(ops::SoftmaxCrossEntropy) SoftmaxCrossEntropy;
decltype(ops::HeadRows) HeadRows;
decltype(ops::Dropout) Dropout;
decltype(ops::ScaleColumnsBackward) ScaleColumnsBackward;
decltype(ops::DequantizeNf4) DequantizeNf4;
decltype(ops::Embed) Embed;
decltype(ops::AddEmbedding) AddEmbedding;
decltype(ops::EmbedBackward) EmbedBackward;
decltype(ops::SumOfSquares) SumOfSquares;
decltype(ops::FinishStep) FinishStep;
decltype(ops::AdamWBf16Moments) AdamWBf16Moments;
decltype(ops::Lion) Lion;
decltype(ops::AdamW8Bit) AdamW8Bit;
decltype(ops::DiagonalScan) DiagonalScan;
decltype(ops::DiagonalScanBackward) DiagonalScanBackward;
decltype(ops::Multiply) Multiply;
decltype(ops::LinearWithBias) LinearWithBias;
decltype(ops::LinearWithGelu) LinearWithGelu;
decltype(ops::LinearBackwardIntoGelu) LinearBackwardIntoGelu;
decltype(ops::LinearGradients) LinearGradients;
decltype(ops::Fp8Scale) Fp8Scale;
decltype(ops::Fp8Encode) Fp8Encode;
decltype(ops::Fp8Product) Fp8Product;
}  // namespace operators

/// Calls `visit.operator()<&operators::RoundInto>("round_into")` and so on: each operator and its name in
/// torch's library "trainwright".
template <typename Visitor>
void ForEachOperator(const Visitor& visit) {
  visit.template operator()<&operators::RoundInto>("round_into");
  visit.template operator()<&operators::AddRmsNorm>("add_rms_norm");
  visit.template operator()<&operators::RmsNormAgain>("rms_norm_again");
  visit.template operator()<&operators::RmsNormBackward>("rms_norm_backward");
  visit.template operator()<&operators::AddLayerNorm>("add_layer_norm");
  visit.template operator()<&operators::LayerNormAgain>("layer_norm_again");
  visit.template operator()<&operators::LayerNormBackward>("layer_norm_backward");
  visit.template operator()<&operators::Gelu>("gelu");
  visit.template operator()<&operators::GeluBackward>("gelu_backward");
  visit.template operator()<&operators::AddBias>("add_bias");
  visit.template operator()<&operators::BiasBackward>("bias_backward");
  visit.template operator()<&operators::Rope>("rope");
  visit.template operator()<&operators::JoinHeads>("join_heads");
  visit.template operator()<&operators::Swiglu>("swiglu");
  visit.template operator()<&operators::SwigluBackward>("swiglu_backward");
  visit.template operator()<&operators::SoftmaxCrossEntropy>("softmax_cross_entropy");
  visit.template operator()<&operators::HeadRows>("head_rows");
  visit.template operator()<&operators::Dropout>("dropout");
  visit.template operator()<&operators::ScaleColumnsBackward>("scale_columns_backward");
  visit.template operator()<&operators::DequantizeNf4>("dequantize_nf4");
  visit.template operator()<&operators::Embed>("embed");
  visit.template operator()<&operators::AddEmbedding>("add_embedding");
  visit.template operator()<&operators::EmbedBackward>("embed_backward");
  visit.template operator()<&operators::SumOfSquares>("sum_of_squares");
  visit.template operator()<&operators::FinishStep>("finish_step");
  visit.template operator()<&operators::AdamWBf16Moments>("adamw_bf16_moments");
  visit.template operator()<&operators::Lion>("lion");
  visit.template operator()<&operators::AdamW8Bit>("adamw_8bit");
  visit.template operator()<&operators::DiagonalScan>("diagonal_scan");
  visit.template operator()<&operators::DiagonalScanBackward>("diagonal_scan_backward");
  visit.template operator()<&operators::Multiply>("multiply");
  visit.template operator()<&operators::LinearWithBias>("linear_with_bias");
  visit.template operator()<&operators::LinearWithGelu>("linear_with_gelu");
  visit.template operator()<&operators::LinearBackwardIntoGelu>("linear_backward_into_gelu");
  visit.template operator()<&operators::LinearGradients>("linear_gradients");
  visit.template operator()<&operators::Fp8Scale>("fp8_scale");
  visit.template operator()<&operators::Fp8Encode>("fp8_encode");
  visit.template operator()<&operators::Fp8Product>("fp8_product");
}

}  // namespace trainwright::cuda
