#include "kernels/cpu/jpeg/decoder.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/jpeg/packing.h"
#include "kernels/jpeg/unstuff.h"

namespace millrace::kernels::jpeg {
namespace {

// Keeps what was built from an equal table.
bool build_once(bool (*build)(const HuffmanSpec&, HuffmanTable&), const HuffmanSpec& spec, HuffmanTable& table,
                std::optional<HuffmanSpec>& built) {
  if (built == spec) return true;
  built.reset();
  if (!build(spec, table)) return false;
  built = spec;
  return true;
}

// The first `left` blocks for who needs not be told where they are, because they come in order.
class InOrder final : public SeekConsumer {
 public:
  InOrder(BlockConsumer& consumer, std::int64_t left) : consumer_(consumer), left_(left) {}

  bool take(std::int16_t* blocks, std::int64_t count) override {
    const std::int64_t taken = std::min(count, left_);
    std::memset(blocks + taken * kCoefficients, 0, static_cast<std::size_t>((count - taken) * kBlockBytes));
    left_ -= taken;
    return consumer_.take(blocks, taken) && taken == count;
  }
  bool seek(int, int, const DcPredictors&) override { return true; }
  DcPredictors predictors() const override { return {}; }
  void note_levels(std::int16_t*) override {}

 private:
  BlockConsumer& consumer_;
  std::int64_t left_;
};

// All rows stay.
class Picture final : public PixelConsumer {
 public:
  explicit Picture(const MutableU8View& out) : out_(out) {}
  void begin() override {}
  std::uint8_t* place(int y) override { return out_.row(y); }
  void take(int) override {}

 private:
  MutableU8View out_;
};

}  // namespace

Decoder::Decoder(Target target, Streams streams, SegmentPath segments)
    : target_(target),
      streams_(streams),
      scan_(target),
      seek_(target, segments),
      restarts_(target, segments, streams, scan_),
      recorder_(target),
      assembler_(target) {}

Outcome Decoder::decode(const Header& header, const Box& box, const MutableU8View& out, const Deadline& deadline,
                        Seeking* seeking) {
  Picture picture(out);
  return decode_rows(header, box, picture, deadline, seeking);
}

Outcome Decoder::decode_rows(const Header& header, const Box& box, PixelConsumer& consumer, const Deadline& deadline,
                             Seeking* seeking) {
  const auto begin = [&] {
    consumer.begin();
    return assembler_.begin(header, box, consumer, deadline);
  };
  return assemble(header, begin, seeking);
}

Outcome Decoder::decode_planes(const Header& header, const PlaneRequest& request, const Deadline& deadline,
                               Seeking* seeking) {
  const auto begin = [&] {
    request.consumer.begin();
    return assembler_.begin(header, request, deadline);
  };
  return assemble(header, begin, seeking);
}

Outcome Decoder::decode(const packed::PackedImage& image, const Box& box, const MutableU8View& out,
                        const Deadline& deadline) {
  Picture picture(out);
  return decode_rows(image, box, picture, deadline);
}

Outcome Decoder::decode_rows(const packed::PackedImage& image, const Box& box, PixelConsumer& consumer,
                             const Deadline& deadline) {
  consumer.begin();
  if (!assembler_.begin(image.header(), box, consumer, deadline)) return Outcome::kNotHere;
  return outcome(assembler_.take(image) ? ScanEnd::kDone : ScanEnd::kStopped);
}

Outcome Decoder::decode_planes(const packed::PackedImage& image, const PlaneRequest& request,
                               const Deadline& deadline) {
  request.consumer.begin();
  if (!assembler_.begin(image.header(), request, deadline)) return Outcome::kNotHere;
  return outcome(assembler_.take(image) ? ScanEnd::kDone : ScanEnd::kStopped);
}

template <typename Begin>
Outcome Decoder::assemble(const Header& header, Begin begin, Seeking* seeking) {
  if (seeking != nullptr) {
    seeking->made.clear();
    seeking->use = seeking->index_untrusted.empty() ? SeekUse::kNone : SeekUse::kRejected;
  }
  if (!build_tables(header) || !begin()) return Outcome::kNotHere;
  link_mcu(header);
  if (has_restarts(header)) return outcome(decode_by_markers(header, seeking));
  if (seeking != nullptr && index_.read(seeking->index_untrusted, header, seeking->owner)) {
    const Outcome indexed = outcome(decode_by_index(header, *seeking));
    if (indexed != Outcome::kNotHere) return indexed;
    seeking->use = SeekUse::kRejected;
    seeking->made.clear();
    if (!begin()) return Outcome::kNotHere;
  }
  return outcome(decode_from_start(header, seeking));
}

Outcome Decoder::pack(const Header& header, IndexBytes index_untrusted, std::uint64_t owner, packed::Encoder& encoder,
                      std::vector<std::uint8_t>& out, const Deadline& deadline) {
  if (!build_tables(header)) return Outcome::kNotHere;
  link_mcu(header);
  Packing packing(seek_grid(header), encoder, deadline);
  const bool indexed = !has_restarts(header) && index_.read(index_untrusted, header, owner);
  if (!encoder.begin(header)) return Outcome::kNotHere;
  ScanEnd end = indexed ? pack_by_index(header, packing) : pack_from_start(header, packing);
  if (indexed && end != ScanEnd::kDone && !packing.is_late()) {
    packing.begin();
    if (!encoder.begin(header)) return Outcome::kNotHere;
    end = pack_from_start(header, packing);
  }
  if (packing.is_late()) return Outcome::kLate;
  return end == ScanEnd::kDone && packing.is_complete() && encoder.finish(out) ? Outcome::kDecoded : Outcome::kNotHere;
}

ScanEnd Decoder::pack_from_start(const Header& header, SeekConsumer& consumer) {
  const SeekGrid grid = seek_grid(header);
  if (has_restarts(header)) return restarts_.decode(header, mcu(), {{0, grid.rows}, {0, grid.columns}}, consumer);
  const std::optional<int> marker = unstuff_into_data(header.scan);
  if (!marker || !ends_image(*marker)) return ScanEnd::kOdd;
  return run({.blocks = grid.mcus() * grid.blocks_in_mcu}, 1, consumer);
}

// By the index as far as it reaches, and then by one scan.
ScanEnd Decoder::pack_by_index(const Header& header, SeekConsumer& consumer) {
  const SeekGrid& grid = index_.grid();
  const auto data_bytes = static_cast<std::size_t>(index_.data_bytes());
  if (header.scan[data_bytes] != 0xFF || !ends_image(header.scan[data_bytes + 1])) return ScanEnd::kOdd;
  const ScanEnd end = seek_.decode(index_, header.scan, mcu(), {{0, grid.rows}, {0, grid.columns}}, consumer);
  const SeekPlace& last = index_.places().back();
  if (end != ScanEnd::kDone || last.mcu == grid.mcus()) return end;
  const auto first_byte = static_cast<std::size_t>(last.bit >> 3);
  if (unstuff_into_data(header.scan.subspan(first_byte, data_bytes - first_byte)) != -1) return ScanEnd::kOdd;
  const auto line = static_cast<int>(last.mcu / grid.columns), column = static_cast<int>(last.mcu % grid.columns);
  if (!consumer.seek(line, column, last.predictors)) return ScanEnd::kStopped;
  const std::int64_t in_mcu = grid.blocks_in_mcu;
  return run({.first_bit = last.bit & 7, .first = last.mcu * in_mcu, .blocks = grid.mcus() * in_mcu}, 1, consumer);
}

Outcome Decoder::decode_blocks(const Header& header, std::int64_t blocks, std::int64_t of, BlockConsumer& consumer) {
  if (!build_tables(header)) return Outcome::kNotHere;
  link_mcu(header);
  if (has_restarts(header)) return decode_restarting_blocks(header, blocks, consumer);
  const std::optional<int> marker = unstuff_into_data(header.scan);
  if (!marker || !ends_image(*marker)) return Outcome::kNotHere;
  const double share = static_cast<double>(blocks) / static_cast<double>(of);
  return run({.blocks = blocks}, share, consumer) == ScanEnd::kOdd ? Outcome::kNotHere : Outcome::kDecoded;
}

Outcome Decoder::decode_restarting_blocks(const Header& header, std::int64_t blocks, BlockConsumer& consumer) {
  const SeekGrid grid = seek_grid(header);
  const std::int64_t in_line = std::int64_t{grid.columns} * grid.blocks_in_mcu;
  InOrder in_order(consumer, blocks);
  const McuWindow window{{0, static_cast<int>((blocks + in_line - 1) / in_line)}, {0, grid.columns}};
  const ScanEnd end = restarts_.decode(header, mcu(), window, in_order);
  return end == ScanEnd::kOdd ? Outcome::kNotHere : Outcome::kDecoded;
}

Outcome Decoder::decode_blocks(const Header& header, const SeekIndex& index, const McuWindow& window,
                               SeekConsumer& consumer) {
  if (!build_tables(header)) return Outcome::kNotHere;
  link_mcu(header);
  const ScanEnd end = seek_.decode(index, header.scan, mcu(), window, consumer);
  return end == ScanEnd::kOdd ? Outcome::kNotHere : Outcome::kDecoded;
}

// What the assembler and the end of decoding amount to.
Outcome Decoder::outcome(ScanEnd end) const {
  if (assembler_.is_late()) return Outcome::kLate;
  return end == ScanEnd::kDone && assembler_.is_complete() ? Outcome::kDecoded : Outcome::kNotHere;
}

// `share`: of the data, that the blocks probably take.
ScanEnd Decoder::run(ScanData scan, double share, BlockConsumer& consumer) {
  scan.data = data_.data();
  scan.size = data_size_;
  scan.mcu = mcu();
  scan.expected = static_cast<std::size_t>(share * static_cast<double>(data_size_));
  return streams_ == Streams::kTwo ? scan_.decode(scan, consumer) : scan_.decode_alone(scan, consumer);
}

ScanEnd Decoder::decode_from_start(const Header& header, Seeking* seeking) {
  const std::optional<int> marker = unstuff_into_data(header.scan);
  if (!marker || !ends_image(*marker)) return ScanEnd::kOdd;
  const std::int64_t blocks = assembler_.blocks_needed();
  if (seeking == nullptr) {
    const double share = static_cast<double>(blocks) / static_cast<double>(assembler_.blocks_of_image());
    return run({.blocks = blocks}, share, assembler_);
  }
  const ScanEnd end = run_recorded(header, {});
  const SeekRecorder::Source source{.header = header, .data_bytes = scan_bytes_, .unstuffed = data_.data()};
  if (end == ScanEnd::kDone && !recorder_.write({}, source, seeking->owner, seeking->made)) seeking->made.clear();
  return end;
}

ScanEnd Decoder::decode_by_index(const Header& header, Seeking& seeking) {
  const auto data_bytes = static_cast<std::size_t>(index_.data_bytes());
  if (header.scan[data_bytes] != 0xFF || !ends_image(header.scan[data_bytes + 1])) return ScanEnd::kOdd;
  const ScanEnd end = seek_.decode(index_, header.scan, mcu(), assembler_.window(), assembler_);
  const std::int64_t covered = index_.places().back().mcu * static_cast<std::int64_t>(mcu().size());
  const bool reaches = assembler_.blocks_needed() <= covered;
  seeking.use = reaches ? SeekUse::kUsed : SeekUse::kExtended;
  return reaches || end != ScanEnd::kDone ? end : decode_on(header, seeking);
}

ScanEnd Decoder::decode_by_markers(const Header& header, Seeking* seeking) {
  if (seeking != nullptr && seeking->use == SeekUse::kNone) seeking->use = SeekUse::kMarkers;
  return restarts_.decode(header, mcu(), assembler_.window(), assembler_);
}

// What the index does not cover, by one scan from where it ends.
ScanEnd Decoder::decode_on(const Header& header, Seeking& seeking) {
  const SeekPlace& place = index_.places().back();
  const auto first_byte = static_cast<std::size_t>(place.bit >> 3);
  const auto data_bytes = static_cast<std::size_t>(index_.data_bytes());
  if (unstuff_into_data(header.scan.subspan(first_byte, data_bytes - first_byte)) != -1) return ScanEnd::kOdd;
  const int columns = index_.grid().columns;
  const auto line = static_cast<int>(place.mcu / columns), column = static_cast<int>(place.mcu % columns);
  if (!assembler_.seek(line, column, place.predictors)) return ScanEnd::kStopped;
  const ScanEnd end = run_recorded(header, {place.mcu, place.bit & 7, place.predictors});
  const SeekRecorder::Source source{
      .header = header, .data_bytes = data_bytes, .first_byte = first_byte, .unstuffed = data_.data()};
  if (end == ScanEnd::kDone && !recorder_.write(seeking.index_untrusted, source, seeking.owner, seeking.made))
    seeking.made.clear();
  return end;
}

// What the assembler needs from `start` on. Places are noted every few MCUs.
ScanEnd Decoder::run_recorded(const Header& header, const SeekPlace& start) {
  const std::span<McuBlock> exit(exit_, mcu().size());
  std::copy(mcu().begin(), mcu().end(), exit.begin());
  link(exit);
  exit.back().behind_block = {gate_before(*mcu().front().dc), &mcu().front().behind_dc};
  const std::int64_t first = start.mcu * static_cast<std::int64_t>(mcu().size()), blocks = assembler_.blocks_needed();
  assembler_.note_levels(recorder_.begin(seek_grid(header), start, blocks - first));
  const Recording recording{recorder_, exit};
  const double share = static_cast<double>(blocks - first) / static_cast<double>(assembler_.blocks_of_image() - first);
  return run({.first_bit = start.bit, .first = first, .blocks = blocks, .recording = &recording}, share, assembler_);
}

bool Decoder::build_tables(const Header& header) {
  for (int i = 0; i < header.components; ++i) {
    const Component& component = header.component[static_cast<std::size_t>(i)];
    const std::size_t dc = component.dc, ac = component.ac;
    if (!build_once(build_dc, *header.dc[dc], tables_->dc[dc], tables_->dc_specs[dc])) return false;
    if (!build_once(build_ac, *header.ac[ac], tables_->ac[ac], tables_->ac_specs[ac])) return false;
  }
  return true;
}

void Decoder::link_mcu(const Header& header) {
  blocks_in_mcu_ = 0;
  for (int i = 0; i < header.components; ++i) {
    const Component& component = header.component[static_cast<std::size_t>(i)];
    for (int block = 0; block < component.h * component.v; ++block)
      mcu_[blocks_in_mcu_++] = {.dc = &tables_->dc[component.dc], .ac = &tables_->ac[component.ac]};
  }
  link({mcu_, static_cast<std::size_t>(blocks_in_mcu_)});
}

// Into data_, with padding. The marker that ended it, -1: none; nullopt: no memory.
std::optional<int> Decoder::unstuff_into_data(FileBytes scan) {
  std::uint8_t* const data = data_.reserve(scan.size() + std::max(kUnstuffSlack, kDataPadding));
  if (data == nullptr) return std::nullopt;
  const Unstuffed unstuffed = unstuff(scan, data, target_);
  data_size_ = unstuffed.size;
  scan_bytes_ = unstuffed.consumed;
  std::memset(data + data_size_, 0, kDataPadding);
  return unstuffed.marker;
}

void Decoder::trim(std::size_t bytes) {
  data_.trim(bytes);
  seek_.trim(bytes);
  restarts_.trim(bytes);
  assembler_.trim(bytes);
}

}  // namespace millrace::kernels::jpeg
