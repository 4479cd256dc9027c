// What one sample, batch or session may cost at the most. From the settings; every part that checks untrusted input
// gets this. Immutable.
#pragma once

#include <chrono>
#include <cstdint>

#include "proto/base/bytes.h"

namespace millrace {

// One message of a client; a larger one ends its session's stream. Encoded bytes leave room for the rest of it.
inline constexpr Bytes kMessageMost = 4_MiB;
inline constexpr Bytes kInlineMost = kMessageMost - 1_MiB;

struct SampleLimits {
  Bytes encoded = 256_MiB;                 // of one file
  std::uint64_t pixels = 178'956'970;      // width x height, as Pillow's warning threshold for decompression bombs x 2
  std::uint32_t side = 65'535;             // width or height
  std::chrono::milliseconds time{30'000};  // decoding and transforming
};

struct BatchLimits {
  std::uint32_t samples = 65'536;  // in one batch
  std::uint32_t path_bytes = 4'096;
  Bytes inline_message = 1_MiB;  // encoded bytes in one Submit; at most kInlineMost
};

struct SessionLimits {
  std::uint32_t sessions = 64;
  std::uint32_t sessions_per_user = 32;
  std::uint32_t connections = 0;           // to the gRPC socket; 0: grpc_connections()
  std::uint32_t connections_per_user = 0;  // the same
  std::uint32_t slots = 256;               // in one session
  std::uint32_t queued_batches = 64;       // submitted and waiting for a slot, in one session
  std::uint32_t datasets = 16;             // open in one session
  std::uint32_t epochs = 16;               // running in one session
  std::uint64_t dataset_files = 50'000'000;
  Bytes ring = 1_GiB;  // input ring of one session

  // A session has a connection of its own, and its client mostly another one; the rest is for tools, and for those just
  // coming or going.
  std::uint32_t grpc_connections() const { return connections != 0 ? connections : 2 * sessions + 32; }
  std::uint32_t grpc_connections_per_user() const {
    return connections_per_user != 0 ? connections_per_user : 2 * sessions_per_user + 16;
  }
};

struct Limits {
  SampleLimits sample;
  BatchLimits batch;
  SessionLimits session;
};

}  // namespace millrace
