#include "tests/support/jpeg/jpeg_scans.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs FILE
#include <cstdlib>
#include <cstring>

#include <jpeglib.h>

namespace millrace {
namespace {

int below(std::mt19937& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

struct Writing {
  jpeg_error_mgr errors{};
  std::jmp_buf on_error{};
  jpeg_decompress_struct in{};
  jpeg_compress_struct out{};
  std::uint8_t* bytes = nullptr;
  unsigned long size = 0;
};

[[noreturn]] void fail_scans(j_common_ptr jpeg) {
  std::longjmp(static_cast<Writing*>(jpeg->client_data)->on_error, 1);
}

bool write_scans(Writing& writing, std::span<const std::byte> file, const std::vector<jpeg_scan_info>& scans) {
  if (setjmp(writing.on_error) != 0) return false;
  jpeg_create_decompress(&writing.in);
  jpeg_create_compress(&writing.out);
  jpeg_mem_src(&writing.in, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_mem_dest(&writing.out, &writing.bytes, &writing.size);
  jpeg_read_header(&writing.in, TRUE);
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(&writing.in);
  jpeg_copy_critical_parameters(&writing.in, &writing.out);
  writing.out.scan_info = scans.data();
  writing.out.num_scans = static_cast<int>(scans.size());
  writing.out.optimize_coding = TRUE;
  jpeg_write_coefficients(&writing.out, coefficients);
  jpeg_finish_compress(&writing.out);
  return true;
}

std::vector<jpeg_scan_info> in_libjpeg(const std::vector<JpegScan>& scans) {
  std::vector<jpeg_scan_info> infos;
  for (const JpegScan& scan : scans) {
    jpeg_scan_info& info = infos.emplace_back();
    info.comps_in_scan = static_cast<int>(scan.components.size());
    std::copy(scan.components.begin(), scan.components.end(), info.component_index);
    info.Ss = scan.first;
    info.Se = scan.last;
    info.Ah = scan.high;
    info.Al = scan.low;
  }
  return infos;
}

// Bands of a component's AC coefficients, each with some of its bits first.
void draw_bands(int component, std::mt19937& random, std::vector<JpegScan>& scans) {
  for (int first = 1; first < 64;) {
    const int last = std::min(63, first + below(random, 64));
    const int low = below(random, 4);
    scans.push_back({{component}, first, last, 0, low});
    for (int bit = low; bit > 0; --bit) scans.push_back({{component}, first, last, bit, bit - 1});
    first = last + 1;
  }
}

}  // namespace

std::vector<JpegScan> simple_progression() {
  return {{{0, 1, 2}, 0, 0, 0, 1}, {{0}, 1, 5, 0, 2},       {{2}, 1, 63, 0, 1}, {{1}, 1, 63, 0, 1}, {{0}, 6, 63, 0, 2},
          {{0}, 1, 63, 2, 1},      {{0, 1, 2}, 0, 0, 1, 0}, {{2}, 1, 63, 1, 0}, {{1}, 1, 63, 1, 0}, {{0}, 1, 63, 1, 0}};
}

std::vector<JpegScan> sequential_scans(int components) {
  std::vector<JpegScan> scans;
  for (int i = 0; i < components; ++i) scans.push_back({{i}});
  return scans;
}

std::vector<JpegScan> draw_scans(int components, std::mt19937& random) {
  if (below(random, 4) == 0) return sequential_scans(components);
  std::vector<int> all;
  for (int i = 0; i < components; ++i) all.push_back(i);
  std::vector<JpegScan> scans;
  const int low = below(random, 3);
  scans.push_back({all, 0, 0, 0, low});
  for (int bit = low; bit > 0; --bit) scans.push_back({all, 0, 0, bit, bit - 1});
  for (const int component : all) draw_bands(component, random, scans);
  return scans;
}

std::optional<std::vector<std::byte>> with_scans(std::span<const std::byte> file, const std::vector<JpegScan>& scans) {
  const std::vector<jpeg_scan_info> infos = in_libjpeg(scans);
  Writing writing;
  writing.in.err = writing.out.err = jpeg_std_error(&writing.errors);
  writing.in.client_data = writing.out.client_data = &writing;
  writing.errors.error_exit = fail_scans;
  writing.errors.emit_message = [](j_common_ptr, int) {};
  const bool written = write_scans(writing, file, infos);
  std::optional<std::vector<std::byte>> made;
  const auto* const bytes = reinterpret_cast<const std::byte*>(writing.bytes);
  if (written) made.emplace(bytes, bytes + writing.size);
  jpeg_destroy_compress(&writing.out);
  jpeg_destroy_decompress(&writing.in);
  std::free(writing.bytes);
  return made;
}

std::vector<std::size_t> scans_of(std::span<const std::byte> file) {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; at + 1 < file.size(); ++at) {
    if (file[at] == std::byte{0xFF} && file[at + 1] == std::byte{0xDA}) found.push_back(at);
  }
  return found;
}

std::vector<std::byte> with_quant_table(std::span<const std::byte> file, std::size_t at, int table, int value) {
  std::vector<std::byte> made(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(at));
  for (const int byte : {0xFF, 0xDB, 0, 67, table}) made.push_back(static_cast<std::byte>(byte));
  made.insert(made.end(), 64, static_cast<std::byte>(value));
  made.insert(made.end(), file.begin() + static_cast<std::ptrdiff_t>(at), file.end());
  return made;
}

std::vector<std::byte> as_rgb(std::span<const std::byte> file) {
  constexpr int kAdobe[] = {0xFF, 0xEE, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 0};
  std::vector<std::byte> made(file.begin(), file.end());
  constexpr std::size_t kJfif = 2, kJfifBytes = 18;
  if (made.size() < kJfif + kJfifBytes || made[kJfif + 1] != std::byte{0xE0}) return made;
  const auto at = made.erase(made.begin() + kJfif, made.begin() + kJfif + kJfifBytes);
  std::vector<std::byte> adobe;
  for (const int byte : kAdobe) adobe.push_back(static_cast<std::byte>(byte));
  made.insert(at, adobe.begin(), adobe.end());
  return made;
}

}  // namespace millrace
