// Inference: requests bring encoded images, each becomes one float tensor. Small ones travel inside the message, large
// ones through the input ring, and a bad one is that request's error alone.
//
//   serve IMAGE...
#include <millrace/client.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace {

using millrace::Result;

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Result<millrace::Source> source_of(const std::string& encoded, millrace::InputRing& ring) {
  constexpr std::size_t kInlineMost = 64 * 1024;
  if (encoded.size() <= kInlineMost) return millrace::Encoded{std::as_bytes(std::span(encoded))};
  MILLRACE_TRY(const millrace::RingRoom room, ring.allocate(encoded.size()));
  std::memcpy(room.bytes().data(), encoded.data(), encoded.size());
  return room;
}

Result<void> serve(std::span<char*> files) {
  MILLRACE_TRY(auto client, millrace::Client::connect());
  const auto recipe = millrace::Recipe::evaluate(256, 224).normalised(millrace::DType::kFloat32);
  MILLRACE_TRY(auto session, client.open_session({.name = "serve example", .slots = 8, .batch = 1, .recipe = recipe}));
  MILLRACE_TRY(auto ring, session.open_ring(millrace::Bytes{64 << 20}));
  for (const char* file : files) {
    const std::string encoded = read_file(file);
    MILLRACE_TRY(millrace::Source source, source_of(encoded, ring));
    MILLRACE_TRY(const auto ticket, session.submit({.samples = {{.source = std::move(source)}},
                                                    .priority = millrace::Priority::kHigh,
                                                    .deadline = std::chrono::seconds(2)}));
    MILLRACE_TRY(const auto batch, session.wait(ticket));
    if (batch.failure) {
      std::printf("%s: %s\n", file, batch.failure->message.c_str());
      continue;
    }
    MILLRACE_TRY(const auto values, batch.tensor.as<float>());
    const auto sample = batch.tensor.sample(0);
    std::printf("%s: %zu floats from %u x %u pixels, decoded in %lld us\n", file, values.size(), sample.source.width,
                sample.source.height, static_cast<long long>(sample.decode.count()));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("usage: serve IMAGE...\n", stderr), 2;
  const auto result = serve({argv + 1, argv + argc});
  if (!result) std::fprintf(stderr, "serve: %s\n", result.error().message.c_str());
  return result ? 0 : 1;
}
