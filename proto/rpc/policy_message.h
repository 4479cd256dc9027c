// Policies, the steps that draw operations of their own, and messages, there and back. Every message is untrusted. Pure
// functions, thread-safe.
#pragma once

#include "millrace/v1/step.pb.h"
#include "proto/base/result.h"
#include "proto/base/steps.h"

namespace millrace {

void fill_policy(const steps::RandAugment& step, v1::Step& out);
void fill_policy(const steps::TrivialAugmentWide& step, v1::Step& out);
void fill_policy(const steps::AutoAugment& step, v1::Step& out);
void fill_policy(const steps::TimmRandAugment& step, v1::Step& out);
void fill_policy(const steps::AugMix& step, v1::Step& out);
void fill_policy(const steps::TimmAugMix& step, v1::Step& out);

// kInvalid: an unknown field or value, a fill that is not 3 bytes; by its name in the message.
Result<steps::Kind> policy_from(const v1::RandAugment& augment);
Result<steps::Kind> policy_from(const v1::TrivialAugmentWide& augment);
Result<steps::Kind> policy_from(const v1::AutoAugment& augment);
Result<steps::Kind> policy_from(const v1::TimmRandAugment& augment);
Result<steps::Kind> policy_from(const v1::AugMix& mix);
Result<steps::Kind> policy_from(const v1::TimmAugMix& mix);

}  // namespace millrace
