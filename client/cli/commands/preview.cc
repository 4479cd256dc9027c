// millrace preview: a contact sheet of what a transform does to some images of a folder, or of a list. People look before
// they trust.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "client/cli/connection.h"
#include "client/cli/list/list_file.h"
#include "client/cli/list/named_dataset.h"
#include "client/cli/options.h"
#include "client/cli/picture/contact_sheet.h"
#include "client/cli/picture/png_file.h"
#include "client/cli/picture/to_pixels.h"
#include "client/cli/recipe_options.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct PreviewOptions {
  ConnectionOptions connection;
  RecipeOptions recipe;
  std::string folder;
  std::string output = "preview.png";
  std::uint32_t count = 16;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  int tile = 224;
  bool light = false;
  bool each_step = false;
};

struct PickedFile {
  std::string name;  // for people
  Source source;
  std::uint64_t id =
      0;  // its position in the sorted folder, or in the list: the dataset's sample id, so that crops are those of an epoch
};

// The order of a dataset's samples: by class folder, folder and name.
bool earlier(std::string_view a, std::string_view b) {
  const auto key = [](std::string_view path) {
    const std::size_t name = path.rfind('/') + 1;  // 0: in no folder
    const std::string_view folder = path.substr(0, name == 0 ? 0 : name - 1);
    return std::tuple(folder.substr(0, folder.find('/')), folder, path.substr(name));
  };
  return key(a) < key(b);
}

// `count` files of the folder, spread evenly over it.
Result<std::vector<PickedFile>> choose(const fs::path& folder, std::uint32_t count) {
  std::error_code error;
  std::vector<std::string> files;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_regular_file(error)) files.push_back(entry->path().lexically_relative(folder).string());
  }
  if (error) return errno_error("reading " + folder.string(), error.value());
  if (files.empty()) return Error{Code::kNotFound, folder.string() + ": no files in it"};
  std::sort(files.begin(), files.end(), earlier);
  const std::uint64_t chosen = std::min<std::uint64_t>(count, files.size());
  std::vector<PickedFile> samples;
  for (std::uint64_t i = 0; i < chosen; ++i) {
    const std::uint64_t at = i * files.size() / chosen;
    samples.push_back({files[at], Path{(folder / files[at]).string()}, at});
  }
  return samples;
}

// The same of a list.
Result<std::vector<PickedFile>> choose_listed(const std::string& list, std::uint32_t count) {
  MILLRACE_TRY(const std::vector<ListedSample> spread, spread_over(list, count));
  std::vector<PickedFile> samples;
  for (const auto& [position, file] : spread) {
    PickedFile& picked = samples.emplace_back();
    picked.id = position;
    picked.name = fs::path(file.path).filename().string();
    picked.source = Path{file.path};
    if (!file.range) continue;
    picked.name += "[" + std::to_string(file.range->offset) + "+" + std::to_string(file.range->length) + "]";
    picked.source = FilePart{file.path, file.range->offset, file.range->length};
  }
  return samples;
}

BatchRequest request_for(const PreviewOptions& options, const std::vector<PickedFile>& samples, const Recipe& recipe) {
  BatchRequest request{.recipe = recipe, .seed = options.seed, .epoch = options.epoch, .on_error = OnError::kSkip};
  for (const PickedFile& sample : samples) request.samples.push_back({.source = sample.source, .id = sample.id});
  return request;
}

// The batch's images by their position in the request.
std::map<std::uint32_t, std::size_t> by_index(const TensorView& tensor) {
  std::map<std::uint32_t, std::size_t> at;
  for (std::size_t i = 0; i < tensor.samples(); ++i) at[tensor.sample(i).index] = i;
  return at;
}

std::string caption_of(const SampleInfo& sample) {
  const Size source = sample.oriented();
  std::string text = std::to_string(source.width) + "x" + std::to_string(source.height);
  const bool whole = sample.crop.left == 0 && sample.crop.top == 0 &&
                     sample.crop.width == static_cast<std::int32_t>(source.width) &&
                     sample.crop.height == static_cast<std::int32_t>(source.height);
  if (!whole)
    text += " crop " + std::to_string(sample.crop.width) + "x" + std::to_string(sample.crop.height) + "+" +
            std::to_string(sample.crop.left) + "+" + std::to_string(sample.crop.top);
  if (sample.orientation > 1) text += " exif " + std::to_string(sample.orientation);
  return text;
}

// The part of the source that ends up in the output.
Box kept_box(const SampleInfo& sample) {
  const Box& crop = sample.crop;
  if (sample.resized.width == 0 || sample.resized.height == 0) return crop;
  // Of a side: what the window shows of the resized pixels, in those of the crop.
  const auto kept = [](std::int32_t window, std::uint32_t shown, std::uint32_t resized, std::int32_t of) {
    const double begin = std::max<double>(window, 0),
                 end = std::min<double>(resized, static_cast<double>(window) + shown);
    const double scale = static_cast<double>(of) / resized;
    return std::pair(static_cast<int>(begin * scale), static_cast<int>(std::max(0.0, end - begin) * scale));
  };
  const auto [left, width] = kept(sample.window_left, sample.size.width, sample.resized.width, crop.width);
  const auto [top, height] = kept(sample.window_top, sample.size.height, sample.resized.height, crop.height);
  return {crop.left + left, crop.top + top, width, height};
}

Rectangle scaled(const Box& box, Size source, const Picture& shown) {
  const auto horizontal = [&](int x) {
    return static_cast<int>(static_cast<double>(x) * shown.width / source.width + 0.5);
  };
  const auto vertical = [&](int y) {
    return static_cast<int>(static_cast<double>(y) * shown.height / source.height + 0.5);
  };
  const int left = horizontal(box.left);
  const int top = vertical(box.top);
  return {left, top, std::max(4, horizontal(box.left + box.width) - left),
          std::max(4, vertical(box.top + box.height) - top)};
}

std::vector<SheetEntry> entries_of(const std::vector<PickedFile>& samples, const Recipe& thumbnail,
                                   const Batch& originals, const Recipe& recipe, const Batch& results) {
  const auto original_at = by_index(originals.tensor);
  const auto result_at = by_index(results.tensor);
  std::vector<SheetEntry> entries;
  for (std::uint32_t i = 0; i < samples.size(); ++i) {
    SheetEntry entry{.name = printable(samples[i].name)};
    if (const auto at = original_at.find(i); at != original_at.end())
      entry.original =
          to_picture(thumbnail, originals.tensor.sample(at->second).size, originals.tensor.pixels(at->second));
    if (const auto at = result_at.find(i); at != result_at.end()) {
      const SampleInfo sample = results.tensor.sample(at->second);
      const Recipe& first = views_of(recipe).front();
      entry.result = to_picture(first, sample.size, results.tensor.pixels(at->second));
      entry.caption = caption_of(sample);
      entry.flipped = sample.flipped;
      if (entry.original && sample.source.width != 0)
        entry.crop = scaled(kept_box(sample), sample.oriented(), *entry.original);
    }
    entries.push_back(std::move(entry));
  }
  for (const SampleError& error : results.errors) {
    if (error.index >= entries.size()) continue;
    entries[error.index].problem = printable(error.error.message);
    entries[error.index].caption = std::string(code_name(error.error.code));
    std::fprintf(stderr, "millrace: bad sample: %s: %s\n", printable(error.source).c_str(),
                 printable(error.error.message).c_str());
  }
  return entries;
}

// One session for both batches: its slots have room for the larger one.
Bytes room_for_samples(const PreviewOptions& options, const Recipe& recipe, std::uint32_t samples) {
  const auto thumbnails = *slot_bytes_for(
      Recipe{.resize = ExactSize{{static_cast<std::uint32_t>(options.tile), static_cast<std::uint32_t>(options.tile)}}},
      samples);
  Recipe bound = recipe;
  if (!recipe.views.empty() && !slot_bytes_for(recipe, samples)) return thumbnails;  // the daemon says what is wrong
  if (const auto* longer = std::get_if<LongerSide>(&recipe.resize))
    bound.resize = ExactSize{{longer->pixels, longer->pixels}};
  return std::max(thumbnails, *slot_bytes_for(bound, samples));  // the recipes that leave sizes open are refused
}

Result<Batch> make(Session& session, const PreviewOptions& options, const std::vector<PickedFile>& samples,
                   const Recipe& recipe) {
  MILLRACE_TRY(const Ticket ticket, session.submit(request_for(options, samples, recipe)));
  MILLRACE_TRY(Batch batch, session.wait(ticket));
  if (batch.failure) return *std::move(batch.failure);
  return batch;
}

// Each view of each sample beside the original. Which part a view shows the daemon says of the first one.
std::vector<SheetEntry> with_views(const std::vector<SheetEntry>& firsts, const Recipe& recipe, const Batch& results) {
  const auto result_at = by_index(results.tensor);
  const std::span<const ViewTensor> views = results.tensor.views();
  std::vector<SheetEntry> entries;
  for (std::uint32_t i = 0; i < firsts.size(); ++i) {
    entries.push_back(firsts[i]);
    const auto at = result_at.find(i);
    if (at == result_at.end()) continue;
    entries.back().caption = "view 0: " + entries.back().caption;
    for (std::size_t view = 1; view < views.size(); ++view) {
      const Size size = *fixed_size(recipe.views[view]);
      SheetEntry entry{.name = firsts[i].name, .original = firsts[i].original};
      entry.result = to_picture(recipe.views[view], size,
                                views[view].data.subspan(at->second * views[view].strides[0], views[view].strides[0]));
      entry.caption = "view " + std::to_string(view);
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

Result<std::vector<SheetEntry>> make_entries(Client& client, const PreviewOptions& options,
                                             const std::vector<PickedFile>& samples) {
  const Recipe recipe = recipe_of(options.recipe);
  const Recipe thumbnail = Recipe::thumbnail(static_cast<std::uint32_t>(options.tile));
  const auto count = static_cast<std::uint32_t>(samples.size());
  const Bytes room = room_for_samples(options, recipe, count);
  MILLRACE_TRY(Session session,
               client.open_session({.name = "millrace preview", .slots = 2, .batch = count, .slot_bytes = room}));
  MILLRACE_TRY(const Batch originals, make(session, options, samples, thumbnail));
  MILLRACE_TRY(const Batch results, make(session, options, samples, recipe));
  const std::vector<SheetEntry> entries = entries_of(samples, thumbnail, originals, recipe, results);
  return recipe.views.empty() ? entries : with_views(entries, recipe, results);
}

// Each step alone, left before it and right after it. The steps before a step draw what they draw without it, so the
// recipe up to it makes its input.
Result<std::vector<SheetEntry>> make_steps(Client& client, const PreviewOptions& options,
                                           const std::vector<PickedFile>& samples) {
  const auto count = static_cast<std::uint32_t>(samples.size());
  const Recipe whole = recipe_of(options.recipe);
  std::vector<Recipe> recipes;
  for (std::size_t steps = 0; steps <= whole.steps.size(); ++steps)
    recipes.push_back(recipe_until(options.recipe, steps));
  std::vector<std::string> names = options.recipe.steps;
  if (whole.erasing) {
    recipes.push_back(whole);
    names.emplace_back("erasing");
  }
  MILLRACE_TRY(Session session, client.open_session({.name = "millrace preview",
                                                     .slots = 2,
                                                     .batch = count,
                                                     .recipe = whole,
                                                     .slot_bytes = room_for_samples(options, whole, count)}));
  std::vector<SheetEntry> before, entries(samples.size() * names.size());
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    MILLRACE_TRY(const Batch batch, make(session, options, samples, recipes[i]));
    std::vector<SheetEntry> made = entries_of(samples, recipes[i], batch, recipes[i], batch);
    for (std::size_t sample = 0; i > 0 && sample < samples.size(); ++sample) {
      SheetEntry& entry = entries[sample * names.size() + i - 1];
      entry = made[sample];
      entry.original = before[sample].result;
      entry.crop.reset();
      entry.flipped = false;
      if (entry.result) entry.caption = names[i - 1];
    }
    before = std::move(made);
  }
  return entries;
}

int preview(PreviewOptions& options) {
  std::error_code missing;
  const fs::path named = fs::canonical(options.folder, missing);
  if (missing) return report(errno_error(options.folder, missing.value()));
  const bool a_file = fs::is_regular_file(named, missing), a_list = a_file && ListFile::is_one(named.string());
  const fs::path folder = a_file && !a_list ? named.parent_path() : named;
  options.folder = folder.string();
  auto connection = open_connection_for(options.connection, {options.folder, a_list});
  if (!connection) return report(connection.error());
  const auto samples = a_list   ? choose_listed(options.folder, options.count)
                       : a_file ? std::vector<PickedFile>{{named.filename().string(), Path{named.string()}}}
                                : choose(folder, options.count);
  if (!samples) return report(samples.error());
  const auto entries = options.each_step ? make_steps(connection->client, options, *samples)
                                         : make_entries(connection->client, options, *samples);
  if (!entries) return report(entries.error());
  const SheetTitle title{.first = recipe_text(options.recipe),
                         .second = printable(options.folder) + ", seed " + std::to_string(options.seed) + ", epoch " +
                                   std::to_string(options.epoch)};
  const SheetStyle style{.tile = options.tile, .background = options.light ? Background::kLight : Background::kDark};
  const Picture sheet = contact_sheet(title, *entries, style);
  if (const auto written = write_png(options.output, sheet); !written) return report(written.error());
  std::printf("%s: %zu samples, %dx%d pixels\n", printable(options.output).c_str(), samples->size(), sheet.width,
              sheet.height);
  const auto bad = static_cast<std::uint64_t>(
      std::count_if(entries->begin(), entries->end(), [](const SheetEntry& entry) { return !entry.result; }));
  return bad == entries->size() ? report_nothing(bad) : static_cast<int>(kFine);
}

}  // namespace

void add_preview(Command app, Chosen& chosen) {
  auto options = std::make_shared<PreviewOptions>();  // shared with the callback
  const Command command = app.subcommand("preview", "Make a contact sheet of what a transform does to some images.");
  command
      .option("folder", options->folder,
              "where the images are; or a list of samples (JSON Lines); or one image, which is sample 0")
      .required()
      .check(not_empty());
  command.option("-n,--count", options->count, "how many, spread evenly over them")
      .check(whole_number(1, 400))
      .show_default();
  command.option("-o,--output", options->output, "the PNG file to write").check(not_empty()).show_default();
  command.option("--seed", options->seed, "of the crops and flips").check(whole_number(0)).show_default();
  command.option("--epoch", options->epoch, "whose crops and flips, from 0").check(whole_number(0)).show_default();
  command.option("--tile", options->tile, "side of each picture on the sheet, pixels")
      .check(whole_number(64, 1024))
      .show_default();
  command.flag("--each-step", options->each_step, "each --step alone, and erasing: left before it, right after it");
  command.flag("--light", options->light, "on a light background");
  add_recipe_options(command, options->recipe);
  add_connection_options(command, options->connection);
  command.footer(
      "Left the original with the part that the transform takes, right what it made of it (normalisation undone).\n\n"
      "Examples:\n"
      "  millrace preview /data/train -o sheet.png\n"
      "  millrace preview /data/train/cat/1.jpg -o cat.png\n"
      "  millrace preview shards.jsonl -n 9\n"
      "  millrace preview /data/val --recipe evaluate --size 288 -n 6\n"
      "  millrace preview --private ~/pictures --filter lanczos --epoch 1\n"
      "  millrace preview /data/train -n 4 --step rand_augment --step 'grayscale' --erase 0.5 --each-step\n"
      "  millrace preview /data/train -n 4 --view 'count: 2 crop { random_resized { min_scale: 0.4 } } resize { exact "
      "{ width: 224 height: 224 } }'");
  command.callback([options, command, &chosen] {
    require_fits(command, options->recipe);
    if (options->recipe.preset == "none")
      reject("--recipe", "none has nothing to look at; choose train, evaluate or thumbnail");
    const std::string ending = fs::path(options->output).extension().string();
    if (!ending.empty() && ending != ".png" && ending != ".PNG")
      reject("--output", "is written as a PNG file: name it *.png, not *" + ending);
    if (options->each_step && !options->recipe.views.empty())
      reject("--each-step", "shows the steps of one recipe: without --view, give a view's steps as --step");
    if (options->each_step && options->recipe.steps.empty() && !options->recipe.erase)
      reject("--each-step", "there is no step: name some with --step, or --erase");
    chosen = [options] { return preview(*options); };
  });
}

}  // namespace millrace::cli
