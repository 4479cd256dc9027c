// From an image's blocks to a packed image (packed_image.h). All targets make the same bytes.
//
//   Encoder encoder;                       // one a thread
//   encoder.begin(header) && encoder.take(blocks, count) && ... && encoder.finish(bytes)
//
// Each MCU row is packed as soon as it is complete, so that its blocks come from the caches. Allocates nothing once it
// has seen the sizes that occur, but what `out` takes. Holds 64 KiB of remembered shapes, the largest image packed so
// far, twice, and an MCU row's blocks where they did not come in one piece. Thread-bound(the lane that owns it).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/target.h"
#include "kernels/jpeg/header.h"
#include "kernels/packed/pack_group.h"
#include "kernels/packed/packed_image.h"
#include "kernels/packed/shape_chooser.h"

namespace millrace::kernels::packed {

class Encoder {
 public:
  // REQUIRES: the processor has `target`.
  explicit Encoder(Target target = best_target());

  // An image's size, components, samplings and quantisation tables; of the header nothing else is used. What was begun
  // before is forgotten. False: no image of this kind can be packed, or there is no memory.
  bool begin(const jpeg::Header& header);

  // The next blocks, MCU by MCU as a scan has them (T.81 A.2.3): in zig-zag order, DC as level. False: what was begun
  // cannot be packed, and is forgotten: a coefficient is too large for all inverse DCTs to do it alike
  // (kernels/jpeg/ordinary.h), there are more blocks than the image has, or there is no memory.
  bool take(const std::int16_t* blocks, std::int64_t count);

  // The packed image. False: blocks are missing, or what was begun was forgotten.
  bool finish(std::vector<std::uint8_t>& out);

  // Gives back buffers of more than `bytes`.
  void trim(std::size_t bytes);

 private:
  // Memory that grows and keeps what is in it; not zeroed.
  struct Room {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::size_t size = 0;
    bool grow(std::size_t least, std::size_t kept);
  };
  bool forget();
  bool pack_mcu_row(const std::int16_t* blocks);
  bool pack_component(const std::int16_t* blocks, int component, int first_in_mcu);
  void put_head();

  PackGroup pack_group_;
  ShapeChooser chooser_;
  Room room_;  // the packed image as far as it is there
  Room row_;   // blocks of an incomplete MCU row

  bool is_begun_ = false;
  jpeg::Header header_;
  Grid grid_;
  std::array<std::uint8_t, 3> table_of_{};  // of each component, among those that are written
  std::array<std::uint8_t, 3> tables_{};    // the first component that has it
  std::uint8_t table_count_ = 0;
  std::array<Limits, 3> limits_;
  std::size_t end_ = 0;    // of what is in room_
  std::size_t group_ = 0;  // the next one
  int line_ = 0;           // the next MCU row
  std::int64_t held_ = 0;  // blocks in row_
};

}  // namespace millrace::kernels::packed
