#include "daemon/pipeline/batch/bad_sample_guard.h"

#include <string>

namespace millrace {
namespace {

// Whether it says that a file could not be read, not that its picture is broken or does not fit the recipe.
bool is_about_files(Code code) {
  return code == Code::kNotFound || code == Code::kDenied || code == Code::kInternal;
}

// `takes_no`: what the default does not put up with.
std::string for_example(const SampleFailure& example, const std::string& takes_no) {
  const std::string advice = is_about_files(example.error.code)
                                 ? "A wrong root or a disk that is not mounted looks like this: mend the files"
                                 : "Change the recipe where it does not fit the pictures, mend the files";
  return ", for example " + example.source + ": " + example.error.message +
         ". No on_error was chosen, and the default takes no " + takes_no + ". " + advice + ", or set on_error to ";
}

}  // namespace

Error BadSampleGuard::none_good(std::uint64_t samples, const SampleFailure& example) {
  const std::string all = std::to_string(samples);
  return Error{example.error.code,
               all + " of the batch's " + all + (samples == 1 ? " sample is bad" : " samples are bad") +
                   for_example(example, "batch without a good one") + "skip or zero to go on all the same"};
}

std::optional<Error> BadSampleGuard::count(std::uint64_t samples, std::span<const SampleFailure> bad) {
  samples_ += samples;
  bad_ += bad.size();
  if (bad.empty() || samples_ < kEnoughToTell || bad_ * kOneIn <= samples_) return std::nullopt;
  return Error{bad.front().error.code, std::to_string(bad_) + " of the epoch's " + std::to_string(samples_) +
                                           " samples so far are bad, more than one in " + std::to_string(kOneIn) +
                                           for_example(bad.front(), "epoch with so many") +
                                           "skip, zero or substitute to go on all the same"};
}

}  // namespace millrace
