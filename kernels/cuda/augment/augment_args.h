// What the augmentation of pictures is given. Plain values, laid out alike on host and device. The host has checked
// everything (plan/picture_plan.h): the kernel trusts it.
//
// A picture on its way is words, one a pixel (red in the lowest byte, then green, then blue), in buffers of the job's
// scratch. Each step reads one buffer, `from`, and writes one, `to`: which, the host has divided up, so that sums of
// pictures need no copies.
#pragma once

#include <cstdint>

#include "kernels/augment/operation.h"
#include "kernels/cuda/reconstruct/reconstruct_args.h"

namespace millrace::kernels::cuda {

// What lies beyond the resized picture: a colour, or its pixels as numpy.pad's modes of these names have them.
enum class PadMode : std::uint8_t { kConstant, kEdge, kReflect, kSymmetric };

// What an AugmentStep is. Most operations are one; Pillow's blur is two transposes and six boxes, torchvision's is two
// steps, and flips and turns are kMove.
enum class AugmentKind : std::uint8_t {
  kSolarize,     // inverts values of at least `factor`
  kPosterize,    // values & `value`
  kSolarizeAdd,  // as Step::kSolarizeAdd
  kBrightness,
  kContrast,
  kAutocontrast,
  kEqualize,
  kSaturation,
  kHue,  // `table`: a bit for each hue, kernels::augment::falls_below()
  kGrey,
  kSharpness,
  kMove,    // pixel (x, y) is that at place[0] + x * place[1] + y * place[2]
  kShift,   // that at (x + place[0], y + place[1])
  kErase,   // columns place[0] to before place[2], rows place[1] to before place[3]
  kScale,   // `table`: for each column where it comes from, then for each row; kNowhere
  kFixed,   // 16 bits behind the point: first x, first y, to the next column in x and in y, to the next row likewise
  kSummed,  // `table`: doubles, to the next column in x and in y, and each row's first x and y
  kSample,  // `table`: the matrix, 8 doubles
  kAcross,  // torchvision's blur, to floats in three buffers; `value`: radius; `table`: weights from the middle on
  kDown,    // and back
  kBox,     // down the columns: place[0] is the radius, place[1] and [2] are inner and outer weight (BoxPass)
  kMix      // `value` pictures; `table`: buffer and weight of each; blended into the first of them by `factor`
};

inline constexpr std::uint32_t kNowhere = 0xffffffff;

struct AugmentStep {
  AugmentKind kind;
  Sampling sampling;            // kSample
  std::uint8_t perspective;     // kSample
  std::uint8_t from, to;        // buffers
  std::uint8_t planes[3];       // kAcross, kDown: buffers of floats
  std::uint8_t chained;         // maps values: after what the table of the step before makes of them
  std::uint8_t is_held;         // maps values: the next step is chained, and does it
  std::uint16_t width, height;  // of the result
  std::uint32_t fill;           // a pixel
  std::int32_t value;
  float factor;
  std::uint32_t table;  // in AugmentArgs::tables
  std::int32_t place[6];
};

// A part of the finished tensor that is overwritten.
struct ErasedBox {
  std::uint16_t left, top, width, height;
  std::uint32_t element[3];  // by channel, as the tensor has them; in the lower bytes
};

struct PictureJob {
  std::uint64_t picture;  // bytes from AugmentArgs::pictures: RGB of 8 bits, interleaved, without gaps
  std::uint64_t output;   // bytes from AugmentArgs::tensors
  std::uint64_t scratch;  // bytes from AugmentArgs::scratch, a multiple of 256
  std::uint32_t image;    // in AugmentArgs::status: others than kDone are left alone
  std::uint32_t first_step, steps;
  std::uint32_t first_box, boxes;
  std::uint32_t buffer_words;              // from one buffer to the next, a multiple of 64
  std::int32_t inner_width, inner_height;  // of the picture
  std::uint16_t width, height;             // of the tensor, and before the steps
  std::uint8_t result;                     // the buffer that is stored; without steps, none is used
  std::uint8_t is_padded;                  // the following count
  PadMode mode;
  std::uint32_t fill;  // a pixel
  std::int32_t resized_width, resized_height, inner_left, inner_top, shown_left, shown_top;
};

// Steps begin with the picture in buffer 0.
struct AugmentArgs {
  TensorSpec spec;  // of it layout, channels, element_bytes and patches count here
  const PictureJob* jobs;
  const AugmentStep* steps;
  const ErasedBox* boxes;
  const std::uint32_t* tables;
  const std::uint8_t* pictures;
  unsigned char* scratch;      // aligned to 256
  const std::uint32_t* store;  // as ReconstructArgs::store
  std::uint8_t* tensors;
  const Status* status;
};

inline constexpr int kAugmentThreads = 256;  // of a thread block: one for each entry of a table
inline constexpr int kAugmentBlocks = 4;     // on a multiprocessor: 64 registers a thread

struct AugmentShared {
  std::uint32_t counts[3][256];  // of values
  std::uint32_t store[3 * 256];
  double matrix[8];
  unsigned long long sum;
  std::uint8_t table[3][256];  // what becomes of a value
};
static_assert(sizeof(AugmentShared) <= 48 << 10);

}  // namespace millrace::kernels::cuda
