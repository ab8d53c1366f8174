#include "engine/intake.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

Request OneToken() {
  Request request;
  request.prompt = {1};
  return request;
}

bool Accepts(Intake& intake) {
  return std::holds_alternative<uint64_t>(
      intake.Submit(OneToken(), std::make_shared<EventQueue>()));
}

TEST(Intake, RefusesOnceOneHasWaitedTooLong) {
  Intake intake({.queued_tokens = 100, .queued_requests = 100, .queue_seconds = 0});
  EXPECT_TRUE(Accepts(intake));
  Intake::Work work;
  intake.Take({}, {}, work);  // the engine took it and could not start it: it waits on
  EXPECT_FALSE(Accepts(intake));
  intake.Take({}, {}, work);  // started
  EXPECT_TRUE(Accepts(intake));
}

TEST(Intake, AYoungQueueIsNoReasonToRefuse) {
  Intake intake({.queued_tokens = 100, .queued_requests = 100, .queue_seconds = 3600});
  Intake::Work work;
  EXPECT_TRUE(Accepts(intake));
  intake.Take({}, {}, work);
  EXPECT_TRUE(Accepts(intake));
}

TEST(Intake, CountsRequestsAndTokensThatWait) {
  Intake intake({.queued_tokens = 3, .queued_requests = 2, .queue_seconds = 3600});
  Intake::Work work;
  intake.Take({}, {.requests = 1, .tokens = 3, .oldest = std::nullopt}, work);
  EXPECT_FALSE(Accepts(intake));  // a fourth token
  intake.Take({}, {.requests = 2, .tokens = 1, .oldest = std::nullopt}, work);
  EXPECT_FALSE(Accepts(intake));  // a third request
  intake.Take({}, {.requests = 1, .tokens = 2, .oldest = std::nullopt}, work);
  EXPECT_TRUE(Accepts(intake));
}

}  // namespace
}  // namespace ashlar
