// SPDX-License-Identifier: BSD-3-Clause
#ifndef POINTWISE_CODE_H_
#define POINTWISE_CODE_H_

#include <cstddef>
#include <cstdint>

#include <etx/abi.h>

namespace pointwise {

/// The operations, in the order of the build host's `Op`.
enum class Op : uint8_t {
  Load,
  Splat,
  Constant,
  Tensor,
  Store,
  Neg,
  Abs,
  Relu,
  Sqrt,
  Reciprocal,
  Exp,
  Tanh,
  Sigmoid,
  Add,
  Sub,
  Mul,
  Div,
  Minimum,
  Maximum,
  Count
};

struct Instruction {
  Op op;
  uint8_t target;
  uint8_t a;
  uint8_t b;
};
static_assert(sizeof(Instruction) == 4, "four bytes in the blob");

constexpr size_t kNameSize = 64;
constexpr size_t kMost = 255;

/// Data by name: `count` floats that outlive the method.
struct Named {
  const float* data;
  int64_t count;
};

/// A chain after validation. The pointers lead into the blob and the method's memory.
struct Code {
  uint16_t inputs;
  uint16_t outputs;
  uint16_t registers;
  uint16_t constants;
  uint16_t tensors;
  uint16_t shape_of;
  uint16_t instructions;
  int64_t block;
  const unsigned char* values;
  const Instruction* code;
  const Named* named;

  float constant(size_t index) const;
};

/// Reads and validates a blob: afterwards every index is in range, every register is written
/// before it is read and never by what reads it, those of constants once; outputs are stored once.
/// Errors: DelegateInvalidCompatibility, MemoryAllocationFailed, those of `named_data`.
etx_status parse(etx_init_context* context, const void* blob, size_t size, int64_t block,
                 Code** result);

/// Runs `code` on the elements [begin, end). `scratch` holds `registers * block` floats.
void run(const Code& code, const float* const* inputs, float* const* outputs, float* scratch,
         int64_t begin, int64_t end);

}  // namespace pointwise

#endif  // POINTWISE_CODE_H_
