#include "tests/unit/kernels/cuda/tokenise_rig.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "kernels/cpu/jpeg/decoder.h"
#include "kernels/cuda/host_block.h"
#include "kernels/cuda/plan/build_table.h"
#include "kernels/cuda/plan/plan.h"
#include "kernels/cuda/tokenise/tokenise.h"
#include "kernels/jpeg/seek_index.h"
#include "tests/support/jpeg/block_collector.h"

namespace millrace {

using kernels::jpeg::Header;
using kernels::jpeg::seek_grid;
using kernels::jpeg::SeekGrid;
using namespace kernels::cuda;

namespace {

constexpr BlockEntry kUnsetEntry{0xa5a5a5a5, kUnset, 0xa5a5};

bool is_unset(const BlockEntry& entry) {
  return std::memcmp(&entry, &kUnsetEntry, sizeof entry) == 0;
}

std::size_t blocks_in_row(const SeekGrid& grid) {
  return static_cast<std::size_t>(grid.columns) * static_cast<std::size_t>(grid.blocks_in_mcu);
}

ImageJob job_of(const TokeniseImage& image, std::uint32_t lead) {
  const Header& header = image.header;
  ImageJob job{};
  job.bytes = lead;
  job.byte_count = static_cast<std::uint32_t>(header.scan.size());
  job.restart_interval = image.restart_interval;
  put_frame(header, job);
  for (std::size_t i = 0; i < static_cast<std::size_t>(header.components); ++i) {
    const auto& component = header.component[i];
    job.component[i].dc_table = component.dc;
    job.component[i].ac_table = static_cast<std::uint16_t>(4 + component.ac);
  }
  job.first_mcu_row = image.first_row;
  job.end_mcu_row = image.end_row;
  job.segments = static_cast<std::uint32_t>(image.segments.size());
  const std::uint64_t enough = most_tokens(header.scan.size(), image.segments.size());
  job.token_capacity = image.token_capacity.value_or(static_cast<std::uint32_t>(enough));
  return job;
}

// DC tables, then AC tables; nullopt: one is refused.
std::optional<std::vector<DecodeTable>> tables_of(const Header& header) {
  std::vector<DecodeTable> tables(8);
  for (std::size_t i = 0; i < static_cast<std::size_t>(header.components); ++i) {
    const auto& component = header.component[i];
    if (!build_table(*header.dc[component.dc], kernels::jpeg::TableKind::kDc, tables[component.dc]))
      return std::nullopt;
    if (!build_table(*header.ac[component.ac], kernels::jpeg::TableKind::kAc, tables[std::size_t{4} + component.ac]))
      return std::nullopt;
  }
  return tables;
}

JpegBlock expand(const BlockEntry& entry, const std::vector<Token>& tokens) {
  JpegBlock block{};
  if (is_unset(entry)) {
    block.fill(kUnset);
    return block;
  }
  block[0] = entry.dc;
  std::size_t at = 1;
  for (std::size_t i = 0; i < entry.tokens; ++i) {
    const Token token = tokens.at(entry.first_token + i);
    at += token >> 12;
    block.at(at++) = static_cast<std::int16_t>(static_cast<std::int16_t>(token << 4) >> 4);
  }
  return block;
}

}  // namespace

JpegStream draw_unbroken(const JpegDraw& draw, std::mt19937& random) {
  JpegDraw unbroken = draw;
  unbroken.restart_interval = 0;
  return draw_jpeg(unbroken, random);
}

TokeniseImage all_rows(const Header& header) {
  return {.header = header,
          .first_row = 0,
          .end_row = static_cast<std::uint32_t>(seek_grid(header).rows),
          .restart_interval = static_cast<std::uint32_t>(header.restart_interval)};
}

TokeniseImage some_rows(const Header& header, std::mt19937& random) {
  TokeniseImage image = all_rows(header);
  image.first_row = static_cast<std::uint32_t>(random() % image.end_row);
  image.end_row = image.first_row + 1 + static_cast<std::uint32_t>(random() % (image.end_row - image.first_row));
  return image;
}

TokeniseRun random_run(std::mt19937& random) {
  static constexpr int kThreads[] = {32, 32, 64, 96, 256, 512};
  TokeniseRun run;
  run.threads = kThreads[random() % std::size(kThreads)];
  run.shape.region_bytes = 16 + 4 * static_cast<std::uint32_t>(random() % 13);
  run.shape.regions = 1 + static_cast<std::uint32_t>(random() % std::min(8, kMostRegions / run.threads));
  run.shape.most_rounds = 1000;
  run.seed = static_cast<std::uint32_t>(random());
  run.lead = static_cast<std::uint32_t>(random() % 16);
  return run;
}

std::optional<Tokenised> tokenise_one(const TokeniseImage& image, const TokeniseRun& run) {
  const auto tables = tables_of(image.header);
  if (!tables) return std::nullopt;
  const ImageJob job = job_of(image, run.lead);
  std::vector<std::uint8_t> bytes(run.lead, 0xFF);
  bytes.insert(bytes.end(), image.header.scan.begin(), image.header.scan.end());
  bytes.shrink_to_fit();
  constexpr int kBlocks = 2;
  std::vector<Token> tokens(job.token_capacity);
  std::vector<BlockEntry> entries((image.end_row - image.first_row) * blocks_in_row(seek_grid(image.header)),
                                  kUnsetEntry);
  std::vector<std::uint64_t> scratch(kBlocks * scratch_bytes(run.shape, run.threads) / 8);
  std::uint32_t next_image = 0;
  Tokenised result{};
  const TokeniseArgs args{.jobs = &job,
                          .images = 1,
                          .bytes = bytes.data(),
                          .tables = tables->data(),
                          .segments = image.segments.data(),
                          .tokens = tokens.data(),
                          .blocks = entries.data(),
                          .statuses = &result.status,
                          .work = &result.work,
                          .next_image = &next_image,
                          .scratch = reinterpret_cast<unsigned char*>(scratch.data()),
                          .shape = run.shape};
  run_grid({.blocks = kBlocks, .threads = run.threads, .seed = run.seed},
           [&](HostBlock& block) { tokenise(block, args); });
  if (result.status != Status::kDone) return result;
  for (const BlockEntry& entry : entries) result.blocks.push_back(expand(entry, tokens));
  return result;
}

bool fits_tokens(const JpegBlock& block) {
  return std::all_of(block.begin() + 1, block.end(), [](int value) { return value >= -2047 && value <= 2047; });
}

namespace {

// The component of each block of an MCU.
std::vector<std::size_t> components_of(const Header& header) {
  std::vector<std::size_t> component_of;
  for (std::size_t i = 0; i < static_cast<std::size_t>(header.components); ++i)
    component_of.insert(component_of.end(), static_cast<std::size_t>(header.component[i].h * header.component[i].v), i);
  return component_of;
}

}  // namespace

bool fit_levels(std::span<const JpegBlock> blocks, const Header& header) {
  const auto component_of = components_of(header);
  int levels[3] = {};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    int& level = levels[component_of[i % component_of.size()]];
    level += blocks[i][0];
    if (level < -INT16_MAX || level > INT16_MAX) return false;
  }
  return true;
}

std::vector<JpegBlock> with_levels(std::vector<JpegBlock> blocks, const Header& header, std::size_t interval) {
  const auto component_of = components_of(header);
  std::uint16_t levels[3] = {};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (interval != 0 && i % interval == 0) std::fill(std::begin(levels), std::end(levels), 0);
    std::uint16_t& level = levels[component_of[i % component_of.size()]];
    level = static_cast<std::uint16_t>(level + blocks[i][0]);
    blocks[i][0] = static_cast<std::int16_t>(level);
  }
  return blocks;
}

std::vector<JpegBlock> wanted_of(const std::vector<JpegBlock>& blocks, const TokeniseImage& image) {
  const auto row = static_cast<std::ptrdiff_t>(blocks_in_row(seek_grid(image.header)));
  return {blocks.begin() + row * image.first_row, blocks.begin() + row * image.end_row};
}

std::optional<std::vector<JpegBlock>> decode_wanted(const TokeniseImage& image) {
  static kernels::jpeg::Decoder decoder;
  std::vector<std::uint8_t> scan(image.header.scan.begin(), image.header.scan.end());
  std::size_t end = 0;
  while (end < scan.size() && (scan[end] != 0xFF || (end + 1 < scan.size() && scan[end + 1] == 0)))
    end += scan[end] == 0xFF ? 2 : 1;
  scan.resize(std::min(end, scan.size()));
  scan.insert(scan.end(), {0xFF, 0xD9});
  Header header = image.header;
  header.scan = scan;
  const SeekGrid grid = seek_grid(header);
  const auto count = static_cast<std::int64_t>(image.end_row * blocks_in_row(grid));
  BlockCollector collector;
  if (decoder.decode_blocks(header, count, grid.mcus() * grid.blocks_in_mcu, collector) !=
      kernels::jpeg::Outcome::kDecoded)
    return std::nullopt;
  for (const JpegBlock& block : collector.all) {
    if (!fits_tokens(block)) return std::nullopt;
  }
  if (!fit_levels(collector.all, header)) return std::nullopt;
  return wanted_of(with_levels(std::move(collector.all), header), image);
}

}  // namespace millrace
