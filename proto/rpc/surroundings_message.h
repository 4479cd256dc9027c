// How steps that move pixels read between them and fill, as messages, there and back. Every message is untrusted. Pure
// functions, thread-safe.
#pragma once

#include <string>

#include "millrace/v1/step.pb.h"
#include "proto/base/result.h"
#include "proto/base/steps.h"

namespace millrace {

v1::Sampling to_message(PixelSampling sampling);
std::string fill_bytes(const Fill& fill);
void fill_surroundings(const Surroundings& around, v1::Surroundings& out);

// kInvalid: a sampling that is none, a fill that is not 3 bytes, an unknown field; each by its name in the message.
Result<PixelSampling> sampling_from(v1::Sampling sampling);
Result<Fill> fill_from(const std::string& bytes);
Result<Surroundings> surroundings_from(const v1::Surroundings& around);

}  // namespace millrace
