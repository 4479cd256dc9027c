#include "hls/decoder/jpeg/decode_jpeg.h"

#include "hls/decoder/engine.h"
#include "hls/decoder/jpeg/jpeg_slot.h"

using millrace::hls::Burst;

extern "C" void decode_jpeg(const Burst* commands, const Burst* encoded, Burst* tensors, Burst* completions,
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
#if defined(__SYNTHESIS__)
  static millrace::hls::Engine<millrace::hls::JpegSlot> engine;
#else
  // The memories of a compute unit; simulated units run in threads of their own.
  static thread_local millrace::hls::Engine<millrace::hls::JpegSlot> engine;
#endif
  engine.run({{commands, commands_bytes},
              {encoded, encoded_bytes},
              {tensors, tensors_bytes},
              {completions, completions_bytes}},
             phase);
}
