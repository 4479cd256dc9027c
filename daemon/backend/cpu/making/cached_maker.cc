#include "daemon/backend/cpu/making/cached_maker.h"

#include <cstring>
#include <utility>

#include "daemon/backend/cpu/making/pack_jpeg.h"
#include "daemon/backend/words.h"

namespace millrace {
namespace {

// Of files that wait to be packed, on one lane. They are beyond memory.encoded_in_flight, which is charged for a sample
// until it is handed over; a larger one is packed while it is.
constexpr Bytes kMostUnmade = 8_MiB;

std::chrono::microseconds since(Clock::time_point begun) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begun);
}

Result<void> copy_tensor(const SampleTask& task, const Recipe& recipe) {
  MILLRACE_TRY_VOID(check_on_host(task, recipe));
  const ByteView tensor = task.image.kept->bytes->view();
  const MutableByteView out = task.out.view();
  if (tensor.size() != out.size() || Bytes{out.size()} != image_bytes(recipe, task.geometry.output()))
    return Error{Code::kInternal,
                 "a kept tensor of " + std::to_string(tensor.size()) + " bytes for " + std::to_string(out.size())};
  std::memcpy(out.data(), tensor.data(), tensor.size());
  return {};
}

// Whether another form of the same image may fare better.
bool is_of_no_use(const std::optional<Error>& error) {
  return error &&
         (error->code == Code::kInvalid || error->code == Code::kUnsupported || error->code == Code::kInternal);
}

}  // namespace

CachedMaker::CachedMaker(ImageWorkspace& workspace, const SampleLimits& limits, kernels::Target target)
    : workspace_(workspace), cache_(workspace.cache()), limits_(limits), encoder_(target) {}

SampleOutcome CachedMaker::make(SampleTask& task, const Recipe& recipe, Fidelity fidelity) {
  if (cache_ == nullptr) return make_image(task, recipe, limits_, workspace_, fidelity);
  EncodedImage& image = task.image;
  PictureUse use(*cache_, image, task.out.view().size());
  use.find();
  SampleOutcome outcome = make_once(task, recipe, fidelity);
  if (image.kept && is_of_no_use(outcome.error)) {
    use.reject();
    outcome.read_again = image.bytes.size() == 0;
    if (outcome.read_again) return outcome;
    outcome = make_once(task, recipe, fidelity);
  }
  if (outcome.error) return outcome;
  const KeptKind by_index = KeptKind::kIndex;
  const KeptKind* const by = image.kept ? &image.kept->kind : workspace_.index_helped() ? &by_index : nullptr;
  const std::uint64_t bytes = image.identity ? image.identity->bytes() : image.bytes.size();
  cache_->counts().made(image.info, by, bytes, outcome.decode + outcome.transform);
  keep_what_is_advised(task, use);
  return outcome;
}

SampleOutcome CachedMaker::make_once(const SampleTask& task, const Recipe& recipe, Fidelity fidelity) {
  workspace_.index_helped() = false;
  if (!task.image.kept || task.image.kept->kind != KeptKind::kTensor)
    return make_image(task, recipe, limits_, workspace_, fidelity);
  SampleOutcome outcome{.index = task.index};
  const Clock::time_point begun = Clock::now();
  if (const Result<void> copied = copy_tensor(task, recipe); !copied) outcome.error = copied.error();
  outcome.transform = since(begun);
  return outcome;
}

void CachedMaker::keep_what_is_advised(SampleTask& task, PictureUse& use) {
  if (use.advice() == Advice::kNothing) return;
  EncodedImage& image = task.image;
  if (use.advice() == Advice::kTensor) {
    const Clock::time_point begun = Clock::now();
    keep(*cache_, image, use.key(), KeptKind::kTensor, KeptBlock::copy_of(task.out.view()));
    return cache_->counts().making(KeptKind::kTensor, since(begun));
  }
  const std::size_t bytes = image.bytes.size();
  const bool fits = unmade_bytes_ + bytes <= kMostUnmade.count;
  if (!fits && use.advice() == Advice::kPack) return;
  Unmade unmade{std::move(image), use.key(), use.advice()};
  if (!fits) return pack(unmade);
  unmade_bytes_ += bytes;
  unmade_.push_back(std::move(unmade));
}

void CachedMaker::finish(const std::function<bool()>& idle, const std::function<bool()>& stopped) {
  for (const Unmade& unmade : unmade_) {
    if (stopped()) break;
    if (unmade.advice == Advice::kPackNow || idle()) pack(unmade);
  }
  unmade_.clear();
  unmade_bytes_ = 0;
}

void CachedMaker::pack(const Unmade& unmade) {
  const std::optional<BeingMade::Turn> turn = cache_->being_made().begin(unmade.key);
  kernels::jpeg::Decoder* const decoder = workspace_.jpeg();
  if (!turn || decoder == nullptr || cache_->find(unmade.key, KeptKind::kPacked)) return;
  const Clock::time_point begun = Clock::now();
  const std::optional<KeptEntry> index = cache_->find(unmade.key, KeptKind::kIndex);
  kernels::jpeg::IndexBytes index_bytes;
  if (index) index_bytes = {reinterpret_cast<const std::uint8_t*>(index->bytes->view().data()), index->bytes->size()};
  const Result<std::vector<std::uint8_t>> packed =
      pack_jpeg(unmade.image.bytes.view(), unmade.image.info, index_bytes, unmade.key.owner(), *decoder, encoder_,
                begun + limits_.time);
  if (packed) {
    keep(*cache_, unmade.image, unmade.key, KeptKind::kPacked,
         KeptBlock::copy_of(std::as_bytes(std::span(*packed)), KeptBlock::kPadding));
  } else {
    cache_->cannot_be_packed(unmade.key);
  }
  workspace_.trim(0);
  cache_->counts().making(KeptKind::kPacked, since(begun));
}

}  // namespace millrace
