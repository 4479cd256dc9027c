// An epoch of training batches from a folder of images: tensors in shared memory, decoded by the daemon.
#include <millrace/client.h>

#include <cstdio>

millrace::Result<void> train(const char* folder) {
  MILLRACE_TRY(auto client, millrace::Client::connect());
  MILLRACE_TRY(auto session, client.open_session({.batch = 64, .recipe = millrace::Recipe::train(224)}));
  MILLRACE_TRY(auto dataset, session.open_dataset(folder));
  auto epoch = session.epoch(dataset, {.shuffle = true});
  for (const millrace::Batch& batch : epoch) {
    const auto pixels = batch.tensor.data();  // uint8, N x 3 x 224 x 224, mapped, not copied
    std::printf("%zu images, %zu bytes, %zu bad\n", batch.tensor.samples(), pixels.size(), batch.errors.size());
  }
  return epoch.result();
}

int main(int argc, char** argv) {
  const auto result = argc == 2 ? train(argv[1]) : millrace::Error{millrace::Code::kInvalid, "usage: ten_lines FOLDER"};
  if (!result) std::fprintf(stderr, "ten_lines: %s\n", result.error().message.c_str());
  return result ? 0 : 1;
}
