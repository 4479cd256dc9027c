// What a lane asks of who runs the libraries when its pixels are to be kept for everybody.
#include <vector>

#include "daemon/backend/cpu/making/cached_maker.h"
#include "daemon/formats/probe.h"
#include "daemon/plan/draw_geometry.h"
#include "tests/unit/daemon/backend/cpu/isolation/isolation_rig.h"

namespace millrace {
namespace {

using Audience = Origin::Audience;

// Decodes, and notes for whom.
class NotingDecoder final : public LibraryDecoder {
 public:
  Result<kernels::U8View> decode(ImageFormat format, const DecodeRequest& request, PixelBuffer& buffer) override {
    origins.push_back(request.origin);
    return in_lane_.decode(format, request, buffer);
  }
  Result<std::vector<std::uint8_t>> pack(const DecodeRequest& request, kernels::packed::Encoder& encoder) override {
    origins.push_back(request.origin);
    return in_lane_.pack(request, encoder);
  }
  void trim() override {}

  std::vector<Origin> origins;

 private:
  DecodingInLane in_lane_;
};

struct Rig {
  explicit Rig(LibraryFile made) : file(std::move(made)) {}

  SampleTask task() {
    EncodedBytes bytes(file.bytes.size());
    std::copy(file.bytes.begin(), file.bytes.end(), bytes.writable().begin());
    const auto info = probe_image(bytes.view(), SampleLimits{}, UseOrientation::kYes);
    REQUIRE(info);
    const auto geometry = draw_geometry(recipe, {}, *info, {}, 1000);
    REQUIRE(geometry);
    return {.image = {.bytes = std::move(bytes),
                      .info = *info,
                      .identity = FileIdentity{.inode = 1, .size = file.bytes.size()},
                      .stable = true,
                      .user = 1234,
                      .wish = wish},
            .geometry = *geometry,
            .out = in_host_memory(out)};
  }
  void make() {
    SampleTask one = task();
    REQUIRE_FALSE(maker.make(one, recipe, Fidelity::kExact).error);
    maker.finish([] { return true; }, [] { return false; });
  }
  bool keeps(CachedKind kind) {
    const SampleTask one = task();
    const CacheKey key = key_of(one.image, cache.seed());
    return cache.find(kind == CachedKind::kTensor ? tensor_key_of(key, wish.tensor_of) : key, kind).has_value();
  }

  LibraryFile file;
  Counters counters;
  ImageCache cache{{.memory = 16_MiB, .disk = Bytes{0}, .state_dir = ""}, counters};
  NotingDecoder libraries;
  ImageWorkspace workspace{JpegPath::kFastest, {}, &cache, &libraries};
  CachedMaker maker{workspace, Limits{}, kernels::best_target()};
  const Recipe recipe = Recipe::evaluate(40, 32);
  CacheWish wish{.tensor_of = 5};
  std::vector<std::byte> out = std::vector<std::byte>(3 * 32 * 32);
};

}  // namespace

TEST_CASE("a tensor that is kept was decoded for everybody", "[isolation]") {
  Rig rig(png_file(120, 90));

  for (int touch = 0; touch < 3 && !rig.keeps(CachedKind::kTensor); ++touch) rig.make();

  REQUIRE(rig.keeps(CachedKind::kTensor));
  REQUIRE(rig.libraries.origins.back().audience == Audience::kEverybody);
  REQUIRE(rig.libraries.origins.back().user == 1234);
}

TEST_CASE("a packed form that is kept was made for everybody, and what is only delivered for its user", "[isolation]") {
  Rig rig(library_file("jpeg progressive", 120, 90));
  rig.wish = {.most = CacheUse::kPacked};

  rig.make();

  REQUIRE(rig.keeps(CachedKind::kPacked));
  REQUIRE(rig.libraries.origins.size() == 2);
  REQUIRE(rig.libraries.origins[0].audience == Audience::kUser);
  REQUIRE(rig.libraries.origins[1].audience == Audience::kEverybody);
  REQUIRE(rig.libraries.origins[1].user == 1234);
}

}  // namespace millrace
