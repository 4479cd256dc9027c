// Passes over PNG and L3 files, for peers/l3.py to time beside other software: `millrace_bench_l3 FOLDER` reads a pass and
// a set a line ("crop kodak"), makes that pass over FOLDER/png/SET or FOLDER/l3/SET in its one thread, and prints the
// processor time that it took, in seconds, or "none" where this processor lacks the instructions. Files of a set are read
// before its first pass; "load" passes read them anew. A file that cannot be decoded ends the program.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/backend/cpu/decoders/l3_decoder.h"
#include "daemon/backend/cpu/decoders/png/png_decoder.h"
#include "daemon/formats/probe.h"
#include "daemon/model/bytes/encoded_pool.h"
#include "kernels/l3/decoder.h"
#include "kernels/l3/encoding/encoder.h"

namespace millrace {
namespace {

using kernels::Target;
using kernels::l3::Effort;

[[noreturn]] void give_up(const std::string& what, const std::string& why) {
  std::fprintf(stderr, "millrace_bench_l3: %s: %s\n", what.c_str(), why.c_str());
  std::exit(1);
}

// All channels and bits of an L3 file, as its encoder took them.
struct Stored {
  std::vector<std::uint8_t> bytes;
  kernels::l3::MutableSampleView view;
};

class File {
 public:
  File(std::string path, EncodedPool& pool) : path_(std::move(path)), pool_(pool) { load(); }

  void load() {
    std::ifstream file(path_, std::ios::binary | std::ios::ate);
    if (!file) give_up(path_, "cannot be opened");
    bytes_ = EncodedBytes(static_cast<std::size_t>(file.tellg()), &pool_);
    file.seekg(0);
    file.read(reinterpret_cast<char*>(bytes_.writable().data()), static_cast<std::streamsize>(bytes_.size()));
    const Result<SourceInfo> info = probe_image(bytes_.view(), SampleLimits{}, UseOrientation::kYes);
    if (!file || !info) give_up(path_, file ? info.error().message : "cannot be read");
    size_ = {static_cast<int>(info->stored.width), static_cast<int>(info->stored.height)};
  }

  void decode(PixelBuffer& buffer, Result<kernels::U8View> (*decoder)(const DecodeRequest&, PixelBuffer&),
              Target target, bool cropped) const {
    const kernels::Box middle{size_.width * 3 / 8, size_.height * 3 / 8, std::max(size_.width / 4, 1),
                              std::max(size_.height / 4, 1)};  // a quarter of each side
    const auto pixels = decoder({.bytes_untrusted = bytes_.view(),
                                 .stored = size_,
                                 .box = cropped ? middle : kernels::whole(size_),
                                 .deadline = Clock::time_point::max(),
                                 .target = target},
                                buffer);
    if (!pixels) give_up(path_, pixels.error().message);
  }

  // Of an L3 file.
  Stored stored() const {
    kernels::l3::Image image;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(bytes_.view().data());
    const std::string wrong = image.read({bytes, bytes_.size()}, kernels::l3::Check::kChecksums);
    if (!wrong.empty()) give_up(path_, wrong);
    const auto shape = kernels::l3::shape_of(image.head(), kernels::l3::Form::kStored);
    const auto stride = static_cast<std::size_t>(size_.width * shape.channels * shape.bytes);
    Stored stored{std::vector<std::uint8_t>(stride * static_cast<std::size_t>(size_.height)), {}};
    stored.view = {stored.bytes.data(), size_, shape.channels, shape.bytes, static_cast<std::ptrdiff_t>(stride)};
    const auto outcome = kernels::l3::Decoder().decode(image, kernels::whole(size_), kernels::l3::Form::kStored,
                                                       Clock::time_point::max(), stored.view);
    if (!outcome.is_fine()) give_up(path_, kernels::l3::text_of(outcome));
    return stored;
  }

 private:
  std::string path_;
  EncodedPool& pool_;
  EncodedBytes bytes_;
  kernels::Size size_;
};

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

class Passes {
 public:
  explicit Passes(std::string folder) : folder_(std::move(folder)) {}

  // Seconds of processor time; none: the processor lacks the instructions.
  std::optional<double> make(const std::string& pass, const std::string& set) {
    if (pass == "png") return decode(set, "png", decode_png, kernels::best_target(), false);
    if (pass == "load.png") return load(set, "png", decode_png);
    if (pass == "load.l3") return load(set, "l3", decode_l3);
    if (pass == "crop") return decode(set, "l3", decode_l3, kernels::best_target(), true);
    if (pass == "fast") return encode(set, Effort::kFast);
    if (pass == "best") return encode(set, Effort::kBest);
    for (const Target target : kernels::kAllTargets) {
      if (pass != "l3." + std::string(kernels::name_of(target))) continue;
      if (!kernels::is_available(target)) return std::nullopt;
      return decode(set, "l3", decode_l3, target, false);
    }
    give_up(pass, "is no pass");
  }

 private:
  std::vector<File>& files(const std::string& set, const std::string& format) {
    const std::string folder = folder_ + "/" + format + "/" + set;
    std::vector<File>& files = files_[folder];
    if (!files.empty()) return files;
    std::vector<std::string> paths;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) paths.push_back(entry.path());
    if (paths.empty()) give_up(folder, "has no files");
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) files.emplace_back(path, pool_);
    return files;
  }

  static double timed(const std::function<void()>& work) {
    const double begin = processor_seconds();
    work();
    return processor_seconds() - begin;
  }

  template <typename Decode>
  double decode(const std::string& set, const std::string& format, Decode decoder, Target target, bool cropped) {
    const std::vector<File>& all = files(set, format);
    return timed([&] {
      for (const File& file : all) file.decode(buffer_, decoder, target, cropped);
    });
  }

  template <typename Decode>
  double load(const std::string& set, const std::string& format, Decode decoder) {
    std::vector<File>& all = files(set, format);
    return timed([&] {
      for (File& file : all) {
        file.load();
        file.decode(buffer_, decoder, kernels::best_target(), false);
      }
    });
  }

  double encode(const std::string& set, Effort effort) {
    std::vector<Stored>& all = stored_[set];
    if (all.empty()) {
      for (const File& file : files(set, "l3")) all.push_back(file.stored());
    }
    std::vector<std::uint8_t> out;
    return timed([&] {
      for (const Stored& picture : all) {
        out.clear();
        const std::string wrong = kernels::l3::encode({.samples = picture.view}, effort, kernels::best_target(), out);
        if (!wrong.empty()) give_up(set, wrong);
      }
    });
  }

  std::string folder_;
  EncodedPool pool_{Bytes{std::size_t{1} << 30U}};
  std::map<std::string, std::vector<File>> files_;
  std::map<std::string, std::vector<Stored>> stored_;
  PixelBuffer buffer_;
};

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("millrace_bench_l3 FOLDER: passes over PNG and L3 files, for tests/bench/peers/l3.py\n", stderr);
    return 2;
  }
  millrace::Passes passes(argv[1]);
  for (std::string pass, set; std::cin >> pass >> set;) {
    const std::optional<double> seconds = passes.make(pass, set);
    std::cout << (seconds ? std::to_string(*seconds) : "none") << std::endl;
  }
}
