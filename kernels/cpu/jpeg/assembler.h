// From a scan's blocks, in order, to the pixels of a box: DC prediction, inverse DCT, chroma upsampling and colour, MCU
// row by MCU row. Only blocks that the box depends on pass through more than DC prediction. Samples live in planes of
// two MCU rows, which stay in the caches; pixels go where the caller wants them.
// A caller that wants no pixels gets the planes themselves, as `fast` does. Thread-bound(the lane that owns it).
//
// An image's packed coefficients are taken in another order: of each MCU row the blocks that are wanted, component by
// component, row by row.
#pragma once

#include <array>
#include <vector>

#include "kernels/base/deadline.h"
#include "kernels/cpu/jpeg/aligned.h"
#include "kernels/cpu/jpeg/dct/inverse_dct.h"
#include "kernels/cpu/jpeg/dct/packed_dct.h"
#include "kernels/cpu/jpeg/rows.h"
#include "kernels/cpu/jpeg/seek_decoder.h"
#include "kernels/cpu/plane/sample_plane.h"
#include "kernels/packed/packed_image.h"

namespace millrace::kernels::jpeg {

// Takes samples before chroma is smoothed and colours are converted.
class PlaneConsumer {
 public:
  virtual ~PlaneConsumer() = default;
  // Planes come from the first row on: before the first take(), and again where decoding starts over.
  virtual void begin() = 0;
  // Of each of the image's planes, the first ready[i] rows have been decoded as far as the box needs them, and of these
  // the last ones are there: those that came since the last call and as many before as were asked for. Rows are
  // readable 64 bytes beyond their samples.
  virtual void take(const SamplePlane* planes, const int* ready) = 0;
};

// Takes rows of finished pixels.
class PixelConsumer {
 public:
  virtual ~PixelConsumer() = default;
  // Rows come from the box's first on: before that, and again where decoding starts over.
  virtual void begin() = 0;
  // Where the box's row `y` goes: box.width pixels.
  virtual std::uint8_t* place(int y) = 0;
  // It is there.
  virtual void take(int y) = 0;
};

// What of the image is wanted: the pixels of `box` with the samples beside it that chroma smoothing looks at.
struct PlaneRequest {
  Box box;
  int rows_held = 0;  // of each plane, see PlaneConsumer
  std::array<int, 3> sides{8, 8,
                           8};  // of each component's blocks, samples: fewer than 8 come from a scaled inverse DCT
  PlaneConsumer& consumer;
};

class Assembler final : public SeekConsumer {
 public:
  explicit Assembler(Target target)
      : transform_(inverse_dct(target)), packed_dct_(target), rows_(pixel_row_kernels(target)) {}

  // Before the first block. False: no memory. REQUIRES: `box` lies inside header.size and is not empty. Pixels have
  // header.components channels.
  bool begin(const Header& header, const Box& box, PixelConsumer& pixels, const Deadline& deadline);
  // The same for planes.
  bool begin(const Header& header, const PlaneRequest& request, const Deadline& deadline);

  // The blocks that `box` needs, from the first of the scan.
  std::int64_t blocks_needed() const;
  std::int64_t blocks_of_image() const;
  McuWindow window() const { return {lines_, columns_}; }

  // False: is_late(), or a block is out of the ordinary.
  bool take(std::int16_t* blocks, std::int64_t count) override;
  bool seek(int line, int column, const DcPredictors& predictors) override;
  DcPredictors predictors() const override { return predictors_; }
  void note_levels(std::int16_t* levels) override;

  // All that is wanted, instead of blocks from a scan. False: is_late(), or a block is out of the ordinary.
  // REQUIRES: begin() had the image's header().
  bool take(const packed::PackedImage& image);

  bool is_complete() const { return next_row_ == box_.top + box_.height; }
  bool is_late() const { return late_; }

  void trim(std::size_t bytes) { memory_.trim(bytes); }

 private:
  struct Plane {
    std::uint8_t* samples = nullptr;  // the first needed column
    std::ptrdiff_t stride = 0;
    int rows = 0;       // a power of two; side * v for each MCU row held
    int side = kBlock;  // samples of a block
    int first = 0;      // of the needed columns

    std::uint8_t* row(int y) const { return samples + (y & (rows - 1)) * stride; }
  };
  // A block of an MCU: where its samples go next.
  struct Place {
    int component = 0;
    int side = kBlock;
    int step = 0;               // samples from MCU to MCU
    std::ptrdiff_t offset = 0;  // from the MCU's first sample in the plane
    std::ptrdiff_t stride = 0;
    std::uint8_t* out = nullptr;
    const Dequantiser* dequantiser = nullptr;
  };
  // Blocks of a group that are wanted in each MCU row.
  struct Piece {
    std::size_t group = 0;  // of the MCU row's
    int component = 0;
    int first = 0, count = 0;
    std::ptrdiff_t offset = 0;  // from the MCU row's first needed sample in the plane
  };
  bool begin(const Header& header, const Box& box, const Deadline& deadline);
  void choose_pieces(const packed::Grid& grid);
  bool add_packed_row(const packed::PackedImage& image);
  std::uint8_t* mcu_row(const Plane& plane) const;
  void choose_range();
  bool reserve_planes();
  void place_blocks();
  void begin_mcu_row();
  bool is_wanted() const;
  std::int64_t blocks_to_border() const;
  bool skip_blocks(std::int16_t* blocks, std::int64_t count);
  bool add_blocks(std::int16_t* blocks, std::int64_t count);
  bool add_job(const Place& place, std::int16_t* block);
  bool flush();
  bool end_mcu_row();
  void make_rows();
  void hand_over_planes();
  void make_row(int y);
  const std::uint8_t* full_chroma(const Plane& plane, int y, std::uint8_t* row);
  void extend(std::uint8_t* row) const;

  const InverseDct& transform_;
  const PackedDct packed_dct_;
  const PixelRowKernels& rows_;

  // The image.
  Size size_;
  int components_ = 0;
  int h_ = 1, v_ = 1;  // luma samples a chroma sample stands for
  McuRange mcus_;      // of the image, end: how many columns and rows there are
  Box box_;
  PixelConsumer* pixels_ = nullptr;    // either of them
  PlaneConsumer* consumer_ = nullptr;  // who gets what the fast inverse DCT makes
  int lines_held_ = 2;                 // MCU rows in the planes, a power of two
  std::array<int, 3> sides_{kBlock, kBlock, kBlock};
  Deadline deadline_;
  Dequantiser dequantisers_[3];

  // What the box needs.
  McuRange columns_, lines_;
  Plane planes_[3];
  AlignedBuffer memory_;
  std::uint8_t* upsampled_[2] = {};
  std::int16_t* sums_ = nullptr;

  // Where we are.
  Place places_[kMostBlocks];
  int blocks_in_mcu_ = 0, at_ = 0, column_ = 0, line_ = 0;
  DcPredictors predictors_{};
  std::int16_t unnoted_ = 0;
  std::int16_t* level_ = &unnoted_;  // where the next block's goes
  std::ptrdiff_t level_step_ = 0;
  int next_row_ = 0;
  bool late_ = false;
  static constexpr int kJobs = 64;
  BlockJob jobs_[kJobs];
  int job_count_ = 0;

  std::vector<Piece> pieces_;  // of a packed image
};

}  // namespace millrace::kernels::jpeg
