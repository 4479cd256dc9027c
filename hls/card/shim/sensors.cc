// What XRT asks a driver about temperature and power. Its own headers for it are not installed: a question is an object
// with a table of virtual functions, in this order, and the answer has the type that XRT's caller expects, in a
// boost::any. Every other question goes to the function that this one replaces, of Debian's emulator.
#include <boost/any.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>

#include "hls/card/shim/card.h"
#include "hls/card/shim/control.h"
#include "hls/card/shim/handles.h"

extern "C" void* handle_of_device(const void* device) asm("_ZNK8xrt_core11device_pcie17get_device_handleEv");
extern "C" const void* emulator_query(const void* device, int key) asm("millrace_emulator_query");
extern "C" const void* lookup_query(const void* device,
                                    int key) asm("_ZNK8xrt_core5swemu6device12lookup_queryENS_5query8key_typeE");

namespace millrace::card {
namespace {

class Question {
 public:
  virtual ~Question() = default;
  virtual boost::any get(const void* device) const = 0;
  virtual boost::any get(const void*, const boost::any&) const { refuse(); }
  virtual boost::any get(const void*, const boost::any&, const boost::any&) const { refuse(); }
  virtual boost::any get(const void*, int, const std::string&) const { refuse(); }
  virtual boost::any get(const void*, const boost::any&, const boost::any&, const boost::any&) const { refuse(); }
  virtual void put(const void*, const boost::any&) const { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw std::runtime_error("a sensor has nothing but a value"); }
};

// By the numbers that XRT 2.13 has for its questions.
enum Key : int {
  kPowerLevel = 40,
  kPowerWarning = 41,
  kFpgaCelsius = 76,
  kPciExpressMillivolts = 89,
  kPciExpressMilliamps = 90,
  kMicrowatts = 136
};

constexpr std::uint32_t kUsualCelsius = 45, kUsualMilliwatt = 30'000, kMillivolts = 12'000;
constexpr std::uint64_t kLevelOf225Watts = 2;

std::uint64_t milliwatt_of(const CardControl& card) {
  const std::uint32_t said = card.milliwatt;
  return said == 0 ? kUsualMilliwatt : said;
}

std::uint64_t celsius_of(const CardControl& card) {
  const std::uint32_t said = card.celsius;
  return said == 0 ? kUsualCelsius : said;
}

boost::any answer(const CardControl& card, int key) {
  switch (key) {
    case kPowerLevel:
      return kLevelOf225Watts;
    case kPowerWarning:
      return false;
    case kFpgaCelsius:
      return celsius_of(card);
    case kPciExpressMillivolts:
      return std::uint64_t{kMillivolts};
    case kPciExpressMilliamps:
      return milliwatt_of(card) * 1000 / kMillivolts;
    default:
      return milliwatt_of(card) * 1000;
  }
}

template <int key>
class Sensor : public Question {
 public:
  using Question::get;
  boost::any get(const void* device) const override {
    const std::shared_ptr<Client> client = client_of(handle_of_device(device));
    if (client == nullptr) throw std::runtime_error("a sensor of no open card");
    return answer(control_of(client->card().number()), key);
  }
};

// nullptr: another question.
template <int... keys>
const Question* sensor_of(int key) {
  const Question* found = nullptr;
  const auto compare = [&](int one, const Question& sensor) { found = key == one ? &sensor : found; };
  static const std::tuple<Sensor<keys>...> sensors;
  (compare(keys, std::get<Sensor<keys>>(sensors)), ...);
  return found;
}

}  // namespace
}  // namespace millrace::card

const void* lookup_query(const void* device, int key) {
  using namespace millrace::card;
  const Question* const sensor =
      sensor_of<kPowerLevel, kPowerWarning, kFpgaCelsius, kPciExpressMillivolts, kPciExpressMilliamps, kMicrowatts>(
          key);
  return sensor == nullptr ? emulator_query(device, key) : sensor;
}
