// Bytes as a message of the stream, or as Sessions.Open, and on through every parser of requests.
#include <cstddef>
#include <cstdint>

#include "daemon/draw/draw_erasing.h"
#include "daemon/draw/draw_steps.h"
#include "daemon/fetch/list/client_file_list.h"
#include "daemon/pipeline/epoch/given_order.h"
#include "daemon/plan/recipe_check.h"
#include "daemon/serve/parse/parse_message.h"
#include "kernels/augment/augment.h"

using namespace millrace;

namespace {

const DatasetTable& datasets() {
  static const DatasetTable* const kTable = [] {
    auto* ledger = new Ledger(Budgets{});
    auto* table = new DatasetTable(ledger->account({UserId{1000}, SessionId{1}}));
    std::vector<Dataset::Entry> entries{{0, 1, 0}, {1, 1, -1}};
    const bool opened = table->reserve(DatasetId{1}).has_value() &&
                        table->fill(DatasetId{1}, std::make_shared<const Dataset>("/d", "ab", std::move(entries),
                                                                                  std::vector<std::string>{"c"}, 7));
    MILLRACE_CHECK(opened);
    return table;
  }();
  return *kTable;
}

// Steps that passed the check are drawn and done to a small picture, or are not for it.
void check_steps_of(const Recipe& recipe) {
  constexpr kernels::Size kSize{19, 13};
  constexpr RandomKey kKey{.seed = 1};
  static kernels::Augmenter& augmenter = *new kernels::Augmenter(kernels::best_target());
  std::vector<kernels::Operation> operations;
  draw_steps(recipe.steps, kSize, kKey, operations);
  MILLRACE_CHECK(operations.size() <= Step::kMost);
  std::vector<std::uint8_t> pixels(std::size_t{3} * kSize.width * kSize.height, 7);
  const kernels::MutableU8View picture{pixels.data(), kSize.width, kSize.height, 3, std::ptrdiff_t{3} * kSize.width};
  kernels::TimeLimit limit;
  if (kernels::is_valid(kSize, operations)) {
    MILLRACE_CHECK(kernels::size_after(kSize, operations) == kSize);
    MILLRACE_CHECK(augmenter.apply(picture, operations, limit, picture));
  }
  if (!recipe.erasing) return;
  for (const Box& box : draw_erased(*recipe.erasing, {kSize.width, kSize.height}, kKey))
    MILLRACE_CHECK(box.left >= 0 && box.top >= 0 && box.width > 0 && box.height > 0 &&
                   box.left + box.width <= kSize.width && box.top + box.height <= kSize.height);
}

// Any recipe that a message can hold may be asked for its size, and judged; one that passes has a size or is packed.
void check(const Recipe& recipe, const Limits& limits) {
  const std::optional<Size> size = fixed_size(recipe);
  if (!check_recipe(recipe, limits.sample.side)) return;
  MILLRACE_CHECK(recipe.views.size() <= Recipe::kMostViews);
  if (!recipe.views.empty()) {
    MILLRACE_CHECK(fixed_tensor_bytes(recipe, 1).has_value());
    for (const Recipe& view : recipe.views) check(view, limits);
    return;
  }
  MILLRACE_CHECK(size || recipe.packing == Packing::kPacked);
  MILLRACE_CHECK(!size || (size->width > 0 && size->height > 0));
  check_steps_of(recipe);
}

// A list that becomes a dataset has paths that lie where they say, and parts that a file can have.
void check(const ListFilesRequest& list) {
  static const std::unique_ptr<Roots>& roots = *new std::unique_ptr<Roots>(*Roots::open({.folders = {"/usr"}}));
  if (list.part.paths_untrusted.empty()) return;
  ClientFileList making(*roots, {.path_untrusted = list.folder, .files = {list.part}});
  std::optional<ClientFileList::Outcome> made;
  while (!made) made = making.step();
  if (!*made) return;
  const Dataset& dataset = ***made;
  for (std::uint64_t i = 0; i < dataset.samples(); ++i) {
    const Dataset::Location location = dataset.locate(SampleId{i});
    MILLRACE_CHECK(location.file.starts_with("/usr"));
    MILLRACE_CHECK(!location.range || is_in_a_file(*location.range));
    MILLRACE_CHECK(list.part.labels.empty() || dataset.label(SampleId{i}) == list.part.labels[i]);
  }
}

// As many samples as the batches have, all of them.
void check(const GivenBatches& given) {
  GivenOrder order;
  std::size_t samples = 0;
  for (order.add(given, {}); order.has_next();) samples += order.next().size();
  MILLRACE_CHECK(samples == given.samples.size() && order.all_given() == given.last);
}

// What the rest of the daemon relies on.
void check(const ClientRequest& request, const Limits& limits) {
  if (const auto* batch = std::get_if<BatchRequest>(&request)) {
    MILLRACE_CHECK(!batch->samples.empty() && batch->samples.size() <= limits.batch.samples);
    MILLRACE_CHECK(batch->recipe != nullptr);
    check(*batch->recipe, limits);
    for (const SampleRequest& sample : batch->samples) {
      const auto* listed = std::get_if<DatasetSource>(&sample.source);
      MILLRACE_CHECK(listed == nullptr || raw(listed->sample) < listed->dataset->samples());
      const auto* path = std::get_if<PathSource>(&sample.source);
      MILLRACE_CHECK(path == nullptr || !path->range || is_in_a_file(*path->range));
      const auto& [box, size] = sample.overrides;
      MILLRACE_CHECK(!box || (box->width > 0 && box->height > 0));
      MILLRACE_CHECK(!size || (size->width > 0 && size->height > 0));
    }
  }
  if (const auto* epoch = std::get_if<EpochRequest>(&request)) {
    MILLRACE_CHECK(epoch->dataset != nullptr && epoch->recipe != nullptr);
    check(*epoch->recipe, limits);
    MILLRACE_CHECK(epoch->order.batch_size > 0 && epoch->order.rank < epoch->order.world_size);
  }
  if (const auto* list = std::get_if<ListFilesRequest>(&request)) check(*list);
  if (const auto* question = std::get_if<NameFilesRequest>(&request)) {
    for (const SampleId sample : question->samples) MILLRACE_CHECK(raw(sample) < question->dataset->samples());
  }
  if (const auto* given = std::get_if<GiveBatchesRequest>(&request); given != nullptr && given->batches)
    check(*given->batches);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 1'000'000) return 0;
  const Limits limits;
  v1::ClientMessage message;
  if (message.ParseFromArray(data, static_cast<int>(size)))
    check(parse_message(message, limits, datasets(), {}), limits);
  v1::OpenSessionRequest open;
  if (open.ParseFromArray(data, static_cast<int>(size))) {
    const Result<OpenRequest> parsed = parse_open(open);
    if (parsed && parsed->recipe) check(*parsed->recipe, limits);
  }
  return 0;
}
