// What sessions, batches and epochs choose beside their recipe, as messages and back. Pure functions, thread-safe.
#pragma once

#include <string_view>

#include "millrace/v1/dataset.pb.h"
#include "millrace/v1/recipe.pb.h"
#include "millrace/v1/session.pb.h"
#include "proto/base/batch_choices.h"
#include "proto/base/result.h"

namespace millrace {

// from_message(): kInvalid, "field: 77 is not a value that ...". UNSPECIFIED is what the proto says it means.
v1::OnError to_message(OnError on_error);
Result<OnError> from_message(std::string_view field, v1::OnError on_error_untrusted);

v1::Fidelity to_message(Fidelity fidelity);
Result<Fidelity> from_message(std::string_view field, v1::Fidelity fidelity_untrusted);

v1::Priority to_message(Priority priority);
Result<Priority> from_message(std::string_view field, v1::Priority priority_untrusted);

v1::ShardTail to_message(ShardTail tail);
Result<ShardTail> from_message(std::string_view field, v1::ShardTail tail_untrusted);

v1::CacheUse to_message(CacheUse use);
Result<CacheUse> from_message(std::string_view field, v1::CacheUse use_untrusted);

}  // namespace millrace
