// Makes tensors out of encoded images for pillow_decode.py, which compares them with Pillow's: the real path from bytes
// to a tensor, probe_image() and make_image(). Reads jobs from standard input until it ends and answers each on
// standard output. Numbers are 32-bit, in the order of memory.
//   job:    crop box (four; width 0: all), resized width, height (0: as the crop), window (four; width 0: all), flip,
//   filter, dtype,
//           layout, channels, bytes that follow; and these bytes
//   answer: code (0: made, else as enum Code), bytes that follow; and these bytes: the tensor, or the message
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "daemon/backend/cpu/image_maker.h"
#include "daemon/fetch/probe.h"

namespace {

using namespace millrace;

using Header = std::array<std::int32_t, 16>;

Size size_of(const Box& box) {
  return {static_cast<std::uint32_t>(box.width), static_cast<std::uint32_t>(box.height)};
}
Box whole(Size size) {
  return {0, 0, static_cast<std::int32_t>(size.width), static_cast<std::int32_t>(size.height)};
}

SampleGeometry geometry_of(const Header& job, Size oriented) {
  SampleGeometry geometry;
  geometry.crop = job[2] == 0 ? whole(oriented) : Box{job[0], job[1], job[2], job[3]};
  geometry.resized = job[4] == 0 ? size_of(geometry.crop)
                                 : Size{static_cast<std::uint32_t>(job[4]), static_cast<std::uint32_t>(job[5])};
  geometry.window = job[8] == 0 ? whole(geometry.resized) : Box{job[6], job[7], job[8], job[9]};
  geometry.flip = job[10] != 0;
  return geometry;
}

Recipe recipe_of(const Header& job) {
  return {.filter = static_cast<Filter>(job[11]),
          .dtype = static_cast<DType>(job[12]),
          .layout = static_cast<Layout>(job[13]),
          .channels = static_cast<Channels>(job[14])};
}

void answer(std::int32_t code, const void* data, std::size_t size) {
  const std::array<std::int32_t, 2> head = {code, static_cast<std::int32_t>(size)};
  std::fwrite(head.data(), sizeof head, 1, stdout);
  if (size > 0) std::fwrite(data, size, 1, stdout);
  std::fflush(stdout);
}

void answer(const Error& error) {
  answer(static_cast<std::int32_t>(error.code), error.message.data(), error.message.size());
}

void run(const Header& job, EncodedBytes bytes, ImageWorkspace& workspace) {
  const SampleLimits limits;
  const Result<SourceInfo> info = probe_image(bytes.view(), limits, UseOrientation::kYes);
  if (!info) return answer(info.error());
  SampleTask task;
  task.image = {std::move(bytes), *info};
  task.geometry = geometry_of(job, oriented_size(*info));
  const Recipe recipe = recipe_of(job);
  std::vector<std::byte> tensor(image_bytes(recipe, task.geometry.output()).count);
  task.out = tensor;
  const SampleOutcome outcome = make_image(task, recipe, limits, workspace);
  if (outcome.error) return answer(*outcome.error);
  answer(0, tensor.data(), tensor.size());
}

}  // namespace

int main() {
  ImageWorkspace workspace;
  Header job;
  while (std::fread(job.data(), sizeof job, 1, stdin) == 1) {
    EncodedBytes bytes(static_cast<std::size_t>(job[15]));
    if (bytes.size() > 0 && std::fread(bytes.writable().data(), bytes.size(), 1, stdin) != 1) return 1;
    run(job, std::move(bytes), workspace);
  }
  return 0;
}
