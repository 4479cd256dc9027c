#include "daemon/pipeline/turns/large_pictures.h"

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/formats/decoding_memory.h"
#include "daemon/formats/packed.h"

namespace millrace {
namespace {

// Of what is decoded, which need not be the file: a packed form has no coefficients to gather, and a tensor is copied.
DecodingMemory memory_of(const SampleTask& task) {
  const EncodedImage& image = task.image;
  if (!image.kept) return decoding_memory(image.info, task.geometry);
  if (image.kept->kind == CachedKind::kTensor) return {};
  SourceInfo packed = image.info;
  packed.codec = packed_codec_memory(packed.stored, ByteReader({}));
  return decoding_memory(packed, task.geometry);
}

// What needs less, where that is the recipe's doing or the file's.
std::string advice_for(const SampleTask& task) {
  SampleGeometry plain = task.geometry;
  plain.canvas.reset();
  plain.draws.reset();
  plain.views.clear();
  const bool by_recipe = decoding_memory(task.image.info, plain).needed * 2 < memory_of(task).needed;
  if (by_recipe)
    return "or have the recipe make less of it: padding and steps work on a picture as large as what comes out";
  if (!task.geometry.views.empty())
    return "or ask for its views in recipes of their own: of several, all between them is decoded";
  return "or save the image smaller, or, if it is a JPEG of several scans, in one";
}

}  // namespace

Result<void> LargePictures::check(const SampleTask& task) const {
  const Bytes needed = memory_of(task).needed;
  if (needed <= std::max(budget(), kLaneKeeps)) return {};
  return Error{Code::kExhausted, "making it takes " + to_text(needed) + ", and all lanes together may take " +
                                     to_text(budget()) + " (memory.decoding in the daemon's settings): raise it, " +
                                     advice_for(task)};
}

// What may be more than the budget, but need not, is decoded alone.
Bytes LargePictures::bytes_of(const SampleTask& task, Bytes beside) const {
  const Bytes at_most = memory_of(task).at_most + beside;
  return at_most <= kLaneKeeps ? Bytes{0} : std::min(at_most, budget());
}

bool LargePictures::cover(const SampleTask& task, Account& account, Charge& charge, Bytes beside) {
  const Bytes bytes = bytes_of(task, beside);
  if (bytes.count <= charge.amount()) return true;
  if (next_ || !waiting_.empty()) return false;
  std::optional<Charge> more = account.try_charge(Resource::kDecoding, bytes.count - charge.amount());
  if (!more) return false;
  charge.absorb(*std::move(more));
  return true;
}

void LargePictures::defer(Deferred picture) {
  const Batch& batch = *picture.batch.batch();
  waiting_.push(batch.owner(), batch.request().priority, std::move(picture));
}

void LargePictures::defer_again(Deferred picture) {
  const Batch& batch = *picture.batch.batch();
  waiting_.put_back(batch.owner(), batch.request().priority, std::move(picture));
}

std::optional<Charge> LargePictures::charge_next() {
  Account& account = *next_->batch.batch()->session().parts.account;
  return account.try_charge(Resource::kDecoding, bytes_of(next_->task, next_->beside).count);
}

LargePictures::Deferred LargePictures::take_next() {
  Deferred picture = *std::move(next_);
  next_.reset();
  return picture;
}

TurnCharge LargePictures::charge_turn(const Batch& batch, std::uint64_t cost) {
  return waiting_.charge(batch.owner(), batch.request().priority, cost);
}

void LargePictures::correct_turn(const Batch& batch, const TurnCharge& charged, std::uint64_t actual) {
  waiting_.correct(batch.owner(), batch.request().priority, charged, actual);
}

void LargePictures::put_back_next(Deferred picture) {
  next_.emplace(std::move(picture));
}

std::vector<LargePictures::Deferred> LargePictures::drop(const Batch& batch) {
  std::vector<Deferred> dropped =
      waiting_.remove([&](const Deferred& picture) { return picture.batch.batch().get() == &batch; });
  if (next_ && next_->batch.batch().get() == &batch) dropped.push_back(take_next());
  return dropped;
}

}  // namespace millrace
