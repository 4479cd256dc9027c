#include "tests/bench/engine/transcode.h"

#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs FILE
#include <cstdlib>

#include <jpeglib.h>

namespace millrace::bench {
namespace {

// libjpeg reports errors by longjmp: what has a destructor belongs to the caller.
struct Transcoding {
  jpeg_decompress_struct from;
  jpeg_compress_struct to;
  jpeg_error_mgr errors;
  std::jmp_buf on_error;
  unsigned char* made;
  unsigned long size;
};

void fail(j_common_ptr jpeg) {
  std::longjmp(static_cast<Transcoding*>(jpeg->client_data)->on_error, 1);
}

bool transcode(Transcoding& work, std::span<const std::byte> jpeg) {
  if (setjmp(work.on_error) != 0) return false;
  jpeg_create_decompress(&work.from);
  jpeg_create_compress(&work.to);
  jpeg_mem_src(&work.from, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_mem_dest(&work.to, &work.made, &work.size);
  jpeg_read_header(&work.from, TRUE);
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(&work.from);
  jpeg_copy_critical_parameters(&work.from, &work.to);
  work.to.optimize_coding = TRUE;
  work.to.restart_in_rows = 1;
  jpeg_write_coefficients(&work.to, coefficients);
  jpeg_finish_compress(&work.to);
  return true;
}

}  // namespace

std::optional<std::vector<std::uint8_t>> with_restarts(std::span<const std::byte> jpeg) {
  Transcoding work{};
  work.from.err = work.to.err = jpeg_std_error(&work.errors);
  work.from.client_data = work.to.client_data = &work;
  work.errors.error_exit = fail;
  const bool done = transcode(work, jpeg);
  std::optional<std::vector<std::uint8_t>> result;
  if (done) result.emplace(work.made, work.made + work.size);
  jpeg_destroy_compress(&work.to);
  jpeg_destroy_decompress(&work.from);
  std::free(work.made);
  return result;
}

}  // namespace millrace::bench
