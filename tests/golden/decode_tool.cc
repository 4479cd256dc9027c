// Makes tensors out of encoded images for the tests beside it, which compare them with Pillow's: the real path from
// bytes to a tensor, probe_image() and make_image(). With --ways it prints the names of the ways in which this
// processor can decode, the usual one first, a line each. Else it reads jobs from standard input until that ends and
// answers each on standard output. Numbers are 32-bit, in the order of memory.
//   job:    crop box (four; width 0: all), resized width, height (0: as the crop), window (four; width 0: all), flip,
//           filter, dtype, layout, channels, fidelity, way, seek indexes (0: none, 1: kept under the file's bytes, else
//           under this number as the file's identity), bytes that follow; and these bytes
//   answer: code (0: made, else as enum Code), how many images of this way an index has helped with so far, bytes that
//           follow; and these bytes: the tensor, or the message
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/formats/probe.h"

namespace {

using namespace millrace;

using Header = std::array<std::int32_t, 19>;

// A lane's way to decode, with a cache of its own.
struct Way {
  explicit Way(const CpuVariant& variant)
      : plain(JpegPath::kFastest, variant), indexed(JpegPath::kFastest, variant, &cache) {}

  std::int32_t hits() const { return static_cast<std::int32_t>(counters.stored(MetricId::index_hits)); }

  Counters counters;
  ImageCache cache{{.memory = 64_MiB, .disk = Bytes{0}, .state_dir = ""}, counters};
  ImageWorkspace plain, indexed;
};

// Every target and number of streams, with every way to decode by an index; the usual one first.
std::vector<CpuVariant> all_variants() {
  using kernels::Target;
  using kernels::jpeg::SegmentPath;
  using kernels::jpeg::Streams;
  std::vector<CpuVariant> all{CpuVariant{}};
  for (const Target target : {Target::kAvx512, Target::kAvx512Bw, Target::kAvx2, Target::kScalar}) {
    if (!kernels::is_available(target)) continue;
    for (const Streams streams : {Streams::kTwo, Streams::kOne}) {
      for (const SegmentPath segments : {SegmentPath::kTurns, SegmentPath::kVectors}) {
        const CpuVariant one{target, {streams, segments}};
        const bool possible = segments == SegmentPath::kTurns || target >= Target::kAvx512Bw;
        const bool again = name_of(one) == name_of(all.back()) || name_of(one) == name_of(all.front());
        if (possible && !again) all.push_back(one);
      }
    }
  }
  return all;
}

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

void answer(std::int32_t code, std::int32_t hits, const void* data, std::size_t size) {
  const std::array<std::int32_t, 3> head = {code, hits, static_cast<std::int32_t>(size)};
  std::fwrite(head.data(), sizeof head, 1, stdout);
  if (size > 0) std::fwrite(data, size, 1, stdout);
  std::fflush(stdout);
}

void answer(const Error& error, const Way& way) {
  answer(static_cast<std::int32_t>(error.code), way.hits(), error.message.data(), error.message.size());
}

void run(const Header& job, EncodedBytes bytes, Way& way) {
  const SampleLimits limits;
  const Result<SourceInfo> info = probe_image(bytes.view(), limits, UseOrientation::kYes);
  if (!info) return answer(info.error(), way);
  SampleTask task;
  const auto inode = static_cast<std::uint64_t>(job[17]);
  if (inode > 1) task.image.identity = FileIdentity{.device = 1, .inode = inode, .size = bytes.size()};
  task.image.bytes = std::move(bytes);
  task.image.info = *info;
  task.geometry = geometry_of(job, oriented_size(*info));
  const Recipe recipe = recipe_of(job);
  std::vector<std::byte> tensor(image_bytes(recipe, task.geometry.output()).count);
  task.out = in_host_memory(tensor);
  const auto fidelity = static_cast<Fidelity>(job[15]);
  const SampleOutcome outcome = make_image(task, recipe, limits, job[17] != 0 ? way.indexed : way.plain, fidelity);
  if (outcome.error) return answer(*outcome.error, way);
  answer(0, way.hits(), tensor.data(), tensor.size());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<CpuVariant> variants = all_variants();
  if (argc == 2 && std::string_view(argv[1]) == "--ways") {
    for (const CpuVariant& variant : variants) std::puts(name_of(variant).c_str());
    return 0;
  }
  std::vector<std::unique_ptr<Way>> ways(variants.size());  // those that were asked for
  Header job;
  while (std::fread(job.data(), sizeof job, 1, stdin) == 1) {
    EncodedBytes bytes(static_cast<std::size_t>(job[18]));
    if (bytes.size() > 0 && std::fread(bytes.writable().data(), bytes.size(), 1, stdin) != 1) return 1;
    const auto number = static_cast<std::size_t>(job[16]);
    if (ways.at(number) == nullptr) ways[number] = std::make_unique<Way>(variants[number]);
    run(job, std::move(bytes), *ways[number]);
  }
  return 0;
}
