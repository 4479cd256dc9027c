#include "kernels/cpu/jpeg/decoder.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/jpeg/unstuff.h"

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

// Others than this end the data in a way that libjpeg-turbo takes note of.
bool is_plain_end(int marker) {
  const bool restart = marker >= 0xD0 && marker <= 0xD7;
  return marker > 0 && marker != 0xFF && !restart;
}

}  // namespace

Decoder::Decoder(Target target, Streams streams)
    : target_(target), streams_(streams), scan_(target), assembler_(target) {}

Outcome Decoder::decode(const Header& header, const Box& box, const MutableU8View& out,
                        std::chrono::steady_clock::time_point deadline) {
  return assembler_.begin(header, box, out, deadline) ? assemble(header) : Outcome::kNotHere;
}

Outcome Decoder::decode_planes(const Header& header, const PlaneRequest& request,
                               std::chrono::steady_clock::time_point deadline) {
  return assembler_.begin(header, request, deadline) ? assemble(header) : Outcome::kNotHere;
}

Outcome Decoder::assemble(const Header& header) {
  const Outcome outcome = decode_blocks(header, assembler_.blocks_needed(), assembler_.blocks_of_image(), assembler_);
  if (assembler_.is_late()) return Outcome::kLate;
  return assembler_.is_complete() ? outcome : Outcome::kNotHere;
}

Outcome Decoder::decode_blocks(const Header& header, std::int64_t blocks, std::int64_t of, BlockConsumer& consumer) {
  if (!build_tables(header) || !unstuff_scan(header)) return Outcome::kNotHere;
  link_mcu(header);
  const double share = static_cast<double>(blocks) / static_cast<double>(of);
  const ScanData scan{.data = data_.data(),
                      .size = data_size_,
                      .mcu = {mcu_, static_cast<std::size_t>(blocks_in_mcu_)},
                      .blocks = blocks,
                      .expected = static_cast<std::size_t>(share * static_cast<double>(data_size_))};
  const ScanEnd end = streams_ == Streams::kTwo ? scan_.decode(scan, consumer) : scan_.decode_alone(scan, consumer);
  return end == ScanEnd::kOdd ? Outcome::kNotHere : Outcome::kDecoded;
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

bool Decoder::unstuff_scan(const Header& header) {
  std::uint8_t* const data = data_.reserve(header.scan.size() + std::max(kUnstuffSlack, kDataPadding));
  if (data == nullptr) return false;
  const Unstuffed unstuffed = unstuff(header.scan, data, target_);
  data_size_ = unstuffed.size;
  if (!is_plain_end(unstuffed.marker)) return false;
  std::memset(data + data_size_, 0, kDataPadding);
  return true;
}

void Decoder::trim(std::size_t bytes) {
  data_.trim(bytes);
  assembler_.trim(bytes);
}

}  // namespace millrace::kernels::jpeg
