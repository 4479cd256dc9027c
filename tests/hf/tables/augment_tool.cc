// Augments pictures for torchvision_augment.py, which compares them with torchvision's. Reads jobs from standard input
// until it ends and writes each result to standard output, nothing around it. A job is four 32-bit integers (target as
// enum Target, width, height, number of operations), the operations as struct Record and the picture's bytes, row by
// row. With `--time ROUNDS` the result is one double instead: the least microseconds that one of so many rounds took.
// Exit status 1 for a job that makes no sense or a target that this processor lacks.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <vector>

#include "kernels/augment/augment.h"
#include "kernels/augment/named_operation.h"

namespace {

using namespace millrace::kernels;

struct Record {
  std::int32_t step, sampling, value, fill[3], box[4];
  double factor;
  double matrix[8];
};
static_assert(sizeof(Record) == 112);

// Steps from 100 on are these, with the magnitude for the factor.
constexpr const char* kNames[] = {"ShearX",     "ShearY",       "TranslateX", "TranslateY", "Rotate",
                                  "Brightness", "Color",        "Contrast",   "Sharpness",  "Posterize",
                                  "Solarize",   "AutoContrast", "Equalize",   "Invert"};

Operation parse(const Record& record, Size size) {
  if (record.step >= 100 && record.step < 114) {
    return *named_operation(kNames[record.step - 100], record.factor, size, static_cast<Sampling>(record.sampling), {});
  }
  Operation operation;
  operation.step = static_cast<Step>(record.step);
  operation.sampling = static_cast<Sampling>(record.sampling);
  operation.value = record.value;
  operation.factor = static_cast<float>(record.factor);
  operation.box = {record.box[0], record.box[1], record.box[2], record.box[3]};
  for (std::size_t c = 0; c < 3; ++c) operation.fill[c] = static_cast<std::uint8_t>(record.fill[c]);
  std::copy(std::begin(record.matrix), std::end(record.matrix), operation.matrix.begin());
  return operation;
}

template <class Element>
bool read(Element* elements, std::size_t count) {
  return std::fread(elements, sizeof(Element), count, stdin) == count;
}

double time(Augmenter& augmenter, const U8View& in, const std::vector<Operation>& operations, int rounds,
            const MutableU8View& out) {
  using Clock = std::chrono::steady_clock;
  double least = 1e9;
  for (int round = 0; round < rounds; ++round) {
    TimeLimit limit;
    const Clock::time_point start = Clock::now();
    if (!augmenter.apply(in, operations, limit, out)) return 0;
    least = std::min(least, std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc == 3 && std::strcmp(argv[1], "--time") == 0 ? std::atoi(argv[2]) : 0;
  std::map<Target, Augmenter> augmenters;
  std::array<std::int32_t, 4> header;
  while (read(header.data(), header.size())) {
    const Size size{header[1], header[2]};
    const auto target = static_cast<Target>(header[0]);
    if (header[0] < 0 || header[0] >= std::ssize(kAllTargets) || !is_available(target) || header[3] < 0 ||
        header[3] > kMostOperations)
      return 1;
    std::vector<Record> records(static_cast<std::size_t>(header[3]));
    if (!read(records.data(), records.size())) return 1;
    std::vector<Operation> operations;
    for (const Record& record : records) operations.push_back(parse(record, size_after(size, operations)));
    if (!is_valid(size, operations)) return 1;
    std::vector<std::uint8_t> in(static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height) * 3);
    std::vector<std::uint8_t> out(in.size());
    if (!read(in.data(), in.size())) return 1;
    const Size after = size_after(size, operations);
    const U8View from{in.data(), size.width, size.height, 3, std::ptrdiff_t{size.width} * 3};
    const MutableU8View to{out.data(), after.width, after.height, 3, std::ptrdiff_t{after.width} * 3};
    Augmenter& augmenter = augmenters.try_emplace(target, target).first->second;
    TimeLimit limit;
    if (!augmenter.apply(from, operations, limit, to)) return 1;
    if (rounds > 0) {
      const double microseconds = time(augmenter, from, operations, rounds, to);
      if (std::fwrite(&microseconds, sizeof microseconds, 1, stdout) != 1) return 1;
    } else if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size()) {
      return 1;
    }
    std::fflush(stdout);
  }
  return 0;
}
