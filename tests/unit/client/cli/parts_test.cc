// What the command line is made of: JSON, progress lines, pictures, the contact sheet, recipes from options.
#include <spng.h>
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "client/cli/options.h"
#include "client/cli/picture/contact_sheet.h"
#include "client/cli/picture/font.h"
#include "client/cli/picture/png_file.h"
#include "client/cli/picture/to_pixels.h"
#include "client/cli/position_file.h"
#include "client/cli/recipe_options.h"
#include "client/cli/text/findings.h"
#include "client/cli/text/help_format.h"
#include "client/cli/text/json.h"
#include "client/cli/text/progress.h"
#include "client/cli/text/skipped_files.h"
#include "client/cli/text/stats_text.h"

using namespace millrace;
using namespace millrace::cli;
using millrace::SkippedFiles;
using millrace::SkipReason;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Folder() { fs::remove_all(path); }
  std::string path = "/tmp/millrace-cli-XXXXXX";
};

Picture plain(int width, int height, Colour colour) {
  return {width, height,
          std::vector<Colour>(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), colour)};
}

Recipe parsed(std::vector<std::string> arguments) {
  CLI::App app;
  RecipeOptions options;
  add_recipe_options(app, options);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
  app.parse(arguments);
  return recipe_of(options);
}

}  // namespace

TEST_CASE("figures by label stand beneath their sum, and a histogram says its median and its slowest", "[cli]") {
  const Metric images{.name = "millrace_samples_total",
                      .help = "Images made",
                      .counter = true,
                      .value = 1'300,
                      .label = "backend",
                      .values = {{"cpu", 1'200}, {"cuda:0", 100}, {"fpga:0", 0}}};
  const Metric fetch{.name = "millrace_fetch_latency_seconds",
                     .unit = "seconds",
                     .help = "Reading one image",
                     .value = 200,
                     .buckets = {{0.001, 60}, {0.002, 100}, {0.004, 197}, {0.008, 198}, {0.016, 200}}};
  const Look look{.statistics = {.metrics = {images, fetch}}, .at = {}};

  const std::string text = figures_text(look, std::nullopt, Figures::kNotZero);

  CHECK_THAT(text, Catch::Contains("1,300\n    backend cpu "));
  CHECK_THAT(text, Catch::Contains("    backend cuda:0 ") && !Catch::Contains("fpga"));
  CHECK_THAT(text, Catch::Contains("200  median < 2 ms, 99 % < 8 ms\n"));
}

TEST_CASE("a session's largest states are named, and what its program waited in, or that it does not say", "[cli]") {
  using std::chrono::duration;
  SessionStatistics session{.id = 7, .age = duration<double>(100)};
  CHECK_THAT(sessions_text({session}), !Catch::Contains("session 7:"));  // an older daemon's
  const auto state = [](const char* name, double time, double waited) {
    return StateTime{.state = name, .time = duration<double>(time), .waited = duration<double>(waited)};
  };
  session.states = {state("idle", 0.4, 0), state("reading", 30, 6), state("making", 60.6, 2), state("client", 5, 0),
                    state("settling", 4, 0)};
  CHECK_THAT(sessions_text({session}), Catch::Contains("session 7: 100.0 s: making 61 %, reading 30 %, client 5 %; "
                                                       "its program has not said yet how long it waited\n"));
  session.waits_told = 40;
  CHECK_THAT(sessions_text({session}), Catch::Contains("; its program waited 8.0 s: reading 75 %, making 25 %\n"));
  for (StateTime& one : session.states) one.waited = {};
  CHECK_THAT(sessions_text({session}), Catch::Contains("; its program waited 0.0 s\n"));
  session.states[2].state = "mak\x1bing";
  CHECK_THAT(sessions_text({session}), Catch::Contains("mak\\x1bing 61 %"));
}

TEST_CASE("JSON has commas between values and nowhere else", "[cli]") {
  Json json;
  json.begin_object().member("a", std::uint64_t{1}).key("b").begin_array().value(true).value("x").end_array();
  json.key("c").begin_object().end_object().member("d", 0.5).end_object();

  REQUIRE(json.text() == R"({"a":1,"b":[true,"x"],"c":{},"d":0.5})");
}

TEST_CASE("JSON text is escaped, and bytes that are not UTF-8 become replacement characters", "[cli]") {
  Json json;
  json.begin_array().value("a\"\\\n\x7f").value("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  json.value("\xc0\xaf|\xed\xa0\x80|\xf5|\xc3").end_array();

  REQUIRE(json.text() ==
          "[\"a\\\"\\\\\\u000a\\u007f\",\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\","
          "\"\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|\\ufffd|\\ufffd\"]");
}

TEST_CASE("JSON has no number for what is not finite", "[cli]") {
  Json json;
  json.begin_array().value(std::nan("")).value(INFINITY).end_array();

  REQUIRE(json.text() == "[null,null]");
}

TEST_CASE("a progress line has rate, volume, bad samples and the time left", "[cli]") {
  const ProgressState state{.title = "epoch 1/2",
                            .done = 2000,
                            .total = 12'000,
                            .bytes = 301'056'000,
                            .bad = 1000,
                            .elapsed = std::chrono::seconds(10)};

  const std::string line = progress_line(state, {.width = 120});

  REQUIRE(line ==
          "epoch 1/2   25% ##########..............................  2,000/12,000  200 images/s  30.1 MB/s  "
          "1,000 bad  0:30 left");
}

TEST_CASE("a progress line fits a narrow terminal by leaving the bar out", "[cli]") {
  const ProgressState state{.title = "epoch 1/1", .done = 1, .total = 2, .elapsed = std::chrono::seconds(1)};

  REQUIRE_THAT(progress_line(state, {.width = 50}), !Catch::Contains("#"));
  REQUIRE_THAT(progress_line(state, {.width = 120, .colour = true}), Catch::Contains("\x1b[36m"));
  REQUIRE_THAT(progress_line(state, {.width = 120, .colour = false}), !Catch::Contains("\x1b"));
}

TEST_CASE("durations and counts are written as people read them", "[cli]") {
  REQUIRE(clock_text(std::chrono::seconds(7)) == "0:07");
  REQUIRE(clock_text(std::chrono::seconds(3'723)) == "1:02:03");
  REQUIRE(grouped(999) == "999");
  REQUIRE(grouped(1'234'567) == "1,234,567");
}

TEST_CASE("options deviate from the preset and leave the rest of it", "[cli]") {
  const Recipe recipe = parsed({"--size", "96", "--dtype", "FLOAT16", "--filter", "lanczos", "--flip", "0"});

  REQUIRE(std::holds_alternative<RandomResizedCrop>(recipe.crop));
  REQUIRE(fixed_size(recipe) == Size{96, 96});
  REQUIRE(recipe.dtype == DType::kFloat16);
  REQUIRE(recipe.normalise);
  REQUIRE(recipe.filter == Filter::kLanczos);
  REQUIRE(recipe.flip_probability == 0);
}

TEST_CASE("evaluate resizes as much beyond the crop as 256 is beyond 224", "[cli]") {
  REQUIRE(std::get<ShorterSide>(parsed({"--recipe", "evaluate"}).resize).pixels == 256);
  REQUIRE(std::get<ShorterSide>(parsed({"--recipe", "evaluate", "--size", "112"}).resize).pixels == 128);
  REQUIRE(std::get<ShorterSide>(parsed({"--recipe", "evaluate", "--resize", "232"}).resize).pixels == 232);
}

TEST_CASE("evaluate bounds the longer side if asked to", "[cli]") {
  REQUIRE(parsed({"--recipe", "evaluate"}).resize == Resize{ShorterSide{256}});
  REQUIRE(parsed({"--recipe", "evaluate", "--longest", "400"}).resize == Resize{ShorterSide{256, 400}});
  REQUIRE(parsed({"--recipe", "evaluate", "--longest", "400"}).centre_crop == Size{224, 224});
}

TEST_CASE("steps are a recipe's in their order, by a name or as protobuf's text", "[cli]") {
  const Recipe recipe = parsed({"--step", "grayscale", "--step", "rand_augment", "--step",
                                "probability: 0.5 rotation { degrees { low: -10 high: 10 } }", "--erase", "0.25"});

  REQUIRE(recipe.steps == std::vector<Step>{{.kind = steps::Simple::kGrayscale},
                                            {.kind = steps::RandAugment{}},
                                            {.probability = 0.5F, .kind = steps::Rotation{.degrees = {-10, 10}}}});
  REQUIRE(recipe.erasing == Erasing{.probability = 0.25F});
  REQUIRE(parsed({}).steps.empty());
  REQUIRE_FALSE(parsed({"--erase", "0"}).erasing);
}

TEST_CASE("an unknown recipe is a usage error", "[cli]") {
  REQUIRE_THROWS_AS(parsed({"--recipe", "dream"}), CLI::ValidationError);
  REQUIRE_THROWS_AS(parsed({"--dtype", "int4"}), CLI::ValidationError);
}

TEST_CASE("a tensor's image comes back as pixels from every type, layout and channel order", "[cli]") {
  const Size size{2, 1};
  const std::uint8_t nchw[] = {10, 11, 20, 21, 30, 31};
  const std::uint8_t bgr[] = {30, 20, 10, 31, 21, 11};
  const std::uint8_t grey[] = {5, 6};
  const std::uint16_t halves[] = {0x3C00, 0x0000, 0x3800, 0xBC00, 0x3C00, 0x4000};  // 1, 0, 0.5, -1, 1, 2

  const Picture planes = to_picture(Recipe{}, size, std::as_bytes(std::span(nchw)));
  const Picture pixels =
      to_picture(Recipe{.layout = Layout::kNhwc, .channels = Channels::kBgr}, size, std::as_bytes(std::span(bgr)));
  const Picture greys = to_picture(Recipe{.channels = Channels::kGrey}, size, std::as_bytes(std::span(grey)));
  const Picture floats = to_picture(Recipe{.dtype = DType::kFloat16}, size, std::as_bytes(std::span(halves)));

  REQUIRE(planes.at(0, 0) == Colour{10, 20, 30});
  REQUIRE(planes.at(1, 0) == Colour{11, 21, 31});
  REQUIRE(pixels.pixels == planes.pixels);
  REQUIRE(greys.at(1, 0) == Colour{6, 6, 6});
  REQUIRE(floats.at(0, 0) == Colour{255, 128, 255});
  REQUIRE(floats.at(1, 0) == Colour{0, 0, 255});  // clamped
}

TEST_CASE("skipped files are told in one line, and what is not told is counted", "[cli]") {
  const std::vector<SkippedFiles> groups{
      {.extension = "txt", .files = 1'000, .examples = {"a/\x1b.txt", "b.txt"}},
      {.reason = SkipReason::kUndecoded, .extension = "bmp", .files = 2, .examples = {"a/1.bmp", "a/2.bmp"}},
      {.reason = SkipReason::kUnclassified, .files = 1, .examples = {"loose.jpg"}},
      {.files = 1, .examples = {"LICENSE"}}};

  REQUIRE(
      describe_skipped(1'007, groups) ==
      "1,007 files are no samples: 1,000 .txt (a/\\x1b.txt, ...), 2 .bmp (a/1.bmp, ...; not decoded: convert them), "
      "1 beside the class folders (loose.jpg), 1 without an extension (LICENSE), 3 more");
  REQUIRE(describe_skipped(1, {}) == "1 file is no sample: 1 more");
}

TEST_CASE("however a folder looks, the line about its skipped files is short", "[cli]") {
  std::vector<SkippedFiles> groups;
  for (int i = 0; i < 16; ++i)
    groups.push_back({.extension = std::string(16, '\x1b'), .files = 2, .examples = {std::string(1024, '\xff')}});

  const std::string line = describe_skipped(40, groups);

  REQUIRE(line.size() < 1'000);
  REQUIRE_THAT(line, Catch::EndsWith(", and 12 more kinds (24 files), 8 more"));
  REQUIRE_THAT(line, Catch::Contains("\\xff..., ...)"));
  groups.resize(5);
  REQUIRE_THAT(describe_skipped(10, groups), Catch::EndsWith(", and 1 more kind (2 files)"));
}

TEST_CASE("normalisation is undone", "[cli]") {
  const Recipe recipe = Recipe{}.normalised(DType::kFloat32);
  const float stored[] = {(100 / 255.0F - 0.485F) / 0.229F, (150 / 255.0F - 0.456F) / 0.224F,
                          (200 / 255.0F - 0.406F) / 0.225F};

  REQUIRE(to_picture(recipe, {1, 1}, std::as_bytes(std::span(stored))).at(0, 0) == Colour{100, 150, 200});
}

TEST_CASE("16-bit floats are read as IEEE and as the upper half of binary32", "[cli]") {
  REQUIRE(from_float16(0x3555) == Approx(0.33325195F));
  REQUIRE(from_float16(0x0001) == std::ldexp(1.0F, -24));
  REQUIRE(std::isinf(from_float16(0xFC00)));
  REQUIRE(from_bfloat16(0x3FC0) == 1.5F);
}

TEST_CASE("a picture shrinks to fit, keeping its mean", "[cli]") {
  Picture picture = plain(400, 200, {0, 0, 0});
  for (int x = 0; x < 400; x += 2) {
    for (int y = 0; y < 200; ++y) picture.at(x, y) = {200, 200, 200};
  }

  const Picture small = shrink_to_fit(picture, 100);

  REQUIRE(small.width == 100);
  REQUIRE(small.height == 50);
  REQUIRE(small.at(7, 7) == Colour{100, 100, 100});
  REQUIRE(shrink_to_fit(small, 100).pixels == small.pixels);
}

TEST_CASE("drawing outside the canvas changes nothing and harms nothing", "[cli]") {
  Canvas canvas(10, 10, {1, 2, 3});

  canvas.fill({-20, -20, 15, 15}, {9, 9, 9});
  canvas.draw(plain(5, 5, {9, 9, 9}), 20, 20);
  canvas.shade_outside({-5, -5, 4, 4}, {0, 0, 1, 1}, 50);
  canvas.write("far away", 100, 100, 2, {9, 9, 9});

  REQUIRE(canvas.picture().pixels == plain(10, 10, {1, 2, 3}).pixels);
}

TEST_CASE("every printable character has a glyph of its own", "[cli]") {
  std::set<Glyph> glyphs;
  for (char c = ' '; c <= '~'; ++c) glyphs.insert(glyph_of(c));

  REQUIRE(glyphs.size() == 95);
  REQUIRE(glyph_of('\n') == glyph_of('\xff'));
}

TEST_CASE("a contact sheet shows the crop on the original, the result, and why a sample is bad", "[cli]") {
  std::vector<SheetEntry> entries(2);
  entries[0] = {.name = "cat.jpg",
                .caption = "100x100",
                .flipped = true,
                .original = plain(100, 100, {200, 200, 200}),
                .crop = Rectangle{20, 20, 40, 40},
                .result = plain(64, 64, {10, 200, 10})};
  entries[1] = {.name = "dog.jpg", .problem = "not an image: the bytes begin with 00 01"};

  const Picture sheet = contact_sheet({.first = "train"}, entries, {.tile = 100});

  std::set<std::tuple<int, int, int>> colours;
  for (const Colour& pixel : sheet.pixels) colours.insert({pixel.red, pixel.green, pixel.blue});
  REQUIRE(colours.count({200, 200, 200}) == 1);  // inside the crop
  REQUIRE(colours.count({90, 90, 90}) == 1);     // outside, shaded
  REQUIRE(colours.count({255, 179, 0}) == 1);    // the box
  REQUIRE(colours.count({10, 200, 10}) == 1);    // the result
  REQUIRE(colours.count({232, 92, 80}) == 1);    // the problem
}

TEST_CASE("a contact sheet of a name and a reason without end stays in its bounds", "[cli]") {
  std::vector<SheetEntry> entries(1);
  entries[0] = {.name = std::string(5000, 'n'), .caption = std::string(5000, 'c'), .problem = std::string(5000, 'p')};

  const Picture sheet = contact_sheet({std::string(5000, 't'), std::string(5000, 'u')}, entries,
                                      {.tile = 64, .background = Background::kLight});

  REQUIRE(sheet.width < 1000);
  REQUIRE(sheet.height < 1000);
}

TEST_CASE("a PNG file holds the picture's pixels", "[cli]") {
  const Folder folder;
  Picture picture = plain(3, 2, {1, 2, 3});
  picture.at(2, 1) = {250, 0, 7};

  REQUIRE(write_png(folder.path + "/x.png", picture));

  std::ifstream file(folder.path + "/x.png", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  spng_ctx* context = spng_ctx_new(0);
  REQUIRE(spng_set_png_buffer(context, bytes.data(), bytes.size()) == 0);
  std::vector<Colour> decoded(6);
  REQUIRE(spng_decode_image(context, decoded.data(), 18, SPNG_FMT_RGB8, 0) == 0);
  spng_ctx_free(context);
  REQUIRE(decoded == picture.pixels);
}

TEST_CASE("a PNG file that cannot be written is an error with its name", "[cli]") {
  const auto written = write_png("/nonexistent/x.png", plain(1, 1, {}));

  REQUIRE_THAT(written.error().message, Catch::Contains("/nonexistent/x.png"));
  Picture noise = plain(400, 400, {});
  std::mt19937 random(1);
  for (Colour& colour : noise.pixels) colour.red = static_cast<std::uint8_t>(random());
  const auto full = write_png("/dev/full", noise);
  REQUIRE(full.error().message == "writing /dev/full: No space left on device");
}

TEST_CASE("a position file gives back what was written, and nothing is the beginning", "[cli]") {
  const Folder folder;
  const std::string path = folder.path + "/run.pos";
  REQUIRE(read_position(path)->epoch == 0);
  REQUIRE(read_position(path)->token.empty());

  REQUIRE(write_position(path, {7, std::string("\0\n\xff", 3)}));

  REQUIRE(read_position(path)->epoch == 7);
  REQUIRE(read_position(path)->token == std::string("\0\n\xff", 3));
}

TEST_CASE("a file that is no position file is refused", "[cli]") {
  const Folder folder;
  const std::string path = folder.path + "/run.pos";
  for (const char* text :
       {"", "hello\n", "millrace-position 1 \n", "millrace-position 1 x\n", "millrace-position 1 7"}) {
    std::ofstream(path, std::ios::trunc) << text;
    CAPTURE(text);
    REQUIRE_FALSE(read_position(path));
    REQUIRE(read_position(path).error().code == millrace::Code::kInvalid);
  }
}

TEST_CASE("what a position cannot lie in is refused at once", "[cli]") {
  const Folder folder;
  REQUIRE(::mkfifo((folder.path + "/fifo").c_str(), 0600) == 0);
  std::ofstream(folder.path + "/large") << "millrace-position 1 7\n" << std::string(64 << 10, 'x');
  const auto refusal = [](const std::string& path) { return read_position(path).error().message; };

  REQUIRE_THAT(refusal(folder.path), Catch::EndsWith("is a folder"));
  REQUIRE_THAT(refusal(folder.path + "/fifo"), Catch::Contains("/fifo is no regular file"));
  REQUIRE_THAT(refusal("/dev/zero"), Catch::Contains("/dev/zero is no regular file"));
  REQUIRE_THAT(refusal(folder.path + "/large"), Catch::Contains("too large"));
  REQUIRE_THAT(refusal(folder.path + "/no/where"), Catch::Contains("/no/where cannot be written there"));
}

TEST_CASE("help shows what an option takes, its bounds and its default, without CLI11's words", "[cli]") {
  REQUIRE(short_type("UINT:INT in [1 - 256]") == "1-256");
  REQUIRE(short_type("UINT:SIZE [b, kb(=1024b), ...]") == "SIZE");
  REQUIRE(short_type("UINT") == "NUMBER");
  REQUIRE(short_type("TEXT") == "TEXT");
  REQUIRE(short_type("[SECONDS]:FLOAT in [0.1 - 86400]") == "[SECONDS]");
  CLI::App app("An app");
  int slots = 3;
  std::string folder;
  app.formatter(std::make_shared<HelpFormat>());
  app.add_option("--slots", slots, "how many")->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("--folder", folder, "where")->required()->group("Second");

  const std::string help = app.help();

  REQUIRE_THAT(help, Catch::Contains("--slots 1-256 ") && Catch::Contains("how many (default: 3)"));
  REQUIRE_THAT(help, Catch::Contains("--folder TEXT ") && Catch::Contains("where (required)"));
  REQUIRE(help.find("\n\n\n") == std::string::npos);
}

TEST_CASE("notes are no problems", "[cli]") {
  const Findings findings{{"one", "1"}, {"another", "2", Verdict::kNote, "do this"}};

  REQUIRE(healthy(findings));
  REQUIRE(findings_text(findings) == "one      1\nanother  NOTE: 2\n         -> do this\n");
  REQUIRE(findings_json(findings) ==
          R"({"healthy":true,"findings":[{"name":"one","verdict":"fine","value":"1","advice":""},)"
          R"({"name":"another","verdict":"note","value":"2","advice":"do this"}]})");
}
