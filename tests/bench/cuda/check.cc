#include "tests/bench/cuda/check.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <string_view>

#include "tests/bench/cuda/batch_runner.h"

namespace millrace::kernels::cuda::bench {
namespace {

constexpr std::size_t kBatch = 64;
constexpr std::size_t kAlignment = 16;

// Lines of one recipe whose files are there.
struct Work {
  std::vector<const ChecksumLine*> lines;
  std::vector<const ImageFile*> files;
  std::vector<ImageKind> kinds;
};

class Checker {
 public:
  Checker(const NamedRecipe& recipe, const Kernels& kernels) : runner_(recipe.recipe, kernels) {}

  void check(const Work& work, std::size_t first, std::size_t count) {
    gather(work, first, count);
    const BatchPlan& plan = runner_.submit(requests_, {encoded_.data(), bytes_});
    runner_.wait();
    const std::vector<std::byte> tensors = runner_.tensors();
    std::size_t job = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const bool planned = plan.refusals[i].empty();
      const Status status = planned ? runner_.statuses()[job++] : Status::kNotHere;
      const std::span<const std::byte> tensor(tensors.data() + i * plan.tensor_bytes, plan.tensor_bytes);
      judge(*work.lines[first + i], planned ? "found out by the kernels" : plan.refusals[i], status, tensor);
    }
  }

  CheckCounts counts;
  std::map<std::string_view, std::size_t> reasons;

 private:
  void gather(const Work& work, std::size_t first, std::size_t count) {
    requests_.clear();
    bytes_ = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      requests_.push_back({.file_untrusted = work.files[i]->bytes,
                           .at = bytes_,
                           .crop = work.lines[i]->crop,
                           .flip = work.lines[i]->flip,
                           .kind = work.kinds[i]});
      bytes_ += (work.files[i]->bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
    }
    encoded_.reserve(bytes_);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& file = requests_[i].file_untrusted;
      if (!file.empty()) std::memcpy(encoded_.data() + requests_[i].at, file.data(), file.size());
    }
  }

  void judge(const ChecksumLine& line, std::string_view reason, Status status, std::span<const std::byte> tensor) {
    if (status != Status::kDone) {
      ++counts.left;
      counts.not_in_time += status == Status::kNotInTime;
      ++reasons[reason];
    } else if (line.sum && *line.sum == fnv1a(tensor)) {
      ++counts.equal;
    } else {
      ++counts.wrong;
      std::printf("WRONG: %s %s, crop %d %d %d %d: %s\n", line.recipe->name, line.path.c_str(), line.crop.left,
                  line.crop.top, line.crop.width, line.crop.height,
                  line.sum ? "another tensor than the CPU's" : "done, though the CPU refuses it");
    }
  }

  BatchRunner runner_;
  PinnedMemory encoded_;
  std::size_t bytes_ = 0;
  std::vector<ImageRequest> requests_;
};

}  // namespace

CheckCounts check(const std::vector<ChecksumLine>& lines, const std::vector<ImageFile>& files,
                  const std::vector<ImageFile>& packed, const Kernels& kernels) {
  std::map<std::string_view, const ImageFile*> by_path, packed_by_path;
  for (const ImageFile& file : files) by_path[file.path] = &file;
  for (const ImageFile& file : packed) packed_by_path[file.path] = &file;
  std::map<const NamedRecipe*, Work> by_recipe;
  for (const ChecksumLine& line : lines) {
    const auto file = by_path.find(line.path);
    if (file == by_path.end()) continue;
    Work& work = by_recipe[line.recipe];
    const auto form = packed_by_path.find(line.path);
    const bool is_packed = work.lines.size() % 2 == 1 && form != packed_by_path.end();
    work.lines.push_back(&line);
    work.files.push_back(is_packed ? form->second : file->second);
    work.kinds.push_back(is_packed ? ImageKind::kPacked : ImageKind::kJpegFile);
  }
  CheckCounts sum;
  for (const auto& [recipe, work] : by_recipe) {
    Checker checker(*recipe, kernels);
    for (std::size_t first = 0; first < work.lines.size(); first += kBatch)
      checker.check(work, first, std::min(kBatch, work.lines.size() - first));
    for (const auto& [reason, count] : checker.reasons)
      std::printf("%s: %zu left to the CPU: %.*s\n", recipe->name, count, static_cast<int>(reason.size()),
                  reason.data());
    sum.equal += checker.counts.equal;
    sum.left += checker.counts.left;
    sum.wrong += checker.counts.wrong;
    sum.not_in_time += checker.counts.not_in_time;
  }
  return sum;
}

}  // namespace millrace::kernels::cuda::bench
