// What the tests of our JPEG decoder share: it with each instruction set, boxes, and outcomes beside libjpeg-turbo's.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "daemon/backend/cpu/decoders/decode.h"
#include "kernels/cpu/jpeg/decoder.h"
#include "tests/support/jpeg/jpeg_stream.h"

namespace millrace {

using File = std::vector<std::byte>;

int below(std::mt19937& random, int bound);
kernels::Box random_box(std::mt19937& random, kernels::Size size);

DecodeRequest request_for(ByteView file, kernels::Size size, const kernels::Box& box);

kernels::jpeg::FileBytes file_bytes(ByteView file);

bool same_pixels(const kernels::U8View& a, const kernels::U8View& b);

// Whether a stream drawn for our decoder is: chroma of one or two columns is libjpeg's own affair.
bool is_plain(const JpegStream& stream);

// Equal pixels, or equal errors.
bool same_outcome(const Result<kernels::U8View>& a, const Result<kernels::U8View>& b);

// One for each instruction set, alone and in pairs of streams, and with AVX-512 in lanes as well. Says what this
// processor lacks.
std::vector<std::unique_ptr<kernels::jpeg::Decoder>>& decoders();

// libjpeg-turbo's outcome of a box. It calls a part damaged by all of the rows that it reads for it, of which ours may
// need less; so a decoder of ours agrees, too, with the pixels of the whole picture there.
class LibjpegOutcome {
 public:
  LibjpegOutcome(ByteView file, kernels::Size size, const kernels::Box& box);
  bool agrees(const Result<kernels::U8View>& ours) const;

 private:
  PixelBuffer buffer_, whole_buffer_;
  Result<kernels::U8View> part_, of_whole_;
};

// How many of the decoders took the file themselves; all of them came to libjpeg-turbo's outcome.
int check_all(ByteView file, kernels::Size size, const kernels::Box& box);

// The blocks of the scan, the first `count` of them, or all; nullopt: not here.
std::optional<std::vector<JpegBlock>> decode_blocks(kernels::jpeg::Decoder& decoder, ByteView file,
                                                    std::optional<std::size_t> count = {});

std::vector<std::pair<std::string, File>> files_in(const std::string& folder);
// Under sanitizers every third of those that take long.
std::vector<std::pair<std::string, File>> some_files_in(const std::string& folder);

}  // namespace millrace
