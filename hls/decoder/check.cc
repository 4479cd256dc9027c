#include "hls/decoder/check.h"

#include "hls/decoder/packed/packed_head.h"

namespace millrace {
namespace hls {
namespace {

constexpr std::uint32_t kCompletionBytes = sizeof(Completion);

bool is_in(std::uint64_t begin, std::uint64_t size, std::uint64_t all) {
  return begin <= all && size <= all - begin;
}

// The two words after the first three, and so on: as the struct has them.
void parse(const Burst& word, Descriptor& image) {
  image.cookie = number_of(word, 0);
  image.source = number_of(word, 1);
  image.source_bytes = number_of(word, 2);
  image.tables = number_of(word, 3);
  image.columns = number_of(word, 4);
  image.rows = number_of(word, 5);
  image.tensor = number_of(word, 6);
  image.tensor_bytes = number_of(word, 7);
  image.width = half_of(word, 16);
  image.height = half_of(word, 17);
  image.crop_left = half_of(word, 18);
  image.crop_top = half_of(word, 19);
  image.crop_width = half_of(word, 20);
  image.crop_height = half_of(word, 21);
  image.out_width = half_of(word, 22);
  image.out_height = half_of(word, 23);
  image.kind = byte_of(word, 48);
  image.column_taps = byte_of(word, 49);
  image.row_taps = byte_of(word, 50);
  image.flip = byte_of(word, 51);
  image.rows_first = byte_of(word, 52);
  image.grey = byte_of(word, 53);
}

bool is_side(std::uint32_t side) {
  return side >= 1 && side <= kMostSide;
}

bool has_sound_sides(const Descriptor& image) {
  return is_side(image.width) && is_side(image.height) && is_side(image.out_width) && is_side(image.out_height) &&
         image.crop_width >= 1 && image.crop_height >= 1 && is_in(image.crop_left, image.crop_width, image.width) &&
         is_in(image.crop_top, image.crop_height, image.height);
}

bool are_taps(std::uint32_t taps, std::uint32_t side) {
  return taps >= 1 && taps <= kMostTaps && taps <= side;
}

bool has_sound_axes(const Descriptor& image, std::uint32_t commands_bytes) {
  if (!are_taps(image.column_taps, image.crop_width) || !are_taps(image.row_taps, image.crop_height)) return false;
  const std::uint32_t units = commands_bytes / kUnit;
  const auto units_of = [](std::uint32_t outputs, std::uint32_t taps) {
    return (outputs * (taps + 1) * 4 + kUnit - 1) / kUnit;
  };
  return is_in(image.columns, units_of(image.out_width, image.column_taps), units) &&
         is_in(image.rows, units_of(image.out_height, image.row_taps), units);
}

bool has_sound_tensor(const Descriptor& image, const BatchHead& batch, std::uint32_t tensors_bytes) {
  const std::uint64_t bytes = std::uint64_t{image.out_width} * image.out_height * batch.channels * batch.element_bytes;
  return image.tensor_bytes == bytes && is_in(std::uint64_t{image.tensor} * kUnit, bytes, tensors_bytes);
}

bool fits_memories(const Descriptor& image) {
  const std::uint32_t row = image.rows_first != 0 ? image.crop_width : image.out_width;
  return row * image.row_taps <= kRingPixels && image.out_width * (image.column_taps + 1U) <= kAxisWords;
}

bool is_sampling(std::uint8_t h, std::uint8_t v) {
  return (h == 4 && v == 1) || (h >= 1 && h <= 2 && v >= 1 && v <= 2);
}

bool read_head(const Burst& head, Job& job) {
  job.components = byte_of(head, 0);
  job.h = byte_of(head, 1);
  job.v = byte_of(head, 2);
  bool sound = job.components == 1 ? job.h == 1 && job.v == 1 : job.components == 3 && is_sampling(job.h, job.v);
  for (unsigned i = 0; i < 3; ++i) {
    job.quant[i] = byte_of(head, 3 + i);
    job.dc[i] = byte_of(head, 6 + i);
    job.ac[i] = byte_of(head, 9 + i);
    sound = sound && (i >= job.components || (job.quant[i] < kTables && job.dc[i] < kTables && job.ac[i] < kTables));
  }
  job.restart_interval = number_of(head, 4);
  return sound;
}

// A byte a channel, so the number of bytes says how many there are.
bool read_rows(const Descriptor& image, Job& job) {
  const std::uint64_t pixels = std::uint64_t{image.width} * image.height;
  job.components = image.source_bytes == pixels ? 1 : 3;
  job.h = job.v = 1;
  return image.source_bytes == pixels * job.components;
}

Reason read_source_head(const Buffers& buffers, Source makes, Job& job) {
  const Descriptor& image = job.image;
  if (makes == Source::kPacked) return read_packed_head(buffers.encoded, job);
  if (makes == Source::kRows) return read_rows(image, job) ? Reason::kDone : Reason::kBadDescriptor;
  if (!is_in(image.tables, kTablesUnits, buffers.commands.bytes / kUnit)) return Reason::kBadDescriptor;
  if (!read_head(buffers.commands.read(image.tables), job)) return Reason::kBadDescriptor;
  put_mcus(job);
  return Reason::kDone;
}

}  // namespace

BatchHead read_batch(const ReadPort& commands, std::uint32_t completions_bytes) {
  const Burst word = commands.read(0);
  BatchHead head{};
  const std::uint32_t images = number_of(word, 0);
  if (images == 0 || images > kMostImages || images * kCompletionBytes > completions_bytes) return head;
  if (commands.bytes / kUnit < kBatchUnits + images) return head;
  head.images = images;
  head.channels = byte_of(word, 4);
  head.element_bytes = byte_of(word, 5);
  head.interleaved = byte_of(word, 6);
  for (unsigned c = 0; c < 3; ++c) head.colour[c] = byte_of(word, 8 + c);
  const bool colours = head.channels == 3 ? head.colour[0] < 3 && head.colour[1] < 3 && head.colour[2] < 3
                                          : head.channels == 1 && head.colour[0] == 0;
  const bool element = head.element_bytes == 1 || head.element_bytes == 2 || head.element_bytes == 4;
  head.is_sound = colours && element && head.interleaved <= 1;
  return head;
}

Reason read_job(const Buffers& buffers, const BatchHead& batch, std::uint32_t index, Source makes, Job& job) {
  job = Job{};
  Descriptor& image = job.image;
  parse(buffers.commands.read(kBatchUnits + index), image);
  if (!batch.is_sound) return Reason::kBadDescriptor;
  if (image.kind > static_cast<std::uint8_t>(Source::kRows)) return Reason::kBadDescriptor;
  if (image.kind != static_cast<std::uint8_t>(makes)) return Reason::kNotHere;
  if (image.flip > 1 || image.rows_first > 1 || image.grey > 1 || (image.grey == 1) != (batch.channels == 1))
    return Reason::kBadDescriptor;
  if (image.source_bytes == 0 ||
      !is_in(image.source, std::uint64_t{image.source_bytes} + kReadAhead, buffers.encoded.bytes))
    return Reason::kBadDescriptor;
  if (!has_sound_sides(image) || !has_sound_axes(image, buffers.commands.bytes) ||
      !has_sound_tensor(image, batch, buffers.tensors_bytes))
    return Reason::kBadDescriptor;
  if (!fits_memories(image)) return Reason::kNotHere;
  job.channels = batch.channels;
  job.element_bytes = batch.element_bytes;
  job.interleaved = batch.interleaved;
  for (int c = 0; c < 3; ++c) job.colour[c] = batch.colour[c];
  return read_source_head(buffers, makes, job);
}

}  // namespace hls
}  // namespace millrace
