#include "daemon/pipeline/batch_run.h"

#include <algorithm>

#include "daemon/plan/draw_geometry.h"
#include "proto/shm/segment_layout.h"

namespace millrace {

static_assert(kPackedAlignment == shm::kImageAlignment);

bool BatchRun::first_bad_is_known() {
  while (made_in_order < count() && samples[made_in_order].done && !samples[made_in_order].error) ++made_in_order;
  return made_in_order < count() && samples[made_in_order].done;
}

SampleFailure BatchRun::failure(std::uint32_t index) const {
  const SampleRequest& sample = request.samples[index];
  return SampleFailure{.index = index,
                       .id = sample.id,
                       .source = source_name(sample.source),
                       .path = file_path(sample.source),
                       .error = *samples[index].error};
}

std::vector<SampleFailure> BatchRun::failures() const {
  std::vector<SampleFailure> found;
  for (std::uint32_t i = 0; i < count(); ++i) {
    if (samples[i].error) found.push_back(failure(i));
  }
  return found;
}

Result<void> lay_out_sample(BatchRun& batch, std::uint32_t index, const SourceInfo& source, std::uint32_t max_side) {
  const SampleRequest& request = batch.request.samples[index];
  SampleRun& sample = batch.samples[index];
  sample.source = source;
  const RandomKey key{batch.request.seed, batch.request.epoch, request.id};
  MILLRACE_TRY(sample.geometry, draw_geometry(*batch.request.recipe, request.overrides, source, key, max_side));
  const Size output = sample.geometry.output();
  sample.bytes = image_bytes(*batch.request.recipe, output);
  if (!batch.one_size) return {};
  if (output != *batch.one_size) {
    return Error{Code::kInvalid, "comes out as " + std::to_string(output.width) + "x" + std::to_string(output.height) +
                                     " in a tensor of " + std::to_string(batch.one_size->width) + "x" +
                                     std::to_string(batch.one_size->height) + "; resize it, or ask for packed output"};
  }
  sample.offset = (sample.bytes * index).count;
  sample.laid_out = true;
  return {};
}

Overflow overflow(const BatchRun& batch) {
  const std::uint64_t alignment = packed_alignment(*batch.request.recipe);
  const auto room_of = [&](std::uint32_t index) { return align_up(batch.samples[index].bytes, alignment); };
  std::vector<std::uint32_t> sized;
  Bytes tensor{0};
  for (std::uint32_t i = 0; i < batch.count(); ++i) {
    if (batch.samples[i].error) continue;
    sized.push_back(i);
    tensor += room_of(i);
  }
  Overflow found{.samples = {}, .needed = shm::slot_bytes(tensor, batch.count())};
  std::sort(sized.begin(), sized.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Bytes of_a = batch.samples[a].bytes, of_b = batch.samples[b].bytes;
    return of_a != of_b ? of_a < of_b : a < b;
  });
  while (!sized.empty() && shm::slot_bytes(tensor, batch.count()) > batch.arena->slot_bytes()) {
    tensor -= room_of(sized.back());
    found.samples.push_back(sized.back());
    sized.pop_back();
  }
  return found;
}

void lay_out_packed(BatchRun& batch) {
  Bytes end{0};
  for (SampleRun& sample : batch.samples) {
    if (sample.error) continue;
    const Bytes begin = align_up(end, packed_alignment(*batch.request.recipe));
    sample.offset = begin.count;
    sample.laid_out = true;
    end = begin + sample.bytes;
  }
  batch.tensor = end;
  batch.placed = true;
}

SlotRange range_of(const SampleRun& sample) {
  return {sample.offset, sample.bytes};
}

}  // namespace millrace
