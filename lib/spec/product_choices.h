/// Which of a library's kernels computes each GEMM of a run on a GPU. Free of torch.
///
/// A library of GEMMs names several kernels for a shape, best guess first: candidates 0, 1 and so on. The
/// fastest is found by trying, once, before the first step of a run; it is kept for the whole run and stored
/// with it, for another kernel may add up in another order and give other bits. The numbers mean the same
/// as long as library and GPU are the same, which a run's state says (a difference warns).
///
/// Stored among DeviceChoices (device_choices.h). By themselves they are a text of JSON, which ranks send
/// each other, and which runs of before had as product_choices.json and as "products" in their states:
///
///   {"schema": "trainwright.product_choices/1", "candidates": {"<product>": n, ...}}
///
/// where <product> is the name of its operator, its type and its sizes: "linear_gradients bf16
/// 65536x768x3072". Of GEMMs with nothing before or after them ("matmul bf16->fp32 tn 768x65536x3072", n or t
/// as rows or columns of an operand are contiguous) candidate 0 is torch's kernel and c the library's c - 1.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trainwright {

/// By the GEMM's name.
using ProductChoices = std::map<std::string, int64_t>;

/// In the directory of a run of before.
inline constexpr char kProductChoicesFile[] = "product_choices.json";

/// The candidate to choose by the seconds that each took, in their order: the fastest, if it takes less than
/// 98 % of the first one's time, which noise seldom makes of nothing; else the first.
/// \param seconds of at least one; not finite: it failed
/// \returns its index; 0 where all failed
int64_t FastestCandidate(const std::vector<double>& seconds);

std::string EncodeProductChoices(const ProductChoices& choices);
/// \param place where the text is from, for errors
/// \throws Error{kBadInput} on what is no such text
ProductChoices DecodeProductChoices(const std::string& text, const std::string& place);

}  // namespace trainwright
