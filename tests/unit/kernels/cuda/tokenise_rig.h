// What the tests of K1 share: a batch of one image on the host executor, in memory of its very size, and its blocks
// again.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "kernels/cuda/tokenise/tokenise_args.h"
#include "kernels/jpeg/header.h"
#include "tests/support/jpeg/random_jpeg.h"

namespace millrace {

// A random stream without restart markers, which take segments.
JpegStream draw_unbroken(const JpegDraw& draw, std::mt19937& random);

// An image for K1: a header, the scan's bytes to the end of the file, and the MCU rows that are wanted.
struct TokeniseImage {
  kernels::jpeg::Header header;
  std::uint32_t first_row = 0, end_row = 0;
  std::vector<kernels::cuda::Segment> segments;
  std::uint32_t restart_interval = 0;
  std::optional<std::uint32_t> token_capacity;  // none: enough
};
TokeniseImage all_rows(const kernels::jpeg::Header& header);
TokeniseImage some_rows(const kernels::jpeg::Header& header, std::mt19937& random);

// How the executor runs it.
struct TokeniseRun {
  int threads = kernels::cuda::kUsualTokeniseThreads;
  kernels::cuda::TokeniseShape shape;
  std::uint32_t seed = 1;
  std::uint32_t lead = 0;  // bytes before the scan's
};
TokeniseRun random_run(std::mt19937& random);

struct Tokenised {
  kernels::cuda::Status status;
  std::vector<JpegBlock> blocks;  // of the wanted rows: zig-zag order, DC is the level; those never put out: all kUnset
  kernels::cuda::TokeniseWork work;
};
inline constexpr std::int16_t kUnset = 0x5a5a;

// nullopt: a table that libjpeg-turbo refuses.
std::optional<Tokenised> tokenise_one(const TokeniseImage& image, const TokeniseRun& run);

// A token has 12 bits for a value.
bool fits_tokens(const JpegBlock& block);

// Whether the levels of blocks with differences, without restarts between them, stay within 16 bits.
bool fit_levels(std::span<const JpegBlock> blocks, const kernels::jpeg::Header& header);

// Blocks with differences into blocks with levels. `interval`: in blocks, between restarts; 0: none.
std::vector<JpegBlock> with_levels(std::vector<JpegBlock> blocks, const kernels::jpeg::Header& header,
                                   std::size_t interval = 0);

// The blocks of the image's wanted rows.
std::vector<JpegBlock> wanted_of(const std::vector<JpegBlock>& blocks, const TokeniseImage& image);

// The CPU decoder's blocks of the wanted rows; nullopt: it does not take them, a token cannot say one, or a level leaves
// 16 bits. What ends the data is not asked, for K1 never looks behind the wanted rows.
std::optional<std::vector<JpegBlock>> decode_wanted(const TokeniseImage& image);

}  // namespace millrace
