// A scan's blocks, in order, from unstuffed data: decoded by two streams of the same image where it is large enough.
//
// The second stream starts at a byte half-way as if an MCU began there, which is wrong but soon comes right by itself:
// Huffman codes synchronise. When the first stream arrives, both are followed symbol by symbol until they stand at the
// same bit before the same block of an MCU; from there on the second stream's blocks are the image's. Where they do not
// meet, the first stream goes on alone.
//
// The data is hostile. Impossible codes, runs beyond a block and missing bits among the blocks asked for are told apart
// from what the second stream sees while it is wrong, and from what follows the blocks asked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/jpeg/aligned.h"
#include "kernels/cpu/jpeg/entropy/entropy.h"
#include "kernels/cpu/jpeg/seek_recorder.h"

namespace millrace::kernels::jpeg {

class BlockConsumer {
 public:
  virtual ~BlockConsumer() = default;
  // The next `count` blocks: zig-zag order, DC as difference; the consumer must zero them. False: decode no more.
  virtual bool take(std::int16_t* blocks, std::int64_t count) = 0;
};

// Takes blocks from anywhere in the image, in rising order.
class SeekConsumer : public BlockConsumer {
 public:
  // The blocks that come next begin with this MCU.
  virtual bool seek(int line, int column, const DcPredictors& predictors) = 0;
  // Behind the last block taken.
  virtual DcPredictors predictors() const = 0;
  // From now on the DC level of each block taken goes to `levels`, too, one after the other; nullptr: no longer.
  virtual void note_levels(std::int16_t* levels) = 0;
};

// Makes an index. `exit`: one MCU as in the circle, from which a noting gate leads into the circle. A stream is sent
// through it once in a while, so that other look-ups cost nothing.
struct Recording {
  SeekRecorder& recorder;
  std::span<const McuBlock> exit;
};

struct ScanData {
  const std::uint8_t* data = nullptr;  // unstuffed; kDataPadding zeroed bytes follow
  std::size_t size = 0;
  std::span<const McuBlock> mcu;         // circular
  std::int64_t first_bit = 0;            // where the first block begins: an MCU's
  std::int64_t first = 0;                // its number
  std::int64_t blocks = 0;               // to decode up to, counted from the image's first
  std::size_t expected = 0;              // bytes that they probably take, for dividing the work
  const Recording* recording = nullptr;  // nullptr: no index is wanted
  bool ends_data = false;                // less than a byte may follow the blocks
};

// How many bit streams work on an image.
enum class Streams : std::uint8_t { kOne, kTwo };

enum class ScanEnd { kDone, kStopped, kOdd };

// The buffers of two streams. Thread-bound(the lane that owns it).
class ScanDecoder {
 public:
  explicit ScanDecoder(Target target) : kernels_(entropy_kernels(target)) {}

  // kStopped: the consumer wanted no more. kOdd: the data is damaged, or another decoder should judge it.
  ScanEnd decode(const ScanData& scan, BlockConsumer& consumer);

  // As decode(), by one stream from end to end.
  ScanEnd decode_alone(const ScanData& scan, BlockConsumer& consumer);

 private:
  // A place between two symbols. `coefficient` 0: the DC coefficient comes next.
  struct Place {
    std::int64_t bit = 0;
    const McuBlock* block = nullptr;
    int coefficient = 0;
    std::int64_t index = 0;  // of the block
  };
  struct Stream {
    AlignedBuffer memory;
    std::vector<Note> notes;    // of gates passed that note_places() has not seen
    std::vector<Place> stands;  // before windows in which the last block may be, while an index is made
    Cursor cursor;
    bool may_end = false;    // in any of its windows
    std::int64_t index = 0;  // of the block at the memory's beginning
    Place before_last_run;   // kept near the end of the data only

    // The first block; the one before it is never used.
    char* base() { return reinterpret_cast<char*>(memory.data()) + kBlockBytes; }
    std::int64_t offset_of(std::uintptr_t address) {
      return static_cast<std::int64_t>(address - reinterpret_cast<std::uintptr_t>(base()));
    }
    std::int64_t complete() { return offset_of(cursor.last + 1) / kBlockBytes; }
    // Bytes up to the end of the block that is being decoded.
    std::int64_t extent() { return offset_of(cursor.last | (kBlockBytes - 1)) + 1; }
    std::int64_t bad_block() { return offset_of(cursor.bad) / kBlockBytes; }
  };

  bool prepare(Stream& stream);
  void start(Stream& stream, std::int64_t bit, std::int64_t index, bool may_end);
  void clear(Stream& stream);
  int chunks_before_end(const Stream& stream) const;
  bool is_gate_due();
  void prepare_window(Stream& stream, bool gate) const;
  void run(Stream& stream);
  void run_both(Stream& first, Stream& second);
  ScanEnd deliver(Stream& stream, std::int64_t skipped, std::int64_t end);
  void note_places(Stream& stream) const;
  static void drop(Stream& stream, std::int64_t count);
  bool note_end();
  ScanEnd advance(Stream& stream, std::int64_t end);
  ScanEnd speculate();
  ScanEnd join(std::int64_t guess);
  bool meet(Place& first, Place& second) const;
  void send_through_gate(Stream& stream) const;
  bool step(Place& place) const;
  bool step_dc(Place& place) const;
  bool step_symbol(Place& place) const;
  Place place_of(Stream& stream) const;
  std::int64_t position(const Stream& stream) const { return bit_position(stream.cursor, scan_.data); }
  bool ends_inside_data() const;

  const EntropyKernels& kernels_;
  ScanData scan_;
  BlockConsumer* consumer_ = nullptr;
  std::int64_t end_bit_ = 0;
  std::int64_t sure_from_ = 0;  // the block from which on sure_ is
  int windows_ = 0;             // since streams were last sent through a gate
  Stream streams_[2];
  Stream* sure_ = &streams_[0];  // its blocks are the image's
  Stream* guess_ = &streams_[1];
};

}  // namespace millrace::kernels::jpeg
