#include "proto/rpc/step_message.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <utility>

#include "proto/rpc/enum_meaning.h"
#include "proto/rpc/field.h"
#include "proto/rpc/parse_text.h"
#include "proto/rpc/policy_message.h"
#include "proto/rpc/surroundings_message.h"

namespace millrace {
namespace {

using Messages = google::protobuf::RepeatedPtrField<v1::Step>;
using steps::Kind;
using steps::Simple;

constexpr Meaning<v1::Simple, Simple> kSimple[] = {{v1::SIMPLE_UNSPECIFIED, Simple::kInvert},
                                                   {v1::SIMPLE_HORIZONTAL_FLIP, Simple::kHorizontalFlip},
                                                   {v1::SIMPLE_VERTICAL_FLIP, Simple::kVerticalFlip},
                                                   {v1::SIMPLE_GRAYSCALE, Simple::kGrayscale},
                                                   {v1::SIMPLE_INVERT, Simple::kInvert},
                                                   {v1::SIMPLE_AUTO_CONTRAST, Simple::kAutoContrast},
                                                   {v1::SIMPLE_EQUALIZE, Simple::kEqualize}};
constexpr Meaning<v1::Erasing::Noise, Erasing::Noise> kNoises[] = {
    {v1::Erasing::NOISE_UNSPECIFIED, Erasing::Noise::kNone},
    {v1::Erasing::NOISE_NONE, Erasing::Noise::kNone},
    {v1::Erasing::NOISE_CHANNEL, Erasing::Noise::kChannel},
    {v1::Erasing::NOISE_PIXEL, Erasing::Noise::kPixel}};

// --- to messages ---

void fill(const Interval& interval, v1::Interval& out) {
  out.set_low(interval.low);
  out.set_high(interval.high);
}

struct FillKind {
  v1::Step& out;

  void operator()(Simple simple) const { out.set_simple(message_of(kSimple, simple)); }
  void operator()(const steps::Posterize& step) const { out.set_posterize(step.bits); }
  void operator()(const steps::Solarize& step) const { out.set_solarize(step.threshold); }
  void operator()(const steps::Sharpness& step) const { fill(step.factor, *out.mutable_sharpness()); }
  void operator()(const steps::ColorJitter& step) const {
    v1::ColorJitter& jitter = *out.mutable_color_jitter();
    if (step.brightness) fill(*step.brightness, *jitter.mutable_brightness());
    if (step.contrast) fill(*step.contrast, *jitter.mutable_contrast());
    if (step.saturation) fill(*step.saturation, *jitter.mutable_saturation());
    if (step.hue) fill(*step.hue, *jitter.mutable_hue());
  }
  void operator()(const steps::GaussianBlur& step) const {
    out.mutable_gaussian_blur()->set_kernel_size(step.kernel_size);
    fill(step.sigma, *out.mutable_gaussian_blur()->mutable_sigma());
  }
  void operator()(const steps::PillowBlur& step) const { fill(step.radius, *out.mutable_pillow_blur()); }
  void operator()(const steps::Rotation& step) const {
    fill(step.degrees, *out.mutable_rotation()->mutable_degrees());
    fill_surroundings(step.around, *out.mutable_rotation()->mutable_around());
  }
  void operator()(const steps::Affine& step) const {
    v1::Affine& affine = *out.mutable_affine();
    fill(step.degrees, *affine.mutable_degrees());
    affine.set_translate_x(step.translate_x);
    affine.set_translate_y(step.translate_y);
    fill(step.scale, *affine.mutable_scale());
    fill(step.shear_x, *affine.mutable_shear_x());
    fill(step.shear_y, *affine.mutable_shear_y());
    fill_surroundings(step.around, *affine.mutable_around());
  }
  void operator()(const steps::Perspective& step) const {
    out.mutable_perspective()->set_distortion(step.distortion);
    fill_surroundings(step.around, *out.mutable_perspective()->mutable_around());
  }
  template <class Policy>
  void operator()(const Policy& step) const {
    fill_policy(step, out);
  }
  void operator()(const steps::Shift& step) const {
    out.mutable_shift()->set_x(step.x);
    out.mutable_shift()->set_y(step.y);
    out.mutable_shift()->set_fill(fill_bytes(step.fill));
  }
  void operator()(const steps::Sequence& step) const {
    to_messages(step.steps, *out.mutable_sequence()->mutable_steps());
  }
  void operator()(const steps::AnyOrder& step) const {
    to_messages(step.steps, *out.mutable_any_order()->mutable_steps());
  }
  void operator()(const steps::OneOf& step) const {
    to_messages(step.steps, *out.mutable_one_of()->mutable_steps());
    out.mutable_one_of()->mutable_weights()->Add(step.weights.begin(), step.weights.end());
  }
};

// --- from messages ---

Result<Interval> from_message(const v1::Interval& interval) {
  if (has_unknown_fields(interval)) return unknown_field(interval);
  return Interval{.low = interval.low(), .high = interval.high()};
}

Result<Interval> from_message(const v1::Interval& interval, bool is_set, const Interval& otherwise) {
  if (!is_set) return otherwise;
  return from_message(interval);
}

Result<std::optional<Interval>> optional_from(const v1::Interval& interval, bool is_set) {
  if (!is_set) return std::optional<Interval>{};
  MILLRACE_TRY(const Interval set, from_message(interval));
  return std::optional(set);
}

Result<Kind> from_message(const v1::ColorJitter& jitter) {
  if (has_unknown_fields(jitter)) return unknown_field(jitter);
  steps::ColorJitter step;
  MILLRACE_TRY_IN("brightness", step.brightness, optional_from(jitter.brightness(), jitter.has_brightness()));
  MILLRACE_TRY_IN("contrast", step.contrast, optional_from(jitter.contrast(), jitter.has_contrast()));
  MILLRACE_TRY_IN("saturation", step.saturation, optional_from(jitter.saturation(), jitter.has_saturation()));
  MILLRACE_TRY_IN("hue", step.hue, optional_from(jitter.hue(), jitter.has_hue()));
  return Kind{step};
}

Result<Kind> from_message(const v1::GaussianBlur& blur) {
  if (has_unknown_fields(blur)) return unknown_field(blur);
  MILLRACE_TRY_IN("sigma", const Interval sigma, from_message(blur.sigma()));
  return Kind{steps::GaussianBlur{.kernel_size = blur.kernel_size(), .sigma = sigma}};
}

Result<Kind> from_message(const v1::Rotation& rotation) {
  if (has_unknown_fields(rotation)) return unknown_field(rotation);
  MILLRACE_TRY_IN("degrees", const Interval degrees, from_message(rotation.degrees()));
  MILLRACE_TRY_IN("around", const Surroundings around, surroundings_from(rotation.around()));
  return Kind{steps::Rotation{.degrees = degrees, .around = around}};
}

Result<Kind> from_message(const v1::Affine& affine) {
  if (has_unknown_fields(affine)) return unknown_field(affine);
  steps::Affine step{.translate_x = affine.translate_x(), .translate_y = affine.translate_y()};
  MILLRACE_TRY_IN("degrees", step.degrees, from_message(affine.degrees()));
  MILLRACE_TRY_IN("scale", step.scale, from_message(affine.scale(), affine.has_scale(), step.scale));
  MILLRACE_TRY_IN("shear_x", step.shear_x, from_message(affine.shear_x()));
  MILLRACE_TRY_IN("shear_y", step.shear_y, from_message(affine.shear_y()));
  MILLRACE_TRY_IN("around", step.around, surroundings_from(affine.around()));
  return Kind{step};
}

Result<Kind> from_message(const v1::Perspective& perspective) {
  if (has_unknown_fields(perspective)) return unknown_field(perspective);
  MILLRACE_TRY_IN("around", const Surroundings around, surroundings_from(perspective.around()));
  return Kind{steps::Perspective{.distortion = perspective.distortion(), .around = around}};
}

Result<Kind> from_message(const v1::Shift& shift) {
  if (has_unknown_fields(shift)) return unknown_field(shift);
  MILLRACE_TRY(const Fill fill, fill_from(shift.fill()));
  return Kind{steps::Shift{.x = shift.x(), .y = shift.y(), .fill = fill}};
}

// Reads steps and counts them, so that no message makes more of them than a recipe may have.
class Reader {
 public:
  Result<std::vector<Step>> read(const Messages& messages, std::uint32_t depth) {
    if (depth > Step::kMostNested)
      return field_error("steps", "at most " + std::to_string(Step::kMostNested) + " may be in each other");
    std::vector<Step> read;
    for (int i = 0; i < messages.size(); ++i) {
      if (++count_ > Step::kMost)
        return field_error("steps", "a recipe has at most " + std::to_string(Step::kMost) + " of them in all");
      Result<Step> step = read_one(messages.Get(i), depth);
      if (!step) return inside("steps", i, std::move(step).error());
      read.push_back(*std::move(step));
    }
    return read;
  }

 private:
  Result<Step> read_one(const v1::Step& step, std::uint32_t depth) {
    if (has_unknown_fields(step)) return unknown_field(step);
    Step parsed;
    if (step.has_probability()) parsed.probability = step.probability();
    MILLRACE_TRY(parsed.kind, kind(step, depth));
    return parsed;
  }

  template <class Kind_>
  Result<Kind> group(const char* name, const v1::Sequence& sequence, std::uint32_t depth) {
    if (has_unknown_fields(sequence)) return inside(name, unknown_field(sequence));
    MILLRACE_TRY_IN(name, std::vector<Step> steps, read(sequence.steps(), depth + 1));
    return Kind{Kind_{std::move(steps)}};
  }

  Result<Kind> one_of(const v1::OneOf& one_of, std::uint32_t depth) {
    if (has_unknown_fields(one_of)) return inside("one_of", unknown_field(one_of));
    MILLRACE_TRY_IN("one_of", std::vector<Step> steps, read(one_of.steps(), depth + 1));
    if (one_of.weights_size() > static_cast<int>(Step::kMost)) {
      return inside("one_of",
                    field_error("weights", "must be as many as steps, are " + std::to_string(one_of.weights_size())));
    }
    return Kind{steps::OneOf{std::move(steps), {one_of.weights().begin(), one_of.weights().end()}}};
  }

  Result<Kind> simple(v1::Simple value) {
    if (value == v1::SIMPLE_UNSPECIFIED) return field_error("simple", "says nothing: name a step");
    MILLRACE_TRY(const Simple simple, meaning_of("simple", kSimple, value));
    return Kind{simple};
  }

  Result<Kind> kind(const v1::Step& step, std::uint32_t depth) {
    switch (step.kind_case()) {
      case v1::Step::kSimple:
        return simple(step.simple());
      case v1::Step::kPosterize:
        return Kind{steps::Posterize{step.posterize()}};
      case v1::Step::kSolarize:
        return Kind{steps::Solarize{step.solarize()}};
      case v1::Step::kSharpness: {
        MILLRACE_TRY_IN("sharpness", const Interval factor, from_message(step.sharpness()));
        return Kind{steps::Sharpness{factor}};
      }
      case v1::Step::kPillowBlur: {
        MILLRACE_TRY_IN("pillow_blur", const Interval radius, from_message(step.pillow_blur()));
        return Kind{steps::PillowBlur{radius}};
      }
      case v1::Step::kSequence:
        return group<steps::Sequence>("sequence", step.sequence(), depth);
      case v1::Step::kAnyOrder:
        return group<steps::AnyOrder>("any_order", step.any_order(), depth);
      case v1::Step::kOneOf:
        return one_of(step.one_of(), depth);
      case v1::Step::KIND_NOT_SET:
        return field_error("kind", "is not set: say what the step does");
      default:
        return with_message(step);
    }
  }

  template <class Message>
  Result<Kind> policy(const char* name, const Message& message) {
    MILLRACE_TRY_IN(name, Kind kind, policy_from(message));
    return kind;
  }

  template <class Message>
  Result<Kind> in(const char* name, const Message& message) {
    MILLRACE_TRY_IN(name, Kind kind, from_message(message));
    return kind;
  }

  Result<Kind> with_message(const v1::Step& step) {
    switch (step.kind_case()) {
      case v1::Step::kColorJitter:
        return in("color_jitter", step.color_jitter());
      case v1::Step::kGaussianBlur:
        return in("gaussian_blur", step.gaussian_blur());
      case v1::Step::kRotation:
        return in("rotation", step.rotation());
      case v1::Step::kAffine:
        return in("affine", step.affine());
      case v1::Step::kShift:
        return in("shift", step.shift());
      case v1::Step::kPerspective:
        return in("perspective", step.perspective());
      case v1::Step::kRandAugment:
        return policy("rand_augment", step.rand_augment());
      case v1::Step::kTrivialAugmentWide:
        return policy("trivial_augment_wide", step.trivial_augment_wide());
      case v1::Step::kAutoAugment:
        return policy("auto_augment", step.auto_augment());
      case v1::Step::kAugMix:
        return policy("aug_mix", step.aug_mix());
      case v1::Step::kTimmAugMix:
        return policy("timm_aug_mix", step.timm_aug_mix());
      default:
        return policy("timm_rand_augment", step.timm_rand_augment());
    }
  }

  std::uint32_t count_ = 0;
};

bool is_name(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// A name alone, as a message's text.
std::string spelled_out(const std::string& text) {
  if (!is_name(text)) return text;
  std::string upper = "SIMPLE_";
  for (const unsigned char c : text) upper += static_cast<char>(std::toupper(c));
  if (v1::Simple_descriptor()->FindValueByName(upper) != nullptr) return "simple: " + upper;
  if (text == "timm_rand_augment") return text + " { magnitude: 9 magnitude_std: 0.5 increasing: true }";
  return text + " {}";
}

}  // namespace

void to_messages(const std::vector<Step>& steps, Messages& out) {
  for (const Step& step : steps) {
    v1::Step& message = *out.Add();
    message.set_probability(step.probability);
    std::visit(FillKind{message}, step.kind);
  }
}

v1::Erasing to_message(const Erasing& erasing) {
  v1::Erasing out;
  out.set_probability(erasing.probability);
  fill(erasing.scale, *out.mutable_scale());
  fill(erasing.ratio, *out.mutable_ratio());
  out.mutable_value()->Add(erasing.value.begin(), erasing.value.end());
  out.set_noise(message_of(kNoises, erasing.noise));
  if (erasing.most != 1) out.set_most(erasing.most);
  return out;
}

Result<std::vector<Step>> from_messages(const Messages& steps) {
  return Reader().read(steps, 1);
}

std::string step_names() {
  std::set<std::string> names;
  const auto& kinds = *v1::Step::descriptor()->oneof_decl(0);
  for (int i = 0; i < kinds.field_count(); ++i) names.insert(kinds.field(i)->name());
  names.erase("simple");
  for (int i = 1; i < v1::Simple_descriptor()->value_count(); ++i) {
    std::string name = v1::Simple_descriptor()->value(i)->name().substr(7);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    names.insert(name);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Result<Step> step_from_text(const std::string& text) {
  v1::Recipe recipe;
  MILLRACE_TRY_VOID(parse_text(spelled_out(text), *recipe.add_steps()));
  MILLRACE_TRY(std::vector<Step> steps, from_messages(recipe.steps()));
  return std::move(steps.front());
}

// One value stands for every channel; none is 0.
Result<Erasing> from_message(const v1::Erasing& erasing) {
  if (has_unknown_fields(erasing)) return unknown_field(erasing);
  Erasing parsed{.probability = erasing.probability(), .most = std::max(1U, erasing.most())};
  MILLRACE_TRY_IN("scale", parsed.scale, from_message(erasing.scale(), erasing.has_scale(), parsed.scale));
  MILLRACE_TRY_IN("ratio", parsed.ratio, from_message(erasing.ratio(), erasing.has_ratio(), parsed.ratio));
  MILLRACE_TRY(parsed.noise, meaning_of("noise", kNoises, erasing.noise()));
  const int n = erasing.value_size();
  if (n != 0 && n != 1 && n != 3) return field_error("value", "must have 1 or 3 values, has " + std::to_string(n));
  for (int channel = 0; n > 0 && channel < 3; ++channel)
    parsed.value[static_cast<std::size_t>(channel)] = erasing.value(n == 1 ? 0 : channel);
  return parsed;
}

}  // namespace millrace
