#include "daemon/backend/fpga/fpga_lane.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/backend/words.h"
#include "daemon/observe/log.h"
#include "hls/host/completions.h"
#include "hls/host/room.h"
#include "hls/wire/words.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

static_assert(kMostFpgaImages == hls::kMostImages);

// Beyond fpga.hang_milliseconds, which the process itself looks after: it may hang, too. A batch that has the card
// programmed waits for that.
constexpr std::chrono::seconds kPatience{2}, kPatienceWithSwap{60};

Error unsupported(std::string why) {
  return Error{Code::kUnsupported, std::move(why)};
}

constexpr std::uint64_t rounded(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Of a file, and of the zeroes after it.
std::uint64_t room_of(std::size_t file_bytes) {
  return rounded(file_bytes + FpgaStaging::kFilesApart, FpgaStaging::kFilesApart);
}

std::uint64_t tensor_room(Bytes tensor) {
  return rounded(tensor.count, hls::kUnit);
}

bool is_packed(const EncodedImage& image) {
  return kind_kept(image) == CachedKind::kPacked;
}

// What the card makes the tensor of: what is kept of the file, or the file.
ByteView input_of(const EncodedImage& image, FpgaImage with) {
  return with == FpgaImage::kPacked ? image.kept->bytes->view() : image.bytes.view();
}

FpgaOrder order_of(const SampleTask& task, FpgaImage with, std::uint64_t at, std::uint64_t tensor_at) {
  const SampleGeometry& geometry = task.geometry;
  return {.at = at,
          .tensor_at = tensor_at,
          .bytes = static_cast<std::uint32_t>(input_of(task.image, with).size()),
          .flip = geometry.flip ? 1U : 0U,
          .crop_left = geometry.crop.left,
          .crop_top = geometry.crop.top,
          .crop_width = geometry.crop.width,
          .crop_height = geometry.crop.height,
          .resized_width = static_cast<std::int32_t>(geometry.resized.width),
          .resized_height = static_cast<std::int32_t>(geometry.resized.height),
          .window_left = geometry.window.left,
          .window_top = geometry.window.top,
          .window_width = geometry.window.width,
          .window_height = geometry.window.height,
          .stored_width = task.image.info.stored.width,
          .stored_height = task.image.info.stored.height,
          .tensor_bytes = task.out.bytes.count,
          .verdict = 1};
}

FpgaBatch batch_of(const Recipe& recipe) {
  FpgaBatch batch{.filter = static_cast<std::uint8_t>(recipe.filter),
                  .dtype = static_cast<std::uint8_t>(recipe.dtype),
                  .layout = static_cast<std::uint8_t>(recipe.layout),
                  .channels = static_cast<std::uint8_t>(recipe.channels),
                  .range = static_cast<std::uint8_t>(recipe.range),
                  .normalise = recipe.normalise.has_value()};
  if (recipe.normalise) {
    std::copy_n(recipe.normalise->mean.begin(), 3, std::begin(batch.mean));
    std::copy_n(recipe.normalise->std.begin(), 3, std::begin(batch.std));
  }
  return batch;
}

// The sum of the copy (hls::tensor_sum), piece by piece while it is in the first cache.
std::uint32_t copy_and_add(std::span<std::byte> to, std::span<const std::byte> from) {
  constexpr std::size_t kPiece = 8192;  // whole words
  std::uint32_t sum = 0;
  for (std::size_t at = 0; at < from.size(); at += kPiece) {
    const std::size_t bytes = std::min(kPiece, from.size() - at);
    std::memcpy(to.data() + at, from.data() + at, bytes);
    sum += hls::tensor_sum(to.subspan(at, bytes));
  }
  return sum;
}

}  // namespace

Result<FpgaImage> fpga_can_make(const SampleFacts& facts, const Recipe& recipe, const FpgaStaging& staging) {
  const SourceInfo& source = facts.source;
  const bool packed = facts.kept == CachedKind::kPacked;
  if (source.format != ImageFormat::kJpeg) return unsupported("the card decodes JPEG files alone");
  if (source.has.passes && !packed)
    return unsupported("the card decodes no progressive JPEG files of which no packed form is kept");
  if (source.has.cmyk) return unsupported("the card decodes no CMYK");
  if (source.orientation != 1) return unsupported("the card turns no pictures");
  if (recipe.patches) return unsupported("the card makes no patches");
  if (!recipe.views.empty()) return unsupported("the card makes one view of a sample");
  if (facts.geometry.canvas) return unsupported("the card does not pad");
  if (facts.geometry.filter) return unsupported("the card draws no filters");
  if (recipe.indices) return unsupported("the card reads no indices");
  if (is_augmented(recipe)) return unsupported("the card does no steps of augmentation, nor erasing");
  const Size resized = facts.geometry.resized;
  if (std::max({resized.width, resized.height, source.stored.width, source.stored.height}) > hls::kMostSide)
    return unsupported("an image of more than " + std::to_string(hls::kMostSide) +
                       " pixels a side is too large for the card's kernels");
  const kernels::ResampleSpec resample = resample_spec(facts.geometry, recipe, 3);
  if (const std::string_view why = hls::why_no_room(resample); !why.empty()) return unsupported(std::string(why));
  if (tensor_room(image_bytes(recipe, facts.geometry.output())) > staging.tensor_bytes)
    return unsupported("the tensor is larger than a lane's part of fpga.staging");
  return packed ? FpgaImage::kPacked : FpgaImage::kJpeg;
}

// With what the card may try it; else it is finished.
std::optional<FpgaImage> FpgaLane::is_for_card(Work& work, std::size_t i) const {
  const SampleTask& task = work.task(i);
  const Recipe& recipe = *work.job().recipe;
  const EncodedImage& image = task.image;
  Result<void> fine = check_task(task, recipe, work.limits());
  if (fine) fine = check_on_host(task, recipe);
  Result<FpgaImage> with = FpgaImage::kJpeg;
  if (fine)
    with = fpga_can_make({image.info, task.geometry, work.job().fidelity, kind_kept(image)}, recipe, parts_.staging);
  if (fine && !with) fine = with.error();
  if (fine && image.bytes.size() == 0 && image.kept && !is_packed(image)) {
    work.outcome(i).read_again = true;
    fine = unsupported("the card takes no kept tensors");
  }
  if (!fine) {
    work.finish(i, std::move(fine).error());
    return std::nullopt;
  }
  const std::optional<FpgaImage> now = with_now(work, i, *with);
  if (!now || room_of(input_of(image, *now).size()) <= parts_.staging.encoded_bytes) return now;
  work.finish(i, unsupported("the file is larger than a lane's part of fpga.staging"));
  return std::nullopt;
}

// The same as things are now. What nobody else makes is made of the file, where something is kept of one, or comes
// again.
std::optional<FpgaImage> FpgaLane::with_now(Work& work, std::size_t i, FpgaImage with) const {
  const FpgaImage present = parts_.choice.now().image;
  if (with == present) return with;
  if (!work.job().pinned) {
    work.finish(i, unsupported("the card is programmed for other images now"));
    return std::nullopt;
  }
  const EncodedImage& image = work.task(i).image;
  const bool takes_file = with == FpgaImage::kPacked && !image.info.has.passes;
  if (takes_file && image.bytes.size() > 0) return present;
  if (takes_file) {
    work.outcome(i).read_again = true;
    work.finish(i, unsupported("the card is programmed for files now"));
  } else {
    work.put_back(std::span(&i, 1));
  }
  return std::nullopt;
}

std::vector<SampleOutcome> FpgaLane::run(const DecodeJob& job, const SampleLimits& limits,
                                         const std::function<bool()>& stopped) {
  Work work(job, limits, stopped);
  return work.work_off([&](std::size_t& next) { make(work, take(work, next)); });
}

// The next ones of one kind that fit the staging together. `next`: the first that is not finished.
FpgaLane::Batch FpgaLane::take(Work& work, std::size_t& next) const {
  Batch taken{.with = parts_.choice.now(), .tasks = {}};
  std::uint64_t files = 0, tensors = 0;
  for (std::size_t i = next; i < work.job().tasks.size() && taken.tasks.size() < kMostFpgaImages; ++i) {
    if (work.is_finished(i)) continue;
    const std::optional<FpgaImage> with = is_for_card(work, i);
    if (!with || *with != taken.with.image) continue;
    files += room_of(input_of(work.task(i).image, *with).size());
    tensors += tensor_room(work.task(i).out.bytes);
    if (files > parts_.staging.encoded_bytes || tensors > parts_.staging.tensor_bytes) break;
    taken.tasks.push_back(i);
  }
  next = work.next_after(next, taken.tasks);
  return taken;
}

void FpgaLane::make(Work& work, const Batch& made) {
  if (made.tasks.empty()) return;
  const std::shared_ptr<FpgaWorker> worker = parts_.device.current();
  if (!worker) return work.finish_all(made.tasks, {Code::kUnavailable, "the card is lost, and not back yet"});
  FpgaLaneChannel& channel = worker->lane(number_);
  FpgaBatch batch = put(work, made, channel);
  parts_.figures.begins();
  const auto patience = parts_.hang + (parts_.choice.has_made(made.with) ? kPatience : kPatienceWithSwap);
  const Result<FpgaDone> done = channel.ask(batch, patience);
  parts_.figures.ends();
  if (!done) return refuse(work, made, done.error(), worker);
  parts_.choice.note_made(made.with);
  parts_.figures.add(*done);
  if (!collect(work, made.tasks, channel)) {
    parts_.figures.lost_one();
    parts_.device.lost(worker, "a tensor came otherwise than the card wrote it");
  }
  // Programming the card and waiting for it are not the samples' time.
  work.note_time(made.tasks, std::chrono::microseconds(done->busy_microseconds));
}

FpgaBatch FpgaLane::put(const Work& work, const Batch& made, FpgaLaneChannel& channel) const {
  FpgaBatch batch = batch_of(*work.job().recipe);
  batch.images = static_cast<std::uint32_t>(made.tasks.size());
  batch.image = made.with.image;
  batch.swap = made.with.swap;
  for (std::size_t n = 0; n < made.tasks.size(); ++n) {
    const SampleTask& task = work.task(made.tasks[n]);
    const ByteView input = input_of(task.image, made.with.image);
    const std::span<std::byte> room = channel.encoded().subspan(batch.encoded_bytes, room_of(input.size()));
    std::memcpy(room.data(), input.data(), input.size());
    std::memset(room.data() + input.size(), 0, room.size() - input.size());
    channel.orders()[n] = order_of(task, made.with.image, batch.encoded_bytes, batch.tensor_bytes);
    batch.encoded_bytes += room.size();
    batch.tensor_bytes += tensor_room(task.out.bytes);
  }
  return batch;
}

void FpgaLane::refuse(Work& work, const Batch& made, const Error& why, const std::shared_ptr<FpgaWorker>& worker) {
  const bool in_a_swap = why.code == Code::kUnavailable && !parts_.choice.has_made(made.with);
  if ((why.code == Code::kNotFound || in_a_swap) && parts_.choice.forget(made.with.image, Clock::now()))
    log_warning("a card is not programmed with its image for " +
                std::string(made.with.image == FpgaImage::kJpeg ? "files" : "packed coefficients") +
                " any more, before the daemon is started again: " + why.message);
  if (why.code == Code::kUnsupported) return work.finish_all(made.tasks, why);
  // Another image by now, so they come again; a process that says so and there is none is as good as lost.
  const bool is_lost = why.code == Code::kUnavailable || parts_.choice.now() == made.with;
  if (!is_lost) return work.put_back(made.tasks);
  parts_.figures.lost_one();
  parts_.device.lost(worker, why.message);
  work.finish_all(made.tasks, {Code::kUnavailable, why.message});
}

bool FpgaLane::collect(Work& work, Indices tasks, const FpgaLaneChannel& channel) const {
  std::uint64_t at = 0;
  bool is_sound = true;
  for (std::size_t n = 0; n < tasks.size(); ++n) {
    const EncodedImage& image = work.task(tasks[n]).image;
    const Destination& out = work.task(tasks[n]).out;
    const FpgaOrder& order = channel.orders()[n];
    const std::uint32_t verdict = order.verdict, sum = order.sum;
    std::optional<Error> error;
    if (verdict != 0) {
      parts_.figures.left_one();
      error = unsupported("the card leaves it to others: " + device_host::text_of(order.why));
    } else {
      const std::span<const std::byte> tensor = channel.tensors().subspan(at, out.bytes.count);
      if (copy_and_add({out.host, out.bytes.count}, tensor) != sum)
        error = Error{Code::kUnavailable, "a damaged tensor"};
    }
    is_sound = is_sound && (!error || error->code != Code::kUnavailable);
    work.finish(tasks[n], std::move(error));
    if (verdict == 2) work.outcome(tasks[n]).read_again = image.bytes.size() == 0;
    at += tensor_room(out.bytes);
  }
  return is_sound;
}

}  // namespace millrace
