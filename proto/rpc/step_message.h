// Steps of augmentation and messages, there and back. Every message is untrusted. Pure functions, thread-safe.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <string>
#include <vector>

#include "millrace/v1/recipe.pb.h"
#include "proto/base/result.h"
#include "proto/base/steps.h"

namespace millrace {

void to_messages(const std::vector<Step>& steps, google::protobuf::RepeatedPtrField<v1::Step>& out);
v1::Erasing to_message(const Erasing& erasing);

// kInvalid: "steps[2].one_of.steps[0]: ...": an unknown field or value, no kind, more than Step::kMost in all or more
// than Step::kMostNested in each other, a fill that is not 3 bytes.
Result<std::vector<Step>> from_messages(const google::protobuf::RepeatedPtrField<v1::Step>& steps);
Result<Erasing> from_message(const v1::Erasing& erasing);

// A step as people write it: protobuf's text format of a millrace.v1.Step, "color_jitter { hue { low: -0.1 high: 0.1 } }
// probability: 0.8"; or a name alone, "rand_augment", "grayscale", of a step that needs no parameters.
// kInvalid: what is wrong, and where.
Result<Step> step_from_text(const std::string& text);

// "affine, any_order, ...": the names that step_from_text() knows.
std::string step_names();

}  // namespace millrace
