// What a batch or an epoch chooses beside its recipe: the one definition, for library and daemon alike. proto/rpc's
// recipe.proto and dataset.proto say what each means. Values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

enum class Fidelity : std::uint8_t { kExact, kFast };  // bit-equal to Pillow, or near it: recipe.proto says how near
enum class OnError : std::uint8_t { kFail, kSkip, kZero, kSubstitute };  // of a sample that cannot be made
enum class Priority : std::uint8_t { kLow, kNormal, kHigh };
inline constexpr std::size_t kPriorities = 3;

// The most that the daemon keeps of a session's images, and uses, to be faster the next time: each includes those before.
enum class CacheUse : std::uint8_t { kOff, kIndex, kPacked, kTensors };

// What becomes of an epoch's samples that do not divide by the world size.
enum class ShardTail : std::uint8_t { kPad, kDrop, kUneven };

}  // namespace millrace
