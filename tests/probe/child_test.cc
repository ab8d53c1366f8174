#include "probe/child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>

#include "probe/device_json.h"

namespace ashlar {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kLong(60'000);

Accelerators Answer(size_t devices) {
  Accelerators answer = {.probe = {.platform = "cuda",
                                   .outcome = ProbeOutcome::kFound,
                                   .detail = "a \"detail\"",
                                   .next = {}},
                         .devices = {}};
  for (size_t i = 0; i < devices; ++i) {
    DeviceInfo device;
    device.platform = "cuda";
    device.index = static_cast<int>(i);
    device.product = std::string(96, 'N');
    device.capability = {CapabilityUnit::kCuda, 90, {"9.0"}};
    device.memory_bytes = int64_t{1} << 40;
    answer.devices.push_back(std::move(device));
  }
  return answer;
}

TEST(AskInChild, ReturnsWhatTheChildFound) {
  for (size_t devices : {size_t{0}, size_t{2}, size_t{kMaxDevices}}) {
    Accelerators answer = AskInChild("cuda", kLong, [&] { return Answer(devices); });
    EXPECT_EQ(answer.probe, Answer(0).probe);
    EXPECT_EQ(answer.devices, Answer(devices).devices);
  }
}

TEST(AskInChild, IsNotHeldByAHang) {
  Accelerators answer = AskInChild("cuda", milliseconds(50), []() -> Accelerators {
    while (true) pause();
  });
  EXPECT_EQ(answer.probe.platform, "cuda");
  EXPECT_EQ(answer.probe.outcome, ProbeOutcome::kBroken);
  EXPECT_EQ(answer.probe.detail, "the driver did not answer within 50 ms");
}

TEST(AskInChild, IsNotHeldByAChildThatAnswersAndHangs) {
  Accelerators answer = AskInChild("cuda", milliseconds(50), []() -> Accelerators {
    close(3);
    while (true) pause();
  });
  EXPECT_EQ(answer.probe.detail, "the driver did not answer within 50 ms");
}

TEST(AskInChild, TellsOfACrash) {
  Accelerators answer = AskInChild("cuda", kLong, []() -> Accelerators {
    raise(SIGKILL);
    return {};
  });
  EXPECT_EQ(answer.probe.outcome, ProbeOutcome::kBroken);
  EXPECT_EQ(answer.probe.detail, "the driver crashed: Killed");
  EXPECT_THAT(answer.probe.next, HasSubstr("kernel log"));
}

TEST(AskInChild, RefusesAnAnswerThatIsNone) {
  auto say = [](const char* text) {
    return [text]() -> Accelerators {
      if (write(3, text, strlen(text)) < 0) _exit(2);
      _exit(0);
    };
  };
  for (const char* text :
       {"", "{", "[]", "{\"probe\": 1, \"devices\": 2}", "{\"probe\": {}, \"devices\": []}",
        "{\"devices\": []}",
        "{\"probe\": {\"platform\": \"hip\", \"outcome\": \"found\", \"detail\": \"\", \"next\": "
        "\"\"}, \"devices\": []}"}) {
    Accelerators answer = AskInChild("cuda", kLong, say(text));
    EXPECT_EQ(answer.probe.outcome, ProbeOutcome::kBroken) << text;
    EXPECT_EQ(answer.probe.detail, "the driver's probe gave no answer") << text;
  }
  Accelerators thrown =
      AskInChild("cuda", kLong, []() -> Accelerators { throw std::runtime_error("no"); });
  EXPECT_EQ(thrown.probe.detail, "the driver's probe gave no answer");
}

TEST(AskInChild, AnswersWithoutAnEndAreCutOff) {
  Accelerators answer = AskInChild("cuda", kLong, []() -> Accelerators {
    const std::string text(1 << 16, ' ');
    while (write(3, text.data(), text.size()) > 0) {
    }
    _exit(0);
  });
  EXPECT_EQ(answer.probe.outcome, ProbeOutcome::kBroken);
}

TEST(AskInChild, TheChildHoldsNoOpenFileOfItsParent) {
  const int file = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
  ASSERT_GE(file, 100);
  Accelerators answer = AskInChild("cuda", kLong, [file] {
    Accelerators seen = Answer(0);
    seen.probe.detail = fcntl(file, F_GETFD) < 0 ? "closed" : "open";
    return seen;
  });
  EXPECT_EQ(answer.probe.detail, "closed");
  EXPECT_GE(fcntl(file, F_GETFD), 0);
  close(file);
}

}  // namespace
}  // namespace ashlar
