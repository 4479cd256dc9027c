// Training that can be interrupted anywhere: the position of the last batch is kept in a file, and the next start goes
// on after it.
//
//   epoch FOLDER POSITION_FILE [BATCHES]      at most BATCHES batches this time
#include <millrace/client.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace {

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const char* path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

millrace::Result<void> train(const char* folder, const char* position_file, std::uint64_t batches) {
  MILLRACE_TRY(auto client, millrace::Client::connect());
  MILLRACE_TRY(auto session,
               client.open_session({.name = "epoch example",
                                    .slots = 3,
                                    .batch = 32,
                                    .recipe = millrace::Recipe::train(224).normalised(millrace::DType::kFloat32)}));
  MILLRACE_TRY(const auto dataset, session.open_dataset(folder));
  auto epoch =
      session.epoch(dataset, {.seed = 17, .shuffle = true, .position = read_file(position_file), .batches = batches});
  MILLRACE_TRY(const auto shape, epoch.shape());
  std::printf("%llu batches, beginning at %llu\n", static_cast<unsigned long long>(shape.batches),
              static_cast<unsigned long long>(shape.first_batch));
  for (const millrace::Batch& batch : epoch) {
    MILLRACE_TRY(const auto values, batch.tensor.as<float>());
    const auto labels = batch.tensor.labels();
    std::printf("batch %llu: %zu images, first label %lld, first value %.3f\n",
                static_cast<unsigned long long>(batch.id), labels.size(),
                labels.empty() ? -1LL : static_cast<long long>(labels[0]),
                values.empty() ? 0.0 : static_cast<double>(values[0]));
    write_file(position_file, batch.position);  // together with your model's checkpoint
  }
  return epoch.result();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fputs("usage: epoch FOLDER POSITION_FILE [BATCHES]\n", stderr), 2;
  const auto result = train(argv[1], argv[2], argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0);
  if (!result) std::fprintf(stderr, "epoch: %s\n", result.error().message.c_str());
  return result ? 0 : 1;
}
