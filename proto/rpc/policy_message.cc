#include "proto/rpc/policy_message.h"

#include "proto/rpc/enum_meaning.h"
#include "proto/rpc/field.h"
#include "proto/rpc/surroundings_message.h"

namespace millrace {
namespace {

using steps::AugmentPolicy;

constexpr Meaning<v1::AutoAugment::Policy, AugmentPolicy> kPolicies[] = {
    {v1::AutoAugment::POLICY_UNSPECIFIED, AugmentPolicy::kImageNet},
    {v1::AutoAugment::POLICY_IMAGENET, AugmentPolicy::kImageNet},
    {v1::AutoAugment::POLICY_CIFAR10, AugmentPolicy::kCifar10},
    {v1::AutoAugment::POLICY_SVHN, AugmentPolicy::kSvhn}};

template <class Number>
Number value_or(Number value, Number otherwise) {
  return value == Number{0} ? otherwise : value;
}

}  // namespace

void fill_policy(const steps::RandAugment& step, v1::Step& out) {
  v1::RandAugment& augment = *out.mutable_rand_augment();
  augment.set_operations(step.operations);
  augment.set_magnitude(step.magnitude);
  augment.set_bins(step.bins);
  fill_surroundings(step.around, *augment.mutable_around());
}

void fill_policy(const steps::TrivialAugmentWide& step, v1::Step& out) {
  out.mutable_trivial_augment_wide()->set_bins(step.bins);
  fill_surroundings(step.around, *out.mutable_trivial_augment_wide()->mutable_around());
}

void fill_policy(const steps::AutoAugment& step, v1::Step& out) {
  out.mutable_auto_augment()->set_policy(message_of(kPolicies, step.policy));
  fill_surroundings(step.around, *out.mutable_auto_augment()->mutable_around());
}

void fill_policy(const steps::TimmRandAugment& step, v1::Step& out) {
  v1::TimmRandAugment& augment = *out.mutable_timm_rand_augment();
  augment.set_operations(step.operations);
  augment.set_magnitude(step.magnitude);
  augment.set_magnitude_std(step.magnitude_std);
  augment.set_probability(step.probability);
  augment.set_increasing(step.increasing);
  augment.set_fill(fill_bytes(step.fill));
  if (step.sampling) augment.set_sampling(to_message(*step.sampling));
}

void fill_policy(const steps::AugMix& step, v1::Step& out) {
  v1::AugMix& mix = *out.mutable_aug_mix();
  mix.set_severity(step.severity);
  mix.set_width(step.width);
  mix.set_depth(step.depth);
  mix.set_alpha(step.alpha);
  mix.set_fewer(!step.all_operations);
  fill_surroundings(step.around, *mix.mutable_around());
}

void fill_policy(const steps::TimmAugMix& step, v1::Step& out) {
  v1::TimmAugMix& mix = *out.mutable_timm_aug_mix();
  mix.set_magnitude(step.magnitude);
  if (step.magnitude_std) mix.set_magnitude_std(*step.magnitude_std);
  mix.set_width(step.width);
  mix.set_depth(step.depth);
  mix.set_alpha(step.alpha);
  mix.set_fill(fill_bytes(step.fill));
  if (step.sampling) mix.set_sampling(to_message(*step.sampling));
}

Result<steps::Kind> policy_from(const v1::RandAugment& augment) {
  if (has_unknown_fields(augment)) return unknown_field(augment);
  steps::RandAugment step;
  step.operations = value_or(augment.operations(), step.operations);
  if (augment.has_magnitude()) step.magnitude = augment.magnitude();
  step.bins = value_or(augment.bins(), step.bins);
  MILLRACE_TRY_IN("around", step.around, surroundings_from(augment.around()));
  return steps::Kind{step};
}

Result<steps::Kind> policy_from(const v1::TrivialAugmentWide& augment) {
  if (has_unknown_fields(augment)) return unknown_field(augment);
  steps::TrivialAugmentWide step;
  step.bins = value_or(augment.bins(), step.bins);
  MILLRACE_TRY_IN("around", step.around, surroundings_from(augment.around()));
  return steps::Kind{step};
}

Result<steps::Kind> policy_from(const v1::AutoAugment& augment) {
  if (has_unknown_fields(augment)) return unknown_field(augment);
  steps::AutoAugment step;
  MILLRACE_TRY(step.policy, meaning_of("policy", kPolicies, augment.policy()));
  MILLRACE_TRY_IN("around", step.around, surroundings_from(augment.around()));
  return steps::Kind{step};
}

Result<steps::Kind> policy_from(const v1::TimmRandAugment& augment) {
  if (has_unknown_fields(augment)) return unknown_field(augment);
  steps::TimmRandAugment step{
      .magnitude = augment.magnitude(), .magnitude_std = augment.magnitude_std(), .increasing = augment.increasing()};
  step.operations = value_or(augment.operations(), step.operations);
  if (augment.has_probability()) step.probability = augment.probability();
  MILLRACE_TRY(step.fill, fill_from(augment.fill()));
  MILLRACE_TRY(const PixelSampling sampling, sampling_from(augment.sampling()));
  if (augment.sampling() != v1::SAMPLING_UNSPECIFIED) step.sampling = sampling;
  return steps::Kind{step};
}

Result<steps::Kind> policy_from(const v1::AugMix& mix) {
  if (has_unknown_fields(mix)) return unknown_field(mix);
  steps::AugMix step{.depth = mix.depth(), .all_operations = !mix.fewer()};
  step.severity = value_or(mix.severity(), step.severity);
  step.width = value_or(mix.width(), step.width);
  step.alpha = value_or(mix.alpha(), step.alpha);
  if (mix.has_around()) {
    MILLRACE_TRY_IN("around", step.around, surroundings_from(mix.around()));
  }
  return steps::Kind{step};
}

Result<steps::Kind> policy_from(const v1::TimmAugMix& mix) {
  if (has_unknown_fields(mix)) return unknown_field(mix);
  steps::TimmAugMix step{.depth = mix.depth()};
  if (mix.has_magnitude()) step.magnitude = mix.magnitude();
  if (mix.has_magnitude_std()) step.magnitude_std = mix.magnitude_std();
  step.width = value_or(mix.width(), step.width);
  step.alpha = value_or(mix.alpha(), step.alpha);
  MILLRACE_TRY(step.fill, fill_from(mix.fill()));
  MILLRACE_TRY(const PixelSampling sampling, sampling_from(mix.sampling()));
  if (mix.sampling() != v1::SAMPLING_UNSPECIFIED) step.sampling = sampling;
  return steps::Kind{step};
}

}  // namespace millrace
