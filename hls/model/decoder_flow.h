// The stages and FIFOs of a design, and what they do with the jobs of real pictures: how decoder.h predicts.
//
//   decoder_build.cc: which stage there is how often, and what is joined to what
//   decoder_work.cc: clocks and room of a token; calls that begin and end; images that are given to turns
//   decoder.cc: what came of it
//
// Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hls/model/dataflow.h"
#include "hls/model/decoder.h"

namespace millrace::hls::model {

enum Kind : int { kIn, kFetch, kEntropy, kGather, kIdct, kColour, kColumns, kRows, kWrite, kOut, kKinds };
inline constexpr const char* kNames[kKinds] = {"pcie in", "fetch",   "entropy", "gather", "idct",
                                               "colour",  "columns", "rows",    "write",  "pcie out"};
inline constexpr int kPixelChannels = 3;

class Decoder final : public Work {
 public:
  Decoder(const Design& design, const Card& card, std::span<const Job> jobs)
      : design_(design), card_(card), jobs_(jobs) {
    build();
  }
  Prediction run();

  Clocks clocks(int kind, Token token) const override;
  Emission emission(int kind, Token token) const override;
  void finished(int kind, std::size_t queue, Token token, Clocks now) override;
  void emptied(std::size_t fifo, Clocks now) override { idle_turn(fifo, now); }
  void timer(std::size_t which, Clocks now) override { begin_call(which, now); }

 private:
  struct Turn {
    std::size_t feed = 0, entropy = 0;
    Clocks since = 0, no_image = 0;
    bool has_image = false;
  };
  struct Unit {
    std::deque<std::size_t> arrived;  // calls whose bytes are on the card
    std::deque<std::uint32_t> ready;  // images of calls that began
    std::vector<Turn> turns;
    std::size_t back = 0;  // FIFO of finished calls
    int calls = 0;         // begun and not finished
    int unread = 0;        // finished, tensors still on the card
  };
  struct Call {
    std::uint32_t first = 0, end = 0, open = 0;  // images
    std::size_t unit = 0;
    double bytes_in = 0, bytes_out = 0;
    Clocks began = -1, done = 0;
  };

  void build();
  void build_unit(std::size_t unit);
  std::vector<std::size_t> build_resamplers(const std::vector<std::size_t>& lines);
  void build_group(const std::vector<std::size_t>& in, std::vector<std::size_t>& out);
  std::size_t add_kind(Kind kind, std::vector<Dataflow::Queue> queues, Clocks latency = 0, bool tells = false);
  std::vector<std::size_t> add_fifos(const char* name, std::size_t count, std::int64_t capacity);
  void make_calls();
  void begin_calls(std::size_t unit, Clocks now);
  void begin_call(std::size_t call, Clocks now);
  void idle_turn(std::size_t fifo, Clocks now);
  void feed(Unit& unit, Turn& turn, Clocks now);
  void image_part_done(std::uint32_t image, Clocks now);
  double per_clock(double gb) const { return gb * 1e3 / design_.clock_mhz; }  // bytes
  Clocks entropy_clocks(const Job& job, const McuWork& mcu, bool is_first) const;
  StageReport report_of(int kind) const;
  void report(Prediction& prediction) const;
  void rate(Prediction& prediction) const;

  const Design& design_;
  const Card& card_;
  std::span<const Job> jobs_;
  Dataflow flow_;
  std::vector<Unit> units_;
  std::vector<Call> calls_;
  std::vector<Clocks> done_;                                            // of images, as they end
  std::vector<std::uint8_t> parts_left_;                                // of each image: decoding it, writing it
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> turn_of_;  // a feed's unit and turn
  std::vector<std::vector<std::size_t>> stages_ = std::vector<std::vector<std::size_t>>(kKinds);
  std::map<std::string, std::vector<std::size_t>> fifos_;
  std::map<std::string, std::int64_t> capacities_;
  double memory_bytes_ = 0;
  std::int64_t blocks_in_ = 0, blocks_out_ = 0, pixels_out_ = 0;
};

}  // namespace millrace::hls::model
