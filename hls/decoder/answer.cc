#include "hls/decoder/answer.h"

#include "hls/decoder/engine.h"

using millrace::hls::Burst;

extern "C" void answer(const Burst* commands, const Burst* encoded, Burst* tensors, Burst* completions,
                       std::uint32_t commands_bytes, std::uint32_t encoded_bytes, std::uint32_t tensors_bytes,
                       std::uint32_t completions_bytes, std::uint32_t phase) {
#pragma HLS INTERFACE m_axi port = commands bundle = commands offset = slave max_read_burst_length = 64
#pragma HLS INTERFACE m_axi port = encoded bundle = encoded offset = slave max_read_burst_length = 64
#pragma HLS INTERFACE m_axi port = tensors bundle = tensors offset = slave max_write_burst_length = 64
#pragma HLS INTERFACE m_axi port = completions bundle = completions offset = slave
#pragma HLS INTERFACE s_axilite port = commands
#pragma HLS INTERFACE s_axilite port = encoded
#pragma HLS INTERFACE s_axilite port = tensors
#pragma HLS INTERFACE s_axilite port = completions
#pragma HLS INTERFACE s_axilite port = commands_bytes
#pragma HLS INTERFACE s_axilite port = encoded_bytes
#pragma HLS INTERFACE s_axilite port = tensors_bytes
#pragma HLS INTERFACE s_axilite port = completions_bytes
#pragma HLS INTERFACE s_axilite port = phase
#pragma HLS INTERFACE s_axilite port = return
  static_cast<void>(encoded);
  static_cast<void>(encoded_bytes);
  static_cast<void>(tensors);
  static_cast<void>(tensors_bytes);
  const millrace::hls::ReadPort port = {commands, commands_bytes};
  const millrace::hls::BatchHead batch = millrace::hls::read_batch(port, completions_bytes);
  millrace::hls::FinishArbiter arbiter({completions, completions_bytes}, phase);
  for (std::uint32_t i = 0; i < batch.images; ++i) {
#pragma HLS PIPELINE II = 1
    arbiter.finish(number_of(port.read(millrace::hls::kBatchUnits + i), 0), 0, {millrace::hls::Reason::kDone, 0, 0});
  }
}
