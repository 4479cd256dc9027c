#include "daemon/backend/cuda/cuda_lane.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "daemon/backend/cuda/cuda_order.h"
#include "daemon/backend/words.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

Error unsupported(std::string why) {
  return Error{Code::kUnsupported, std::move(why)};
}

std::string why_not(const CudaOrder& order_untrusted) {
  const char* const begin = order_untrusted.why;
  const char* const end = std::find(begin, std::end(order_untrusted.why), '\0');
  return printable(std::string_view(begin, static_cast<std::size_t>(end - begin)));
}

}  // namespace

// Whether the GPU may try it; else it is finished.
bool CudaLane::is_for_gpu(Work& work, std::size_t i) const {
  const SampleTask& task = work.task(i);
  const Recipe& recipe = *work.job().recipe;
  Result<void> fine = check_task(task, recipe, work.limits());
  if (fine && task.out.memory != memory_) fine = check_on_host(task, recipe);
  const EncodedImage& image = task.image;
  if (fine) fine = cuda_can_make({image.info, task.geometry, work.job().fidelity, kind_kept(image)}, recipe, staging_);
  if (fine && needs_pixel_noise(task, recipe))
    fine = unsupported("the GPU draws no noise for each pixel that is erased");
  if (fine && image.bytes.size() == 0 && image.kept && !is_packed(image)) {
    work.outcome(i).read_again = true;
    fine = unsupported("the GPU takes no kept tensors");
  }
  if (fine && room_of(input_of(image).size()) > staging_.encoded_bytes)
    fine = unsupported("the file has " + to_text(Bytes{input_of(image).size()}) +
                       ", a lane's part of cuda.staging has room for " + to_text(Bytes{staging_.encoded_bytes}) +
                       ": raise cuda.staging, or have fewer cuda.lanes");
  if (!fine) work.finish(i, std::move(fine).error());
  return !work.is_finished(i);
}

std::vector<SampleOutcome> CudaLane::run(const DecodeJob& job, const SampleLimits& limits,
                                         const std::function<bool()>& stopped) {
  Work work(job, limits, stopped);
  return work.work_off([&](std::size_t& next) { make(work, take(work, next)); });
}

// The next ones whose tensors are in one memory, and which fit half the staging together, or one that does not. `next`:
// the first that is not finished.
std::vector<std::size_t> CudaLane::take(Work& work, std::size_t& next) const {
  std::vector<std::size_t> tasks;
  const CudaPart room = staging_.half(half_.half);
  std::uint64_t files = 0, tensors = 0, memory = 0;
  const std::size_t views = views_of(*work.job().recipe).size();
  for (std::size_t i = next; i < work.job().tasks.size(); ++i) {
    if (tasks.size() == kMostCudaImages || (tasks.size() + 1) * views > kMostCudaViews) break;
    if (work.is_finished(i) || !is_for_gpu(work, i)) continue;
    if (tasks.empty()) memory = memory_of(work.task(i).out);
    if (memory_of(work.task(i).out) != memory) continue;
    files += room_of(input_of(work.task(i).image).size());
    tensors += tensor_bytes_of(work.task(i));
    const bool is_too_much = files > room.encoded_bytes || tensors > room.tensor_bytes;
    if (is_too_much && !tasks.empty()) break;
    tasks.push_back(i);
    if (is_too_much) break;
  }
  next = work.next_after(next, tasks);
  return tasks;
}

bool CudaLane::fit_half(const Work& work, Indices tasks) const {
  const CudaPart room = staging_.half(half_.half);
  std::uint64_t files = 0, tensors = 0;
  for (const std::size_t i : tasks) {
    files += room_of(input_of(work.task(i).image).size());
    tensors += tensor_bytes_of(work.task(i));
  }
  return files <= room.encoded_bytes && tensors <= room.tensor_bytes;
}

// Too many for half of the lane's memory of the GPU are halved. One alone that is too much for it has all of it, and is
// the CPU's if that will not do either.
void CudaLane::make(Work& work, Indices tasks) {
  if (tasks.empty()) return;
  if (work.stopped()) return work.finish_all(tasks, cancelled_error());
  const auto is_too_much = [](const Result<void>& made) { return !made && made.error().code == Code::kExhausted; };
  const bool whole = !fit_half(work, tasks);
  Result<void> made = make_together(work, tasks, whole);
  if (is_too_much(made) && tasks.size() > 1) {
    make(work, tasks.first(tasks.size() / 2));
    return make(work, tasks.subspan(tasks.size() / 2));
  }
  if (is_too_much(made) && !whole) made = make_together(work, tasks, true);
  if (made) return;
  const Code code = made.error().code;
  if (code == Code::kCancelled) return work.finish_all(tasks, made.error());
  const bool is_lost = code == Code::kUnavailable || code == Code::kNotFound;  // all of it, or the session's memory
  work.finish_all(tasks, {is_lost ? Code::kUnavailable : Code::kUnsupported, made.error().message});
}

// With an error nothing is finished.
Result<void> CudaLane::make_together(Work& work, Indices tasks, bool whole) {
  const StagingTurns::Turn turn(turns_, whole);
  if (work.stopped()) return cancelled_error();
  const std::shared_ptr<CudaWorker> worker = device_.wanted(patience_);
  if (!worker) return Error{Code::kUnavailable, "the GPU is lost, and not back yet"};
  const Clock::time_point begun = Clock::now();
  CudaLaneChannel& channel = worker->half(half_.lane, half_.half);
  channel.use(whole);
  Result<void> asked = ask(work, tasks, channel);
  if (!asked && asked.error().code == Code::kUnavailable) device_.lost(worker, asked.error().message);
  MILLRACE_TRY_VOID(std::move(asked));
  collect(work, tasks, channel);
  work.note_time(tasks, Clock::now() - begun);
  return {};
}

Result<void> CudaLane::ask(const Work& work, Indices tasks, CudaLaneChannel& channel) {
  CudaBatchWriter writer(*work.job().recipe, work.job().fidelity, memory_of(work.task(tasks[0]).out), channel.rooms(),
                         channel.encoded());
  for (const std::size_t i : tasks) MILLRACE_TRY_VOID(writer.add(work.task(i)));
  return channel.ask(writer.batch(), patience_);
}

void CudaLane::collect(Work& work, Indices tasks, const CudaLaneChannel& channel) const {
  std::uint64_t at = 0;
  for (std::size_t n = 0; n < tasks.size(); ++n) {
    const SampleTask& task = work.task(tasks[n]);
    const CudaOrder& order = channel.rooms().orders[n];
    const std::uint32_t verdict = order.verdict;
    const bool is_made = verdict == 0;
    for (std::size_t view = 0; view <= task.further_outs.size(); ++view) {
      const Destination& out = task.out_of_view(view);
      if (is_made && !is_on_device(out)) std::memcpy(out.host, channel.tensors().data() + at, out.bytes.count);
      at += out.bytes.count;
    }
    work.finish(tasks[n],
                is_made ? std::optional<Error>() : unsupported("the GPU leaves it to others: " + why_not(order)));
    if (verdict == 2) work.outcome(tasks[n]).read_again = is_packed(task.image) && task.image.bytes.size() == 0;
  }
}

}  // namespace millrace
