#include "http/connection_table.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace ashlar {
namespace {

class Pair {
 public:
  Pair() { socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds_.data()); }
  ~Pair() {
    close(fds_[0]);
    close(fds_[1]);
  }
  int fd() const { return fds_[0]; }
  // Whether a read on our end finds the end of the stream.
  bool ended() const {
    char byte;
    return recv(fds_[0], &byte, 1, MSG_PEEK) == 0;
  }

 private:
  std::array<int, 2> fds_{};
};

TEST(ConnectionTable, EvictsTheLongestIdleAndGivesItsPlaceAway) {
  ConnectionTable table(2);
  Pair first, second, third, fourth;
  table.Add(first.fd());
  table.Add(second.fd());
  EXPECT_TRUE(table.full());
  EXPECT_TRUE(table.BeginIdle(second.fd()));
  EXPECT_TRUE(table.BeginIdle(first.fd()));
  table.EvictLongestIdle();
  EXPECT_TRUE(second.ended());
  EXPECT_FALSE(first.ended());
  EXPECT_FALSE(table.full());
  table.Add(third.fd());
  EXPECT_TRUE(table.TakePlace(third.fd()));
  EXPECT_FALSE(table.TakePlace(second.fd()));  // should its next request cross
  table.Add(fourth.fd());
  EXPECT_FALSE(table.TakePlace(fourth.fd()));
  table.Remove(third.fd());
  EXPECT_TRUE(table.TakePlace(fourth.fd()));
}

TEST(ConnectionTable, NeverEndsAConnectionThatIsBeingServed) {
  ConnectionTable table(1);
  Pair busy;
  table.Add(busy.fd());
  EXPECT_TRUE(table.BeginIdle(busy.fd()));
  table.EndIdle(busy.fd());
  table.EvictLongestIdle();
  table.CloseIdle();
  EXPECT_FALSE(busy.ended());
  EXPECT_FALSE(table.BeginIdle(busy.fd()));  // from now on it closes instead of waiting
}

}  // namespace
}  // namespace ashlar
