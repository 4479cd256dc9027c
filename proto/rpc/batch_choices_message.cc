// Every message in this file is untrusted.
#include "proto/rpc/batch_choices_message.h"

#include "proto/rpc/enum_meaning.h"

namespace millrace {
namespace {

constexpr Meaning<v1::OnError, OnError> kOnErrors[] = {{v1::ON_ERROR_UNSPECIFIED, OnError::kFail},
                                                       {v1::ON_ERROR_FAIL, OnError::kFail},
                                                       {v1::ON_ERROR_SKIP, OnError::kSkip},
                                                       {v1::ON_ERROR_ZERO, OnError::kZero},
                                                       {v1::ON_ERROR_SUBSTITUTE, OnError::kSubstitute}};
constexpr Meaning<v1::Fidelity, Fidelity> kFidelities[] = {{v1::FIDELITY_UNSPECIFIED, Fidelity::kExact},
                                                           {v1::FIDELITY_EXACT, Fidelity::kExact},
                                                           {v1::FIDELITY_FAST, Fidelity::kFast}};
constexpr Meaning<v1::Priority, Priority> kPriorityValues[] = {{v1::PRIORITY_UNSPECIFIED, Priority::kNormal},
                                                               {v1::PRIORITY_LOW, Priority::kLow},
                                                               {v1::PRIORITY_NORMAL, Priority::kNormal},
                                                               {v1::PRIORITY_HIGH, Priority::kHigh}};
constexpr Meaning<v1::ShardTail, ShardTail> kShardTails[] = {{v1::SHARD_TAIL_UNSPECIFIED, ShardTail::kPad},
                                                             {v1::SHARD_TAIL_PAD, ShardTail::kPad},
                                                             {v1::SHARD_TAIL_DROP, ShardTail::kDrop},
                                                             {v1::SHARD_TAIL_UNEVEN, ShardTail::kUneven}};
constexpr Meaning<v1::CacheUse, CacheUse> kCacheUses[] = {{v1::CACHE_USE_UNSPECIFIED, CacheUse::kTensors},
                                                          {v1::CACHE_USE_OFF, CacheUse::kOff},
                                                          {v1::CACHE_USE_INDEX, CacheUse::kIndex},
                                                          {v1::CACHE_USE_PACKED, CacheUse::kPacked},
                                                          {v1::CACHE_USE_TENSORS, CacheUse::kTensors}};

}  // namespace

v1::OnError to_message(OnError on_error) {
  return message_of(kOnErrors, on_error);
}
Result<OnError> from_message(std::string_view field, v1::OnError on_error) {
  return meaning_of(field, kOnErrors, on_error);
}

v1::Fidelity to_message(Fidelity fidelity) {
  return message_of(kFidelities, fidelity);
}
Result<Fidelity> from_message(std::string_view field, v1::Fidelity fidelity) {
  return meaning_of(field, kFidelities, fidelity);
}

v1::Priority to_message(Priority priority) {
  return message_of(kPriorityValues, priority);
}
Result<Priority> from_message(std::string_view field, v1::Priority priority) {
  return meaning_of(field, kPriorityValues, priority);
}

v1::ShardTail to_message(ShardTail tail) {
  return message_of(kShardTails, tail);
}
Result<ShardTail> from_message(std::string_view field, v1::ShardTail tail) {
  return meaning_of(field, kShardTails, tail);
}

v1::CacheUse to_message(CacheUse use) {
  return message_of(kCacheUses, use);
}
Result<CacheUse> from_message(std::string_view field, v1::CacheUse use) {
  return meaning_of(field, kCacheUses, use);
}

}  // namespace millrace
