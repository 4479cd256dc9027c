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

std::chrono::nanoseconds since(Clock::time_point begun) {
  return Clock::now() - begun;
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

// Whether to pack before the sample is made, and to make it of the packed form: together that takes less time than to
// decode the file twice. For datasets, whose batches are ahead of who waits for them; a single request's answer does
// not wait for it, unless the file is large. Packing has `limits.time` of its own, so that what can be made within it
// does not fail for it.
bool is_packed_first(const EncodedImage& image, Advice advice) {
  return advice == Advice::kPackNow && image.wish.member.dataset != DatasetNumber::kNone;
}

}  // namespace

CachedMaker::CachedMaker(ImageWorkspace& workspace, InForce<Limits> limits, kernels::Target target)
    : workspace_(workspace), cache_(workspace.cache()), limits_(std::move(limits)), encoder_(target) {}

SampleOutcome CachedMaker::make(SampleTask& task, const Recipe& recipe, Fidelity fidelity, const StopFlag& stop) {
  if (cache_ == nullptr) {
    SampleOutcome outcome = make_image(task, recipe, limits_.now().sample, workspace_, fidelity, stop);
    if (task.image.wish.most >= CacheUse::kPacked) outcome.unpacked = WhyUnpacked::kSwitchedOff;
    return outcome;
  }
  const Order order{recipe, fidelity, stop};
  EncodedImage& image = task.image;
  CacheAccess use(*cache_, image, task.out.view().size());
  use.find();
  const std::optional<BeingMade::Turn> turn = turn_at_tensor(task, use.key());
  // Others than this user may get the tensor then, so nothing that he sent before may have had a hand in it.
  workspace_.audience() = turn ? Origin::Audience::kEverybody : Origin::Audience::kUser;
  const bool packed_first = !image.kept && is_packed_first(image, use.advice());
  SampleOutcome outcome = packed_first ? make_packed_first(task, use, order) : make_of_what_is_there(task, use, order);
  if (use.unpacked() != WhyUnpacked::kNotSaid) outcome.unpacked = use.unpacked();
  if (!outcome.error && !outcome.read_again) {
    // Without a turn another lane keeps it. Bytes that are no file's have none.
    const bool is_tensor_kept = turn ? turn->is_wanted() || use.advice() == Advice::kTensor
                                     : use.advice() == Advice::kTensor && !image.identity;
    if (is_tensor_kept) {
      keep_tensor(task, use.key());
    } else if (!packed_first) {
      set_aside(task, use, stop);
    }
  }
  // The job has no need of the form any more, and the cache may have let it go.
  if (packed_first) image.kept.reset();
  return outcome;
}

SampleOutcome CachedMaker::make_of_what_is_there(SampleTask& task, CacheAccess& use, const Order& order) {
  EncodedImage& image = task.image;
  workspace_.makes_index() = use.makes_index();
  SampleOutcome outcome = make_once(task, order);
  if (image.kept && is_of_no_use(outcome.error)) {
    use.reject();
    outcome.read_again = image.bytes.size() == 0;
    if (outcome.read_again) return outcome;
    outcome = make_once(task, order);
  }
  if (!outcome.error) count(image, kind_used(image), outcome);
  return outcome;
}

SampleOutcome CachedMaker::make_packed_first(SampleTask& task, CacheAccess& use, const Order& order) {
  EncodedImage& image = task.image;
  const Clock::time_point begun = Clock::now();
  const Packed packed = pack(image, use.key(), order.stop);
  const std::chrono::nanoseconds packing = since(begun);
  if (packed.form) {
    image.kept = CachedForm{CachedKind::kPacked, packed.form};
  } else {
    use.find_packed();  // which another lane may have kept meanwhile
  }
  SampleOutcome outcome = make_once(task, order);
  if (image.kept && is_of_no_use(outcome.error)) {
    use.reject();
    cache_->cannot_be_packed(use.key());
    outcome = make_once(task, order);
    outcome.unpacked = WhyUnpacked::kNoForm;
  } else if (!image.kept || packed.unpacked == WhyUnpacked::kNoRoom) {
    outcome.unpacked = packed.unpacked;
  }
  if (!outcome.error && packed.form && image.kept) {
    cache_->counts().made_of_new_form(packed.by_index);
  } else if (!outcome.error) {
    count(image, kind_used(image), outcome);
  }
  outcome.decode += packing;
  return outcome;
}

std::optional<CachedKind> CachedMaker::kind_used(const EncodedImage& image) {
  if (image.kept) return image.kept->kind;
  return workspace_.index_helped() ? std::optional(CachedKind::kIndex) : std::nullopt;
}

void CachedMaker::count(const EncodedImage& image, std::optional<CachedKind> used, const SampleOutcome& outcome) {
  const std::uint64_t bytes = image.identity ? image.identity->bytes() : image.bytes.size();
  saved_ += cache_->counts().made(image.info, used ? &*used : nullptr, bytes, outcome.decode + outcome.transform);
}

std::optional<BeingMade::Turn> CachedMaker::turn_at_tensor(const SampleTask& task, const CacheKey& key) {
  const EncodedImage& image = task.image;
  const bool is_made = !image.kept || image.kept->kind != CachedKind::kTensor;
  if (!is_made || !image.identity || !cache_->keeps(CachedKind::kTensor, image.wish)) return std::nullopt;
  if (!cache_->pays(image, key, CachedKind::kTensor, task.out.view().size())) return std::nullopt;
  return cache_->being_made().begin(tensor_key_of(key, image.wish.tensor_of));
}

bool CachedMaker::is_being_made(const SampleTask& task) {
  if (cache_ == nullptr || cache_->being_made().is_empty() || task.image.kept || !task.image.identity) return false;
  const CacheWish& wish = task.image.wish;
  const CacheKey file = key_of(*task.image.identity, cache_->seed());
  BeingMade& being_made = cache_->being_made();
  return (cache_->keeps(CachedKind::kTensor, wish) && being_made.want(tensor_key_of(file, wish.tensor_of))) ||
         (cache_->keeps(CachedKind::kPacked, wish) && being_made.want(file));
}

SampleOutcome CachedMaker::make_once(const SampleTask& task, const Order& order) {
  workspace_.index_helped() = false;
  if (!task.image.kept || task.image.kept->kind != CachedKind::kTensor)
    return make_image(task, order.recipe, limits_.now().sample, workspace_, order.fidelity, order.stop);
  SampleOutcome outcome{.index = task.index};
  const Clock::time_point begun = Clock::now();
  if (const Result<void> copied = copy_tensor(task, order.recipe); !copied) outcome.error = copied.error();
  outcome.transform = since(begun);
  stages().of(Stage::kCopy) += outcome.transform;
  return outcome;
}

void CachedMaker::set_aside(SampleTask& task, CacheAccess& use, const StopFlag& stop) {
  if (use.advice() != Advice::kPack && use.advice() != Advice::kPackNow) return;
  EncodedImage& image = task.image;
  const std::size_t bytes = image.bytes.size();
  const bool fits = unmade_bytes_ + bytes <= kMostUnmade.count;
  if (!fits && use.advice() == Advice::kPack) return;
  Unmade unmade{std::move(image), use.key(), use.advice()};
  if (!fits) {
    pack(unmade.image, unmade.key, stop);
    return;
  }
  unmade_bytes_ += bytes;
  unmade_.push_back(std::move(unmade));
}

void CachedMaker::keep_tensor(const SampleTask& task, const CacheKey& key) {
  const Clock::time_point begun = Clock::now();
  keep(*cache_, task.image, key, CachedKind::kTensor, CachedBlock::copy_of(task.out.view()));
  const std::chrono::nanoseconds took = since(begun);
  stages().of(Stage::kPack) += took;
  cache_->counts().making(CachedKind::kTensor, took);
}

CachedMaker::Taken CachedMaker::take() {
  return {.stages = std::exchange(stages(), {}), .saved = std::exchange(saved_, {})};
}

bool CachedMaker::finish(const std::function<bool()>& idle, const std::function<bool()>& stopped) {
  if (unmade_.empty()) return false;
  for (const Unmade& unmade : unmade_) {
    if (stopped()) break;
    if (unmade.advice == Advice::kPackNow || idle()) pack(unmade.image, unmade.key);
    if (lacks_process_) break;  // it would be waited for at each
  }
  unmade_.clear();
  unmade_bytes_ = 0;
  lacks_process_ = false;
  take();
  return true;
}

CachedMaker::Packed CachedMaker::pack(const EncodedImage& image, const CacheKey& key, const StopFlag& stop) {
  const std::optional<BeingMade::Turn> turn = cache_->being_made().begin(key);
  kernels::jpeg::Decoder* const decoder = workspace_.jpeg();
  if (!turn || decoder == nullptr || cache_->find(key, CachedKind::kPacked)) return {};
  const Clock::time_point begun = Clock::now();
  const std::optional<CachedEntry> index = cache_->find(key, CachedKind::kIndex);
  kernels::jpeg::IndexBytes index_bytes;
  if (index) index_bytes = {reinterpret_cast<const std::uint8_t*>(index->bytes->view().data()), index->bytes->size()};
  const Result<std::vector<std::uint8_t>> packed =
      pack_jpeg(image.bytes.view(), image.info, index_bytes, key.owner(), *decoder, encoder_,
                {begun + limits_.now().sample.time, &stop.flag()}, workspace_.libraries(), image.user);
  Packed made;
  if (packed) {
    made.by_index = index.has_value();
    made.form = CachedBlock::copy_of(std::as_bytes(std::span(*packed)), CachedBlock::kPadding);
    const bool is_kept = keep(*cache_, image, key, CachedKind::kPacked, made.form);
    made.unpacked = is_kept ? WhyUnpacked::kNotSaid : WhyUnpacked::kNoRoom;
  } else {
    lacks_process_ = packed.error().code == Code::kUnavailable;
    if (!lacks_process_ && !stop.stopped()) cache_->cannot_be_packed(key);
    made.unpacked = lacks_process_ ? WhyUnpacked::kNoProcess : WhyUnpacked::kNoForm;
  }
  workspace_.trim(0);
  const std::chrono::nanoseconds took = since(begun);
  stages().of(Stage::kPack) += took;
  cache_->counts().making(CachedKind::kPacked, took, made.form != nullptr);
  return made;
}

}  // namespace millrace
