#include "client/cli/recipe_options.h"

#include <iterator>
#include <map>

#include "client/cli/options.h"
#include "proto/rpc/recipe_message.h"
#include "proto/rpc/step_message.h"

namespace millrace::cli {
namespace {

const std::map<std::string, Filter> kFilters{{"nearest", Filter::kNearest},   {"box", Filter::kBox},
                                             {"bilinear", Filter::kBilinear}, {"hamming", Filter::kHamming},
                                             {"bicubic", Filter::kBicubic},   {"lanczos", Filter::kLanczos}};
const std::map<std::string, DType> kDTypes{{"uint8", DType::kUint8},
                                           {"float16", DType::kFloat16},
                                           {"bfloat16", DType::kBfloat16},
                                           {"float32", DType::kFloat32}};
const std::map<std::string, Layout> kLayouts{{"nchw", Layout::kNchw}, {"nhwc", Layout::kNhwc}};
const std::map<std::string, Channels> kChannels{
    {"rgb", Channels::kRgb}, {"bgr", Channels::kBgr}, {"grey", Channels::kGrey}};

template <class Value>
std::string name_of(const std::map<std::string, Value>& names, Value value) {
  for (const auto& [name, of] : names) {
    if (of == value) return name;
  }
  return "";
}

// An option whose value is one of `names`.
template <class Value>
void add_choice(Command command, const char* flag, std::optional<Value>& to, const std::map<std::string, Value>& names,
                const char* help) {
  std::string choices;
  for (const auto& [name, value] : names) choices += (choices.empty() ? "" : "|") + name;
  command
      .option(
          flag, [&to, &names](const std::string& name) { to = names.at(name); }, help)
      .check(one_of(names, Letters::kAnyCase))
      .type_name(choices)
      .group("Transform");
}

std::uint32_t shorter_side_of(const RecipeOptions& options) {
  return options.shorter_side.value_or(options.size * 256 / 224);
}

std::vector<Recipe> views_of_all(const RecipeOptions& options) {
  std::vector<Recipe> all;
  for (const std::string& view : options.views) {
    std::vector<Recipe> some = *views_from_text(view);
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  return all;
}

Recipe preset_of(const RecipeOptions& options) {
  if (options.preset == "evaluate") {
    Recipe recipe = Recipe::evaluate(shorter_side_of(options), options.size);
    std::get<ShorterSide>(recipe.resize).longest = options.longest;
    return recipe;
  }
  if (options.preset == "thumbnail") return Recipe::thumbnail(options.size);
  if (options.preset == "none") return Recipe{.layout = Layout::kNhwc, .packing = Packing::kPacked};
  return Recipe::train(options.size);
}

}  // namespace

void add_recipe_options(Command command, RecipeOptions& options) {
  command
      .option("--recipe", options.preset,
              "train: random resized crop and flip; evaluate: shorter side, then centre crop; thumbnail: the whole "
              "image, longer side; "
              "none: as it is")
      .check(one_of({"train", "evaluate", "thumbnail", "none"}))
      .type_name("train|evaluate|thumbnail|none")
      .show_default()
      .group("Transform");
  command.option("--size", options.size, "side of the output, pixels; of thumbnail the longer one; none has no size")
      .check(whole_number(1, 65535))
      .show_default()
      .group("Transform");
  command
      .option("--resize", options.shorter_side,
              "of evaluate alone: the shorter side before the crop (default: size x 256 / 224)")
      .check(whole_number(1, 65535))
      .group("Transform");
  command
      .option("--longest", options.longest,
              "of evaluate alone: the longer side before the crop at most; long images get smaller, and those that "
              "are then smaller than the crop are bad samples (default: no bound)")
      .check(whole_number(1, 65535))
      .group("Transform");
  add_choice(command, "--filter", options.filter, kFilters,
             "resampling filter; none resamples nothing (default: bilinear)");
  add_choice(command, "--dtype", options.dtype, kDTypes,
             "element type (default: uint8); floats are normalised with ImageNet's statistics");
  add_choice(command, "--layout", options.layout, kLayouts,
             "axes (default: of train and evaluate nchw, of thumbnail and none nhwc)");
  add_choice(command, "--channels", options.channels, kChannels, "colour channels (default: rgb)");
  command.option("--flip", options.flip, "probability of a horizontal flip (default: 0.5 for train, else 0)")
      .check(real_number(0.0, 1.0))
      .group("Transform");
  command
      .option("--step", options.steps,
              "a step of augmentation, once for each, in their order: rand_augment, trivial_augment_wide, "
              "auto_augment, grayscale, invert, equalize, auto_contrast, vertical_flip; or with parameters, "
              "'rand_augment { operations: 3 magnitude: 7 } probability: 0.5', 'rotation { degrees { low: -10 "
              "high: 10 } }'")
      .one_value_each()
      .type_name("STEP")
      .group("Transform");
  command.option("--erase", options.erase, "probability that a random rectangle is erased (default: 0)")
      .check(real_number(0.0, 1.0))
      .group("Transform");
  command
      .option(
          "--view", options.views,
          "one of several images of each sample, instead of --recipe, once for each: 'count: 2 crop { random_resized "
          "{ min_scale: 0.4 } } resize { exact { width: 224 height: 224 } } flip_probability: 0.5 steps { "
          "color_jitter { brightness { low: 0.6 high: 1.4 } } }'; resize may be { shorter_side: 256 longest: 640 } or "
          "{ longer_side: 256 } as well, with pad { to { width: 256 height: 256 } } behind it; the error of a wrong "
          "name lists the right ones")
      .one_value_each()
      .type_name("VIEW")
      .group("Transform");
  command.flag("--ignore-orientation", options.ignore_orientation, "the stored pixels, whatever EXIF says")
      .group("Transform");
}

void require_fits(Command command, const RecipeOptions& options) {
  const auto refuse = [&](const char* option, const std::string& why) {
    if (command.has(option)) reject(option, why);
  };
  for (const std::string& view : options.views) {
    if (const auto parsed = views_from_text(view); !parsed)
      reject("--view", "'" + view + "': " + parsed.error().message);
  }
  for (const char* option :
       {"--recipe", "--size", "--resize", "--longest", "--filter", "--flip", "--step", "--erase"}) {
    if (!options.views.empty()) refuse(option, "each --view says it for itself");
  }
  for (const char* option : {"--resize", "--longest"}) {
    if (options.preset != "evaluate") refuse(option, "only --recipe evaluate has it, this is " + options.preset);
  }
  for (const std::string& step : options.steps) {
    if (const auto parsed = step_from_text(step); !parsed) {
      const std::string& why = parsed.error().message;
      const bool is_unknown = why.find("Step has no field") != std::string::npos;
      reject("--step", "'" + step + "': " + (is_unknown ? "no step of that name; steps are " + step_names() : why));
    }
  }
  if (options.preset == "none") {
    refuse("--size", "--recipe none leaves images as large as they are");
    refuse("--filter", "--recipe none resamples nothing");
  }
  if (options.shorter_side && *options.shorter_side < options.size)
    refuse("--resize", "must be at least --size, or no image is large enough for the crop: is " +
                           std::to_string(*options.shorter_side) + ", --size is " + std::to_string(options.size));
  if (options.longest && *options.longest <= shorter_side_of(options))
    refuse("--longest", "must be more than the shorter side, " + std::to_string(shorter_side_of(options)) + ", is " +
                            std::to_string(*options.longest));
}

Recipe recipe_of(const RecipeOptions& options) {
  Recipe recipe = options.views.empty() ? preset_of(options) : Recipe::of_views(views_of_all(options));
  if (options.dtype) recipe = recipe.normalised(*options.dtype);
  if (options.filter) recipe.filter = *options.filter;
  if (options.layout) recipe.layout = *options.layout;
  if (options.channels) recipe.channels = *options.channels;
  if (options.flip) recipe.flip_probability = *options.flip;
  recipe.ignore_orientation = options.ignore_orientation;
  for (const std::string& step : options.steps) recipe.steps.push_back(*step_from_text(step));
  if (options.erase && *options.erase > 0) recipe.erasing = Erasing{.probability = *options.erase};
  return recipe;
}

Recipe recipe_until(const RecipeOptions& options, std::size_t steps) {
  Recipe recipe = recipe_of(options);
  recipe.steps.resize(steps);
  recipe.erasing.reset();
  return recipe;
}

std::string recipe_text(const RecipeOptions& options) {
  const Recipe recipe = recipe_of(options);
  const std::string stored = name_of(kDTypes, recipe.dtype) + " " + name_of(kLayouts, recipe.layout) + " " +
                             name_of(kChannels, recipe.channels);
  if (!recipe.views.empty()) return std::to_string(recipe.views.size()) + " views of each sample, " + stored;
  std::string text = options.preset;
  if (options.preset != "none") text += " " + std::to_string(options.size);
  text += ": ";
  if (options.preset == "train") text += "random resized crop, ";
  if (const auto* side = std::get_if<ShorterSide>(&recipe.resize)) {
    text += "shorter side " + std::to_string(side->pixels);
    if (side->longest) text += " (longer one at most " + std::to_string(*side->longest) + ")";
    text += ", centre crop, ";
  }
  if (options.preset == "thumbnail") text += "longer side, ";
  if (!std::holds_alternative<KeepSize>(recipe.resize)) text += name_of(kFilters, recipe.filter) + ", ";
  if (recipe.flip_probability > 0) {
    std::string share = std::to_string(recipe.flip_probability);
    share.resize(share.find_last_not_of('0') + 1);
    text += "flip " + share + ", ";
  }
  for (const std::string& step : options.steps) text += step + ", ";
  if (recipe.erasing) text += "erase, ";
  return text + stored;
}

}  // namespace millrace::cli
