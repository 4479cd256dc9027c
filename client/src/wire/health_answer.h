// What a server answers to grpc.health.v1.Health/Check. Pure function, thread-safe.
#pragma once

namespace grpc {
class ByteBuffer;
}

namespace millrace {
inline namespace client {

// Whether `answer`, in however many slices the transport cut it, is a HealthCheckResponse whose status is SERVING.
bool says_serving(const grpc::ByteBuffer& answer);

}  // namespace client
}  // namespace millrace
