// Our JPEG decoder against libjpeg-turbo: whatever the bytes are, what it decodes has the same header, coefficients and
// pixels, and a picture that libjpeg-turbo calls an error it does not decode. Each instruction set, one stream and two,
// pieces of restarting files in lanes. Tensors that are made without a picture in between are the same on each
// instruction set, those of `exact` the picture's. The first eight bytes choose the box, and what is made of it.
#include <memory>
#include <vector>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "daemon/backend/cpu/making/fused_jpeg.h"
#include "kernels/cpu/workspace.h"
#include "tests/fuzz/fuzz_jpeg_input.h"
#include "tests/fuzz/fuzz_pixels.h"
#include "tests/support/jpeg/block_collector.h"
#include "tests/support/jpeg/jpeg_coefficients.h"
#include "tests/support/jpeg/same_header.h"

namespace {

using namespace millrace;
using kernels::jpeg::Decoder;
using kernels::jpeg::Header;
using kernels::jpeg::Outcome;

// Whether a marker that is no restart, or nothing at all, ends the scan's data here.
bool is_end(ByteView file, std::size_t at) {
  if (at + 1 >= file.size()) return true;
  const auto code = std::to_integer<unsigned>(file[at + 1]);
  return file[at] == std::byte{0xFF} && code != 0 && (code < 0xD0 || code > 0xD7);
}

// The file up to the end of the scan's data, so that libjpeg-turbo reads nothing behind it.
std::vector<std::byte> first_scan_of(ByteView file, std::size_t scan) {
  std::size_t end = scan;
  while (!is_end(file, end)) ++end;
  std::vector<std::byte> result(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(end));
  result.insert(result.end(), {std::byte{0xFF}, std::byte{0xD9}});
  return result;
}

// Every block of the image.
void check_coefficients(ByteView file, const Header& header, Decoder& decoder) {
  const auto scan = static_cast<std::size_t>(header.scan.data() - reinterpret_cast<const std::uint8_t*>(file.data()));
  const auto expected = read_jpeg_coefficients(first_scan_of(file, scan));
  if (expected) require(expected->header_warnings == 0 && same_header(header, *expected));
  const int h = header.component[0].h, v = header.component[0].v;
  const std::int64_t mcus =
      std::int64_t{(header.size.width + 8 * h - 1) / (8 * h)} * ((header.size.height + 8 * v - 1) / (8 * v));
  const std::int64_t blocks = mcus * (header.components == 1 ? 1 : h * v + 2);
  BlockCollector collector;
  if (decoder.decode_blocks(header, blocks, blocks, collector) != Outcome::kDecoded) return;
  require(expected.has_value());
  require(collector.all == in_scan_order(*expected));
}

// `expected`: libjpeg-turbo's. A part's rows may hold damage that the part itself does not meet; so the whole picture,
// garbage included, is what decides where it calls the part an error.
void check_pixels(const DecodeRequest& request, Result<kernels::U8View> expected) {
  PixelBuffer buffer, whole_buffer;
  if (!expected) {
    DecodeRequest whole = request;
    whole.box = {0, 0, request.stored.width, request.stored.height};
    const Result<kernels::U8View> picture = decode_jpeg(whole, whole_buffer);
    if (picture) expected = picture->crop(request.box);
  }
  if (!expected && expected.error().code == Code::kDeadline) return;
  for (const auto& decoder : decoders()) {
    const auto decoded = decode_jpeg_fast(request, buffer, *decoder);
    if (!decoded || (!*decoded && decoded->error().code == Code::kDeadline)) continue;
    require(expected && *decoded && same_pixels(*expected, **decoded));
  }
}

// Whether libjpeg-turbo makes a picture of the file.
bool is_picture(DecodeRequest request) {
  request.box = {0, 0, request.stored.width, request.stored.height};
  PixelBuffer buffer;
  const Result<kernels::U8View> picture = decode_jpeg(request, buffer);
  return picture || picture.error().code == Code::kDeadline;
}

// What is kept for tensors, for one instruction set.
struct Lane {
  explicit Lane(kernels::Target target) : decoder(target), planes(target), workspace(target) {}
  Decoder decoder;
  kernels::PlaneResampler planes;
  kernels::Workspace workspace;
  PixelBuffer rows;
};

std::vector<std::unique_ptr<Lane>>& lanes() {
  static std::vector<std::unique_ptr<Lane>> all = [] {
    std::vector<std::unique_ptr<Lane>> made;
    for (const kernels::Target target : kernels::available_targets()) made.push_back(std::make_unique<Lane>(target));
    return made;
  }();
  return all;
}

const kernels::StoreTable& table() {
  static const kernels::StoreTable table({.dtype = kernels::DType::kUint8});
  return table;
}

struct Choice {
  kernels::ResampleSpec spec;
  kernels::Flip flip;
};

Choice choice_of(const DecodeRequest& request, const std::uint8_t* bytes) {
  constexpr kernels::Filter kFilters[] = {kernels::Filter::kBox, kernels::Filter::kBilinear, kernels::Filter::kBicubic,
                                          kernels::Filter::kLanczos};
  kernels::ResampleSpec spec{.source = {request.box.width, request.box.height},
                             .target = {1 + bytes[0] % 80, 1 + bytes[4] % 80}};
  spec.window = any_box_of(bytes, spec.target);
  spec.filter = kFilters[bytes[1] % 4];
  return {spec, bytes[3] % 2 == 0 ? kernels::Flip::kNone : kernels::Flip::kHorizontal};
}

std::vector<std::byte> empty_tensor(const Choice& choice) {
  return std::vector<std::byte>(table().image_bytes({choice.spec.window.width, choice.spec.window.height}));
}

// By plain loops.
std::vector<std::byte> tensor_of(const kernels::U8View& picture, const Choice& choice) {
  static kernels::Workspace workspace(kernels::Target::kScalar);
  std::vector<std::byte> tensor = empty_tensor(choice);
  kernels::ResampleSpec spec = choice.spec;
  spec.channels = picture.channels;
  kernels::ImageStore store(table(), tensor, {spec.window.width, spec.window.height}, spec.channels, choice.flip,
                            workspace);
  kernels::resample(workspace.plan(spec), picture, workspace, store);
  return tensor;
}

// The same tensor with every instruction set, and none of a file that is an error. `expected`: empty where any will do.
template <class Make>
void check_tensors(const DecodeRequest& request, const Choice& choice, bool is_good, std::vector<std::byte> expected,
                   Make make) {
  for (const auto& lane : lanes()) {
    std::vector<std::byte> tensor = empty_tensor(choice);
    const FusedOutput output{choice.spec, request.box.left, request.box.top, choice.flip, table(), tensor};
    const auto outcome = make(request, output, FusedTools{lane->decoder, lane->planes, lane->workspace, lane->rows});
    if (!outcome || !outcome->made) continue;
    require(is_good);
    if (expected.empty()) expected = tensor;
    require(tensor == expected);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto header = header_of(data, size);
  if (!header) return 0;
  const ByteView file(reinterpret_cast<const std::byte*>(data) + kBoxBytes, size - kBoxBytes);
  check_coefficients(file, *header, *decoders()[data[0] % decoders().size()]);
  const DecodeRequest request{file, header->size, any_box_of(data, header->size),
                              Clock::now() + std::chrono::seconds(20)};
  PixelBuffer buffer;
  const Result<kernels::U8View> picture = decode_jpeg(request, buffer);
  check_pixels(request, picture);
  const bool is_good = picture || is_picture(request);
  const Choice choice = choice_of(request, data);
  check_tensors(request, choice, is_good, picture ? tensor_of(*picture, choice) : std::vector<std::byte>(),
                make_exact_from_jpeg);
  check_tensors(request, choice, is_good, {}, make_fast_from_jpeg);
  return 0;
}
